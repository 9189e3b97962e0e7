package form

import (
	"strings"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"

	"github.com/rdma-setup/rdma-setup/ui/form/frame"
	"github.com/rdma-setup/rdma-setup/ui/live"
	"github.com/rdma-setup/rdma-setup/ui/plain"
	"github.com/rdma-setup/rdma-setup/ui/theme"
)

// reviewPage shows the whole plan and its cost; Enter is the consent.
type reviewPage struct {
	scroll *live.Scroll
	empty  bool
}

func (p *reviewPage) Title() string { return "Plan" }
func (p *reviewPage) Hints() []frame.Hint {
	return []frame.Hint{{Key: "PgUp PgDn", Does: "scroll"}, {Key: "s", Does: "save the answers"}}
}
func (p *reviewPage) Typing() bool { return false }
func (p *reviewPage) EnterWord() string {
	if p.empty {
		return "measure"
	}
	return "CARRY OUT"
}

func (p *reviewPage) Enter(w *frame.Wizard) tea.Cmd {
	var b strings.Builder
	_ = plain.Changes(&b, w.Plan)
	p.empty = w.Plan.Empty()
	p.scroll = live.NewScroll(w.Theme, paintPlan(w.Theme, b.String()))
	return nil
}

// paintPlan colours the text of a plan, so that the eye finds the targets, what is done to them, and what it disrupts.
func paintPlan(t theme.Theme, text string) string {
	signs := map[byte]lipgloss.Style{'+': t.Good, '-': t.Bad, '~': t.Accent, '?': t.Warning}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		words := strings.TrimLeft(line, " ")
		indent := line[:len(line)-len(words)]
		switch {
		case words == "":
		case strings.HasPrefix(words, "note: "):
			lines[i] = indent + t.Warning.Render("note:") + words[len("note:"):]
		case indent == "":
			lines[i] = t.Title.Render(words)
		case strings.HasPrefix(words, "disrupts: "):
			lines[i] = indent + t.Warning.Render(words)
		case strings.HasPrefix(words, "cannot be undone: "):
			lines[i] = indent + t.Bad.Render(words)
		case len(indent) == 2:
			lines[i] = indent + signs[words[0]].Render(words[:1]) + words[1:]
		case !strings.Contains(words, " -> "):
			lines[i] = indent + t.Quiet.Render(words)
		}
	}
	return strings.Join(lines, "\n")
}

func (p *reviewPage) Update(w *frame.Wizard, msg tea.Msg) (tea.Cmd, bool) {
	if k, ok := msg.(tea.KeyPressMsg); ok && k.String() == "s" {
		w.Err = save(w)
		return nil, w.Err == nil
	}
	return nil, p.scroll.Update(msg)
}

// save writes the answers; the page says where.
func save(w *frame.Wizard) error {
	path, err := w.Fabric.SaveAnswers(w.Answers)
	if err == nil {
		w.Saved = path
	}
	return err
}

func (p *reviewPage) Accept(w *frame.Wizard) (tea.Cmd, error) {
	if err := save(w); err != nil {
		return nil, err
	}
	return w.Next(), nil
}

func (p *reviewPage) View(w *frame.Wizard, width, height int) string {
	top := w.Theme.Title.Render(theme.Wrap("There is nothing to change. Enter goes on to the measurement.", width)) + "\n"
	if !p.empty {
		top = w.Theme.Warning.Render(theme.Fold("Cost: "+plain.Cost(w.Plan), width)) + "\n" +
			w.Theme.Title.Render(theme.Wrap("Enter carries this out. Nothing beyond it is done without asking again.", width)) + "\n"
	}
	if w.Saved != "" {
		top += w.Theme.Quiet.Render(theme.Fold("Answers saved: "+plain.Clean(w.Saved), width)) + "\n"
	}
	return top + "\n" + p.scroll.View(width, height-strings.Count(top, "\n")-1)
}
