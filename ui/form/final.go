package form

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/ui/live"
	"github.com/rdma-setup/rdma-setup/ui/plain"
	uireport "github.com/rdma-setup/rdma-setup/ui/report"
	"github.com/rdma-setup/rdma-setup/ui/theme"
	"github.com/rdma-setup/rdma-setup/wizard/engine"
)

// finalPage is the report and, always in sight, where to go from here.
type finalPage struct {
	scroll *live.Scroll
	where  string
}

func (p *finalPage) title() string     { return "Report" }
func (p *finalPage) hints() []hint     { return []hint{{"Up Down", "scroll"}} }
func (p *finalPage) enterWord() string { return "finish" }
func (p *finalPage) typing() bool      { return false }

func (p *finalPage) enter(w *wizard) tea.Cmd {
	var b strings.Builder
	if w.report != nil {
		_ = uireport.Terminal(&b, w.report, w.theme)
	}
	if w.runErr != nil {
		fmt.Fprintf(&b, "\n%s\n", w.theme.Bad.Render("error: "+plain.Clean(w.runErr.Error())))
		if hint := backends.HintOf(w.runErr); hint != "" {
			fmt.Fprintf(&b, "hint:  %s\n", plain.Clean(hint))
		}
	}
	p.scroll = live.NewScroll(w.theme, b.String())
	p.where = w.theme.Title.Render("Where to go from here")
	for _, s := range steps(w) {
		p.where += "\n  " + w.theme.Quiet.Render(fmt.Sprintf("%-8s", s[0])) + plain.Clean(s[1])
	}
	return nil
}

// steps are the files and commands that follow a run, the most urgent first.
func steps(w *wizard) [][2]string {
	var all [][2]string
	run := w.result.Run
	if s := w.result.Status; run != "" && (s == engine.StatusPartial || s == engine.StatusInterrupted || s == engine.StatusFailed) {
		all = append(all, [2]string{"go on", "rdma-setup resume " + run})
	}
	if w.saved != "" {
		all = append(all, [2]string{"again", w.fabric.ReplayCommand(w.saved)})
	}
	if run != "" {
		all = append(all, [2]string{"report", "rdma-setup report " + run}, [2]string{"undo", "rdma-setup rollback " + run})
	}
	return all
}

func (p *finalPage) update(_ *wizard, msg tea.Msg) (tea.Cmd, bool) {
	return nil, p.scroll.Update(msg)
}

func (p *finalPage) accept(*wizard) (tea.Cmd, error) { return tea.Quit, nil }

func (p *finalPage) view(_ *wizard, width, height int) string {
	where := theme.Fold(p.where, width)
	top := p.scroll.View(width, height-lines(where)-1)
	return top + strings.Repeat("\n", max(1, height-lines(top)-lines(where)+1)) + where
}
