package form

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/rdma-setup/rdma-setup/ui/live"
	uireport "github.com/rdma-setup/rdma-setup/ui/report"
)

// finalPage is the report and where to go from here.
type finalPage struct{ scroll *live.Scroll }

func (p *finalPage) title() string { return "Report" }
func (p *finalPage) hints() string { return "Up Down scroll" }
func (p *finalPage) typing() bool  { return false }

func (p *finalPage) enter(w *wizard) tea.Cmd {
	var b strings.Builder
	if w.report != nil {
		_ = uireport.Terminal(&b, w.report, w.theme)
	}
	if w.runErr != nil {
		fmt.Fprintf(&b, "\n%s\n", w.theme.Bad.Render(w.runErr.Error()))
	}
	fmt.Fprintf(&b, "\n%s\n", w.theme.Title.Render("Where to go from here"))
	if w.saved != "" {
		fmt.Fprintf(&b, "  answers   %s\n  again     %s\n", w.saved, w.fabric.ReplayCommand(w.saved))
	}
	if w.report != nil && w.report.Run != "" {
		fmt.Fprintf(&b, "  report    rdma-setup report %s\n  undo      rdma-setup rollback %s\n", w.report.Run, w.report.Run)
		if w.report.Status == "partial" || w.report.Status == "interrupted" {
			fmt.Fprintf(&b, "  go on     rdma-setup resume %s\n", w.report.Run)
		}
	}
	p.scroll = live.NewScroll(w.theme, b.String())
	return nil
}

func (p *finalPage) update(_ *wizard, msg tea.Msg) (tea.Cmd, bool) {
	return nil, p.scroll.Update(msg)
}

func (p *finalPage) accept(*wizard) (tea.Cmd, error) { return tea.Quit, nil }

func (p *finalPage) view(_ *wizard, width, height int) string { return p.scroll.View(width, height) }
