package frame

import (
	"errors"
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/ui/theme"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
)

// The smallest screen on which every page fits, and the width from which the side panel is shown.
const (
	minWidth, minHeight = 80, 24
	sidePanelFrom       = 116
	sidePanelWidth      = 36
)

// View draws the whole screen.
func (w *Wizard) View() tea.View {
	v := tea.NewView(w.draw())
	v.AltScreen = true
	v.WindowTitle = "rdma-setup"
	w.glass.composed()
	return v
}

func (w *Wizard) draw() string {
	if w.width == 0 {
		return ""
	}
	if w.width < minWidth || w.height < minHeight {
		words := fmt.Sprintf("This screen is %dx%d.\nrdma-setup needs %dx%d:\nmake it larger.", w.width, w.height, minWidth, minHeight)
		if w.running != nil && !isClosed(w.running) {
			words += "\nThe run continues."
		}
		return lipgloss.NewStyle().MaxWidth(w.width).MaxHeight(max(1, w.height)).Render(theme.Wrap(words, w.width))
	}
	head, foot := w.header(), w.footer()
	body := w.height - lipgloss.Height(head) - lipgloss.Height(foot)
	width := w.width - 2
	side := ""
	if w.width >= sidePanelFrom {
		width -= sidePanelWidth
		side = w.sidePanel(body)
	}
	content := helpText
	if q := w.question(); q != nil {
		content = w.questionView(q, width)
	} else if w.clash != nil && !w.help {
		content = w.clash.view(w.Theme, width, body)
	} else if !w.help {
		content = w.Page().View(w, width, body)
	}
	// the page may have learnt while it was drawn that its end is shown
	foot = lipgloss.NewStyle().MaxHeight(lipgloss.Height(foot)).Render(w.footer())
	box := lipgloss.NewStyle().Width(width).Height(body).MaxHeight(body).Render(content)
	if side != "" {
		box = lipgloss.JoinHorizontal(lipgloss.Top, box, " ", side)
	}
	return head + "\n" + lipgloss.NewStyle().PaddingLeft(1).Render(box) + "\n" + foot
}

func (w *Wizard) header() string {
	where := "  "
	if w.looking == nil {
		// The password page is part of the login and is usually skipped: it has no number.
		number := w.at + 1
		if w.at >= PasswordAt {
			number--
		}
		where = fmt.Sprintf("  %d/%d  ", number, len(w.pages)-1)
	}
	left := w.Theme.Title.Render(" rdma-setup") + w.Theme.Quiet.Render(where) + w.Theme.Title.Render(w.Page().Title())
	right := w.Theme.Badges(len(w.Fabric.Insecure()) > 0, w.Fabric.Simulated())
	if right != "" {
		right += " "
	}
	gap := max(1, w.width-lipgloss.Width(left)-lipgloss.Width(right))
	return left + strings.Repeat(" ", gap) + right + "\n" + w.rule()
}

func (w *Wizard) rule() string {
	line := "─"
	if w.Theme.ASCII {
		line = "-"
	}
	return w.Theme.Quiet.Render(strings.Repeat(line, w.width))
}

// footer shows the operation in progress or the error, then the keys.
func (w *Wizard) footer() string {
	status := ""
	switch {
	case w.leaving:
		status = w.Theme.Warning.Render(" Leave? Nothing has been changed. Press y to leave, any other key to stay.")
	case w.question() != nil:
		status = w.Theme.Warning.Render(" No login is tried before you answer.")
	case w.stopping > 1 && !isClosed(w.running):
		status = w.Theme.Warning.Render(" Stopping immediately. The journal is kept; continue later with rdma-setup resume.")
	case w.stopping == 1 && !isClosed(w.running):
		status = w.Theme.Warning.Render(" Waiting for running steps to finish. Ctrl-C again stops at once.")
	case w.Busy == "cancelling":
		status = w.Theme.Accent.Render(" cancelling ...")
	case w.Busy != "":
		status = w.Theme.Accent.Render(theme.Clip(" "+w.Busy+" ...", w.width-1))
	case w.Err != nil:
		status = w.problem()
	case w.said != "":
		status = w.Theme.Good.Render(theme.Clip(" "+w.said, w.width-1))
	}
	return status + "\n" + w.rule() + "\n" + w.keys()
}

