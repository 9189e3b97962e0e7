package form

import (
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/rdma-setup/rdma-setup/ui/live"
	"github.com/rdma-setup/rdma-setup/ui/plain"
)

// reviewPage shows the whole plan and its cost; Enter is the consent.
type reviewPage struct{ scroll *live.Scroll }

func (p *reviewPage) title() string { return "Plan" }
func (p *reviewPage) hints() string { return "Up Down scroll  s save the answers" }
func (p *reviewPage) typing() bool  { return false }

func (p *reviewPage) enter(w *wizard) tea.Cmd {
	var b strings.Builder
	_ = plain.Plan(&b, w.plan)
	p.scroll = live.NewScroll(w.theme, b.String())
	return nil
}

func (p *reviewPage) update(w *wizard, msg tea.Msg) (tea.Cmd, bool) {
	if k, ok := msg.(tea.KeyPressMsg); ok && k.String() == "s" {
		w.save()
		return nil, true
	}
	return nil, p.scroll.Update(msg)
}

// save writes the answers; the page says where.
func (w *wizard) save() {
	path, err := w.fabric.SaveAnswers(w.answers)
	if err != nil {
		w.err = err
		return
	}
	w.saved = path
}

func (p *reviewPage) accept(w *wizard) (tea.Cmd, error) {
	w.save()
	if w.err != nil {
		return nil, w.err
	}
	return forward, nil
}

func (p *reviewPage) view(w *wizard, width, height int) string {
	consent := "Enter carries this out. Nothing beyond it is done without asking again.  "
	if w.plan.Empty() {
		consent = "There is nothing to change. Enter goes on to the measurement.  "
	}
	cost := w.theme.Warning.Render(wrap("Cost: "+plain.Cost(w.plan), width))
	saved := ""
	if w.saved != "" {
		saved = "\n" + w.theme.Quiet.Render("answers saved: "+w.saved)
	}
	top := cost + "\n" + w.theme.Title.Render(wrap(consent, width)) + saved + "\n\n"
	return top + p.scroll.View(width, height-strings.Count(top, "\n"))
}
