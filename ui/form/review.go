package form

import (
	"context"
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/ui/form/frame"
	"github.com/rdma-setup/rdma-setup/ui/live"
	"github.com/rdma-setup/rdma-setup/ui/plain"
	"github.com/rdma-setup/rdma-setup/ui/theme"
)

// reviewPage shows the whole plan and its cost. On the private lab Enter is the consent; elsewhere Enter scrolls, and the plan is
// accepted by typing yes once its end has been shown: a repeating key must never start a run.
type reviewPage struct {
	scroll  *live.Scroll
	empty   bool
	private bool
	offered bool   // a rehearsal
	shown   bool   // the end of the plan has been drawn
	typed   string // the letters typed of the word yes
	early   bool   // the last key was a letter of the word yes, before the end: the s of yes must not save the answers

	rehearsal *live.Scroll // shown instead of the plan; nil otherwise
}

const consent = "yes"

func (p *reviewPage) Title() string {
	if p.rehearsal != nil {
		return "Rehearsal: nothing was written"
	}
	return "Plan"
}
func (p *reviewPage) Hints() []frame.Hint {
	switch {
	case p.rehearsal != nil:
		return []frame.Hint{{Key: "Enter", Does: "scroll"}}
	case p.private:
		return []frame.Hint{{Key: "PgUp PgDn", Does: "scroll"}}
	}
	accept := frame.Hint{Key: "yes Enter", Does: p.what()}
	if !p.scroll.Ended() { // as wide: a footer that grows by a line would move the end off the screen
		accept = frame.Hint{Key: "End", Does: fmt.Sprintf("%-*s", len("yes Enter")+len(p.what())-len("End"), "last page")}
	}
	hints := []frame.Hint{{Key: "Enter", Does: "scroll"}, accept}
	if p.offered {
		hints = append(hints, frame.Hint{Key: "r", Does: "rehearse"})
	}
	return hints
}
func (p *reviewPage) Typing() bool { return p.typed != "" || p.rehearsal != nil }
func (p *reviewPage) EnterLabel() string {
	if !p.private {
		return ""
	}
	return p.what()
}

// what returns the effect of accepting the plan.
func (p *reviewPage) what() string {
	if p.empty {
		return "measure"
	}
	return "APPLY"
}

func (p *reviewPage) Enter(w *frame.Wizard) tea.Cmd {
	var b strings.Builder
	_ = plain.Changes(&b, w.Plan)
	for _, l := range w.Loads { // repeated here because on a small screen the cost above is cut off, and a plan without changes has none
		b.WriteString("note: afterwards the fabric is loaded: " + plain.LoadLine(l) + "\n")
	}
	p.empty, p.private, p.typed = w.Plan.Empty(), w.Fabric.Private(w.Login), ""
	p.shown, p.early, p.rehearsal, p.offered = false, false, nil, w.Fabric.Rehearsable(w.Login)
	p.scroll = live.NewScroll(w.Theme, paintPlan(w.Theme, b.String()))
	return nil
}

// paintPlan colours the text of a plan to highlight the targets, the changes, and the disruptions.
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
	k, ok := msg.(tea.KeyPressMsg)
	switch {
	case p.rehearsal != nil:
		return nil, p.rehearsed(msg)
	case ok && p.typing(w, k):
		return nil, true
	case ok && p.offered && k.String() == "r":
		return p.rehearse(w), true
	}
	return nil, p.scroll.Update(msg)
}

// rehearse runs the plan on a twin of the site and shows the result.
func (p *reviewPage) rehearse(w *frame.Wizard) tea.Cmd {
	a := *w.Answers
	var text string
	return w.Do("rehearsing on a simulated copy: nothing is written", func(ctx context.Context) (err error) {
		text, err = w.Fabric.Rehearse(ctx, &a)
		return err
	}, func(w *frame.Wizard, err error) tea.Cmd {
		if err != nil {
			return w.Fail(err)
		}
		p.rehearsal = live.NewScroll(w.Theme, text)
		return nil
	})
}

