package form

import (
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/rdma-setup/rdma-setup/ui/live"
	"github.com/rdma-setup/rdma-setup/ui/plain"
	"github.com/rdma-setup/rdma-setup/ui/theme"
)

// reviewPage shows the whole plan and its cost; Enter is the consent.
type reviewPage struct {
	scroll *live.Scroll
	empty  bool
}

func (p *reviewPage) title() string { return "Plan" }
func (p *reviewPage) hints() []hint {
	return []hint{{"PgUp PgDn", "scroll"}, {"s", "save the answers"}}
}
func (p *reviewPage) typing() bool { return false }
func (p *reviewPage) enterWord() string {
	if p.empty {
		return "measure"
	}
	return "CARRY OUT"
}

func (p *reviewPage) enter(w *wizard) tea.Cmd {
	var b strings.Builder
	_ = plain.Changes(&b, w.plan)
	p.empty = w.plan.Empty()
	p.scroll = live.NewScroll(w.theme, b.String())
	return nil
}

func (p *reviewPage) update(w *wizard, msg tea.Msg) (tea.Cmd, bool) {
	if k, ok := msg.(tea.KeyPressMsg); ok && k.String() == "s" {
		w.err = w.save()
		return nil, w.err == nil
	}
	return nil, p.scroll.Update(msg)
}

// save writes the answers; the page says where.
func (w *wizard) save() error {
	path, err := w.fabric.SaveAnswers(w.answers)
	if err == nil {
		w.saved = path
	}
	return err
}

func (p *reviewPage) accept(w *wizard) (tea.Cmd, error) {
	if err := w.save(); err != nil {
		return nil, err
	}
	return w.next(), nil
}

func (p *reviewPage) view(w *wizard, width, height int) string {
	top := w.theme.Title.Render(theme.Wrap("There is nothing to change. Enter goes on to the measurement.", width)) + "\n"
	if !p.empty {
		top = w.theme.Warning.Render(theme.Fold("Cost: "+plain.Cost(w.plan), width)) + "\n" +
			w.theme.Title.Render(theme.Wrap("Enter carries this out. Nothing beyond it is done without asking again.", width)) + "\n"
	}
	if w.saved != "" {
		top += w.theme.Quiet.Render(theme.Fold("Answers saved: "+plain.Clean(w.saved), width)) + "\n"
	}
	return top + "\n" + p.scroll.View(width, height-strings.Count(top, "\n")-1)
}