// keys are the keys of the page and how to get help, on as many lines as they need.
func (w *Wizard) keys() string {
	help := Hint{"?", "help"}
	if w.Page().Typing() {
		help.Key = "F1"
	}
	room := w.width - len(help.Key) - len(help.Does) - 4
	shown := w.hint(help)
	asks := w.running != nil && w.Page().Typing() // the run page reads a filter or a yes or no
	if w.question() != nil || w.clash != nil || w.edits() || w.leaving || w.help || asks || w.Busy != "" {
		shown = "" // the keys belong to what is shown over the page, or to what is being waited for
	}
	lines, used := []string{" "}, 1
	for _, h := range w.hints() {
		n := len(h.Key) + len(h.Does) + 3
		if used+n > room && used > 1 {
			if len(lines) == 1 {
				lines[0] += strings.Repeat(" ", max(0, room-used+1)) + shown
			}
			lines, used = append(lines, " "), 1
		}
		lines[len(lines)-1] += w.hint(h) + "  "
		used += n
	}
	if len(lines) == 1 {
		lines[0] += strings.Repeat(" ", max(0, room-used+1)) + shown
	}
	return strings.Join(lines, "\n")
}

// edits reports whether Enter and Esc belong to a text field or a list on the page.
func (w *Wizard) edits() bool {
	l, ok := w.Page().(interface{ Editing() bool })
	return ok && l.Editing()
}

// hints returns the keys that have an effect now, the most useful first.
func (w *Wizard) hints() []Hint {
	if q := w.question(); q != nil {
		return q.hints()
	}
	switch {
	case w.leaving:
		return []Hint{{"y", "leave"}, {"Any other key", "stay"}}
	case w.help:
		return []Hint{{"Any key", "close the help"}}
	case w.clash != nil:
		return []Hint{{"y", "overwrite"}, {"n", "save beside it"}, {"Esc", "save nothing"}}
	case w.edits():
		return []Hint{{"Enter", "keep"}, {"Esc", "give up"}}
	}
	if w.Busy != "" {
		if w.Busy == "cancelling" || w.cancel == nil {
			return []Hint{{"Ctrl-C", "leave"}}
		}
		return []Hint{{"Esc", "cancel"}, {"Ctrl-C", "leave"}}
	}
	var all []Hint
	if word := w.Page().EnterLabel(); word != "" {
		all = append(all, Hint{"Enter", word})
	}
	if w.running == nil {
		word := "back"
		if w.at == 0 && w.looking == nil && w.Page().EnterLabel() != "go back" {
			word = "leave"
		}
		all = append(all, Hint{"Esc", word})
	}
	all = append(all, w.Page().Hints()...)
	if w.savable() && (w.running == nil || isClosed(w.running)) {
		save := Hint{"s", "save"}
		if w.Page().Typing() {
			save.Key = "Ctrl-S"
		}
		all = append(all, save)
	}
	if w.editable() {
		all = append(all, Hint{"Ctrl-E", "editor"})
	}
	if !w.Page().Typing() && (w.running == nil || isClosed(w.running)) {
		all = append(all, Hint{"q", "leave"})
	}
	return all
}

func (w *Wizard) hint(h Hint) string {
	return w.Theme.Accent.Render(h.Key) + " " + w.Theme.Quiet.Render(h.Does)
}

func (w *Wizard) problem() string {
	what, hint := w.Err.Error(), backends.HintOf(w.Err)
	if refused, ok := errors.AsType[*plan.Refused](w.Err); ok && len(refused.Refusals) > 0 {
		hint = refused.Refusals[0].Remedy
	}
	s := w.Theme.Bad.Render(clipLines(theme.Fold(backends.Clean(" error: "+what), w.width-1), w.width-1, 2))
	if hint != "" {
		s += "\n" + clipLines(theme.Fold(backends.Clean(" hint:  "+hint), w.width-1), w.width-1, 2)
	}
	return s
}