// rehearsed handles the keys while a rehearsal is shown: Enter scrolls and never consents, Esc returns to the plan.
func (p *reviewPage) rehearsed(msg tea.Msg) bool {
	k, ok := msg.(tea.KeyPressMsg)
	switch {
	case ok && k.String() == "enter":
		p.rehearsal.PageDown()
	case ok && k.String() == "esc":
		p.rehearsal = nil
	default:
		return p.rehearsal.Update(msg) || ok && strings.Contains(consent, k.String()) // yes must be typed on the plan, not here
	}
	return true
}

// typing handles the keys of the consent and reports whether a key was used.
func (p *reviewPage) typing(w *frame.Wizard, k tea.KeyPressMsg) bool {
	key := k.String()
	early := p.early
	p.early = false
	switch {
	case p.private:
		return false
	case key == "enter" && !p.scroll.Ended():
		p.typed = ""
		p.scroll.PageDown()
	case (key == "y" || key == "e" || key == "s" && early) && p.typed == "" && !p.scroll.Ended():
		p.early = true
		w.Err = backends.Usagef("", "press Enter or PgDn to see the rest", "read the plan to its end first")
	case key == "y" && p.typed == "":
		p.typed = key
	case p.typed == "":
		return false
	case key == "esc":
		p.typed = ""
	case key == "backspace":
		p.typed = p.typed[:len(p.typed)-1]
	case len(k.Text) == 1 && len(p.typed) < 10:
		p.typed += k.Text
	default:
		return key != "enter" && !strings.HasPrefix(key, "pg") && key != "up" && key != "down"
	}
	return true
}

func (p *reviewPage) Accept(w *frame.Wizard) (tea.Cmd, error) {
	if !p.private && p.typed != consent {
		p.typed = ""
		return nil, backends.Usagef("", "type yes, then press Enter; Esc goes back", "the plan was not accepted")
	}
	path, err := w.Fabric.SaveAnswers(w.Answers, live.Beside)
	if err != nil {
		return nil, err
	}
	w.Saved = path
	return w.Next(), nil
}

func (p *reviewPage) View(w *frame.Wizard, width, height int) string {
	if p.rehearsal != nil {
		return p.rehearsal.View(width, height)
	}
	text := p.draw(w, width, height)
	if p.shown != p.scroll.Ended() { // the end is visible now, so the text above it changes
		p.shown = p.scroll.Ended()
		text = p.draw(w, width, height)
	}
	return text
}

// least is the minimum number of lines for the list of changes, however long the cost is.
const least = 6

func (p *reviewPage) draw(w *frame.Wizard, width, height int) string {
	var top string
	if p.empty {
		top = w.Theme.Title.Render(theme.Wrap("There is nothing to change. Measuring loads the fabric. "+
			p.ask("Press Enter to measure.", "measure"), width)) + "\n"
	} else {
		top = p.cost(w, width, height-least)
		top += w.Theme.Title.Render(theme.Wrap(p.ask("Press Enter to apply this plan. Anything beyond it needs your consent again.",
			"apply this plan"), width)) + "\n"
	}
	if w.Saved != "" {
		top += w.Theme.Quiet.Render(theme.Fold(backends.Clean("Answers saved: "+w.Saved), width)) + "\n"
	}
	return top + "\n" + p.scroll.View(width, height-strings.Count(top, "\n")-1)
}

// cost returns the cost of the plan in a limited number of lines.
func (p *reviewPage) cost(w *frame.Wizard, width, most int) string {
	const label, margin = "Cost  ", "      "
	var all []string
	for _, l := range plain.CostLines(w.Plan, w.Answers, w.Overview, w.Loads, w.Expected) {
		all = append(all, strings.Split(theme.Fold(margin+l, width), "\n")...)
	}
	all[0] = label + strings.TrimPrefix(all[0], margin)
	if len(all) > most {
		all = append(all[:max(1, most-1)], margin+"more cost below: see the changes and notes")
	}
	top := ""
	for _, l := range all {
		top += w.Theme.Warning.Render(l) + "\n"
	}
	return top
}

// ask describes how to accept the plan.
func (p *reviewPage) ask(private, what string) string {
	switch {
	case p.private:
		return private
	case p.typed != "":
		return "Type yes, then Enter, to " + what + ": " + p.typed + "_"
	case !p.scroll.Ended():
		return "Scroll to the end (Enter), then type yes to " + what + "."
	}
	return "Type yes, then Enter, to " + what + ". Esc goes back."
}
