package frame

import (
	"cmp"
	"strings"

	"charm.land/bubbles/v2/cursor"
	tea "charm.land/bubbletea/v2"

	"github.com/rdma-setup/rdma-setup/ui/live"
	"github.com/rdma-setup/rdma-setup/ui/theme"
)

// Update handles every message of the wizard.
func (w *Wizard) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		w.width, w.height = msg.Width, msg.Height
		return w, nil // pages get their size when they draw
	case tea.BackgroundColorMsg:
		return w, w.background(msg.IsDark())
	case cursor.BlinkMsg:
		return w, nil // a cursor that does not blink: an idle page sends nothing
	case stopMsg:
		return w, w.interrupt()
	case doneMsg:
		w.Busy, w.cancel = "", nil
		return w, msg.then(w, msg.err)
	case restMsg:
		return w, w.complete(msg.of)
	case editedMsg:
		return w, w.edited(msg)
	case questionMsg:
		w.questions = append(w.questions, msg)
		w.help, w.leaving = false, false
		w.glass.cover()
		return w, tea.ClearScreen // showing the same question twice would draw nothing, and keys are ignored until something is drawn
	case tea.KeyPressMsg:
		return w, w.key(msg)
	case tea.PasteMsg:
		msg.Content = strings.TrimRight(msg.Content, "\r\n") // a pasted line with its line break
		if q := w.question(); q != nil && q.Secret != "" && !w.glass.dark() {
			q.typed += msg.Content
			return w, nil
		}
		if w.question() != nil || w.clash != nil || w.Busy != "" || w.help || w.leaving || w.glass.dark() {
			return w, nil
		}
		w.Err = nil
		cmd, _ := w.Page().Update(w, msg)
		return w, cmd
	}
	cmd, _ := w.Page().Update(w, msg)
	return w, cmd
}

// background sets colours that fit the terminal's background, if it can be queried.
func (w *Wizard) background(dark bool) tea.Cmd {
	fit := theme.New(w.Theme.Colour, w.Theme.ASCII, dark)
	if !w.Theme.Colour || fit.Title.GetForeground() == w.Theme.Title.GetForeground() {
		return nil
	}
	w.Theme = fit
	if w.at > 0 || w.Busy != "" {
		return nil // pages read it when they are shown
	}
	return w.Page().Enter(w)
}

func (w *Wizard) key(msg tea.KeyPressMsg) tea.Cmd {
	key := msg.String()
	switch {
	case key == "ctrl+c":
		return w.interrupt()
	case w.leaving:
		w.leaving = false
		if key == "y" {
			return tea.Quit
		}
		return nil
	case w.help:
		w.help = false
		return nil
	case w.question() != nil:
		if !w.glass.dark() {
			w.decide(&w.questions[0], msg) // the operation may have stopped waiting; then the answer is ignored
		}
		return nil
	case w.Busy != "":
		if key == "esc" && w.cancel != nil {
			w.cancel()
			w.Busy = "cancelling"
		}
		return nil // keys typed ahead must not reach the next page
	case w.glass.dark():
		return nil
	case w.clash != nil:
		return w.settle(msg)
	case w.savable() && key == "ctrl+s":
		return w.save(live.AskFirst)
	case w.editable() && key == "ctrl+e":
		return w.edit()
	}
	w.said = ""
	wrong := w.Err
	w.Err = nil // the operator has read it and continues
	if cmd, used := w.Page().Update(w, msg); used {
		return cmd
	}
	w.Err = cmp.Or(w.Err, wrong)
	switch key {
	case "enter", "f2":
		if w.at == connectAt && w.looking == nil {
			w.LookOnly = key == "f2"
		} else if key == "f2" {
			return nil
		}
		cmd, err := w.Page().Accept(w)
		if err != nil {
			w.Err = err
			return nil
		}
		return cmd
	case "s":
		if w.savable() {
			return w.save(live.AskFirst)
		}
	case "e":
		if w.editable() {
			return w.edit()
		}
	case "esc":
		return w.back()
	case "?", "f1":
		w.help = true
	case "q":
		return w.leave()
	}
	return nil
}

// savable reports whether there are answers to save: the login is complete, and no password is being typed.
func (w *Wizard) savable() bool { return w.Begun() && w.looking == nil && w.at != PasswordAt }

// editable reports whether changed answers still have an effect.
func (w *Wizard) editable() bool {
	return w.savable() && w.at >= HostsAt && w.running == nil && w.rest == nil
}

// interrupt handles Ctrl-C. During a run, the first one lets running steps finish and the second one stops at once;
// before and after a run, and at a question, it quits.
func (w *Wizard) interrupt() tea.Cmd {
	if w.question() != nil {
		return w.leaveQuestions()
	}
	if w.running == nil || isClosed(w.running) {
		w.interrupted = true
		return tea.Quit
	}
	w.stopping++
	switch {
	case !isClosed(w.stop):
		close(w.stop)
	case w.cancel != nil:
		w.cancel()
	}
	return nil
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// back shows the previous page, unless an action was started that cannot be undone by going back.
func (w *Wizard) back() tea.Cmd {
	switch {
	case w.running != nil:
		return nil
	case w.looking != nil:
		return w.Show(0)
	case w.at == 0:
		return w.leave()
	case w.at == PasswordAt+1:
		w.leaveRest() // the next login reads everything again, and a failed read must not interrupt the typing
		return w.Show(0)
	}
	return w.Show(w.at - 1)
}

// leave asks whether to quit; once the report is shown, it quits without asking.
func (w *Wizard) leave() tea.Cmd {
	switch {
	case reported(w.looking):
		return tea.Quit
	case w.running == nil:
		w.leaving = true
	case isClosed(w.running):
		return tea.Quit
	}
	return nil
}

// reported reports whether the page of a check shows its report.
func reported(look Page) bool {
	r, ok := look.(interface{ Reported() bool })
	return ok && r.Reported()
}
