package live

import (
	"fmt"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/ui/theme"
	"github.com/rdma-setup/rdma-setup/wizard/engine"
)

// The page of attach fits the terminal, and names all its keys, also at 80 columns.
func TestAttachNamesAllKeys(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {120, 40}, {200, 60}} {
		a := &attached{o: AttachOptions{Title: "rdma-setup attach", Theme: theme.Plain()}, run: NewRun(theme.Plain())}
		var nodes []engine.NodeInfo
		for i := range 100 {
			nodes = append(nodes, engine.NodeInfo{ID: fmt.Sprint(i), Target: backends.HostRef(fmt.Sprint("esx-", i)), Title: "step"})
		}
		a.Update(eventMsg{Type: engine.EventPlanned, Nodes: nodes})
		a.Update(tea.WindowSizeMsg{Width: size[0], Height: size[1]})
		view := a.View().Content
		for _, k := range append(runKeys, [2]string{"q", "leave (the run continues)"}) {
			if !strings.Contains(view, k[0]+" "+k[1]) {
				t.Errorf("%v: %v is not shown:\n%s", size, k, view)
			}
		}
		if lipgloss.Width(view) > size[0] || lipgloss.Height(view) > size[1] {
			t.Errorf("%v: %d x %d", size, lipgloss.Width(view), lipgloss.Height(view))
		}
	}
}
