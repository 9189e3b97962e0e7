package form

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/ui/form/frame"
	"github.com/rdma-setup/rdma-setup/wizard/engine"
)

// finalPage is the report with the next steps, which are always visible.
type finalPage struct{ reading }

func (p *finalPage) Title() string       { return "Report" }
func (p *finalPage) Hints() []frame.Hint { return p.hints() }
func (p *finalPage) EnterLabel() string  { return "finish" }

func (p *finalPage) Enter(w *frame.Wizard) tea.Cmd {
	var b strings.Builder
	if w.RunErr != nil {
		fmt.Fprintf(&b, "\n%s\n", w.Theme.Bad.Render("error: "+backends.Clean(w.RunErr.Error())))
		if hint := backends.HintOf(w.RunErr); hint != "" {
			fmt.Fprintf(&b, "hint:  %s\n", backends.Clean(hint))
		}
	}
	p.read(w, w.Report, b.String(), steps(w))
	return nil
}

// steps returns the files and commands after a run, the most urgent first.
func steps(w *frame.Wizard) [][2]string {
	var all [][2]string
	run, s := w.Result.Run, w.Result.Status
	unfinished := s == engine.StatusPartial || s == engine.StatusInterrupted || s == engine.StatusFailed
	if run != "" && unfinished {
		all = append(all, [2]string{"continue", "rdma-setup resume " + run})
	}
	if w.Saved != "" {
		all = append(all, [2]string{"repeat", w.Fabric.ReplayCommand(w.Saved)})
	}
	if run != "" {
		all = append(all, [2]string{"report", "rdma-setup report " + run})
		if unfinished || !w.Fabric.Private(w.Login) { // the private lab ends with the wizard
			all = append(all, [2]string{"roll back", "rdma-setup rollback " + run})
		}
	}
	return all
}

func (p *finalPage) Update(w *frame.Wizard, msg tea.Msg) (tea.Cmd, bool) {
	return p.update(w, w.Report, msg)
}

func (p *finalPage) Accept(*frame.Wizard) (tea.Cmd, error) { return tea.Quit, nil }

func (p *finalPage) View(_ *frame.Wizard, width, height int) string { return p.view(width, height) }
