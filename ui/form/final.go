package form

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/ui/form/frame"
	"github.com/rdma-setup/rdma-setup/ui/live"
	"github.com/rdma-setup/rdma-setup/ui/render"
	"github.com/rdma-setup/rdma-setup/ui/theme"
	"github.com/rdma-setup/rdma-setup/wizard/engine"
)

// finalPage is the report and, always visible, the next steps.
type finalPage struct {
	scroll *live.Scroll
	where  string
}

func (p *finalPage) Title() string       { return "Report" }
func (p *finalPage) Hints() []frame.Hint { return []frame.Hint{{Key: "Up Down", Does: "scroll"}} }
func (p *finalPage) EnterWord() string   { return "finish" }
func (p *finalPage) Typing() bool        { return false }

func (p *finalPage) Enter(w *frame.Wizard) tea.Cmd {
	var b strings.Builder
	if w.Report != nil {
		_ = render.Terminal(&b, w.Report, w.Theme)
	}
	if w.RunErr != nil {
		fmt.Fprintf(&b, "\n%s\n", w.Theme.Bad.Render("error: "+backends.Clean(w.RunErr.Error())))
		if hint := backends.HintOf(w.RunErr); hint != "" {
			fmt.Fprintf(&b, "hint:  %s\n", backends.Clean(hint))
		}
	}
	p.scroll = live.NewScroll(w.Theme, b.String())
	p.where = w.Theme.Title.Render("Next steps")
	for _, s := range steps(w) {
		p.where += "\n  " + w.Theme.Quiet.Render(fmt.Sprintf("%-11s", s[0])) + backends.Clean(s[1])
	}
	return nil
}

// steps are the files and commands that follow a run, the most urgent first.
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

func (p *finalPage) Update(_ *frame.Wizard, msg tea.Msg) (tea.Cmd, bool) {
	return nil, p.scroll.Update(msg)
}

func (p *finalPage) Accept(*frame.Wizard) (tea.Cmd, error) { return tea.Quit, nil }

func (p *finalPage) View(_ *frame.Wizard, width, height int) string {
	where := theme.Fold(p.where, width)
	top := p.scroll.View(width, height-lines(where)-1)
	return top + strings.Repeat("\n", max(1, height-lines(top)-lines(where)+1)) + where
}
