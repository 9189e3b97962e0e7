package form

import (
	"context"
	"errors"

	tea "charm.land/bubbletea/v2"
)

// Update is the wizard's one loop.
func (w *wizard) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		w.width, w.height = msg.Width, msg.Height
		return w, nil // pages are told their size when they draw
	case stopMsg:
		return w, w.interrupt()
	case doneMsg:
		w.busy, w.cancel = "", nil
		if msg.err != nil {
			if !errors.Is(msg.err, context.Canceled) {
				w.err = msg.err
			}
			return w, nil
		}
		return w, msg.then(w)
	case forwardMsg:
		return w, w.show(w.at + 1)
	case backMsg:
		return w, w.goBack()
	case tea.KeyPressMsg:
		return w, w.key(msg)
	}
	cmd, _ := w.page().update(w, msg)
	return w, cmd
}

func (w *wizard) key(msg tea.KeyPressMsg) tea.Cmd {
	key := msg.String()
	switch {
	case key == "ctrl+c":
		return w.interrupt()
	case w.leave:
		if key == "y" || key == "enter" {
			return tea.Quit
		}
		w.leave = false
		return nil
	case w.help:
		w.help = false
		return nil
	case w.busy != "":
		if key == "esc" && w.cancel != nil && w.running == nil {
			w.cancel()
		}
		return nil // keys typed ahead must not land in the next page
	}
	if cmd, used := w.page().update(w, msg); used {
		w.err = nil
		return cmd
	}
	switch key {
	case "enter":
		cmd, err := w.page().accept(w)
		if err != nil {
			w.err = err
			return nil
		}
		return cmd
	case "esc", "shift+tab":
		return back
	case "?":
		w.help = true
	case "q":
		w.leave = true
	}
	return nil
}

// interrupt is Ctrl-C: while a run is on, the first lets running steps finish, the second stops at once; before and
// after it leaves.
func (w *wizard) interrupt() tea.Cmd {
	if w.running == nil || isClosed(w.running) {
		return tea.Quit
	}
	if !w.stopped {
		w.stopped = true
		close(w.stop)
		return nil
	}
	if w.cancel != nil {
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

// goBack shows the page before, as long as nothing was begun that cannot be taken back by going back.
func (w *wizard) goBack() tea.Cmd {
	if w.at == 0 {
		w.leave = true
		return nil
	}
	if w.running != nil {
		return nil
	}
	to := w.at - 1
	if _, password := w.pages[to].(*passwordPage); password {
		to--
	}
	return w.show(to)
}
