package frame

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/ui/form/entry"
	"github.com/rdma-setup/rdma-setup/ui/live"
	"github.com/rdma-setup/rdma-setup/ui/plain"
	"github.com/rdma-setup/rdma-setup/ui/theme"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// A clash is an existing file with other answers: the difference is shown, and the operator decides what to do with it.
type clash struct {
	path   string
	scroll *live.Scroll
}

// keep stores the page's input in the answers; incomplete input is ignored.
func (w *Wizard) keep() error {
	if p, ok := w.Page().(interface{ Keep(*Wizard) error }); ok {
		return p.Keep(w)
	}
	return nil
}

// keepDraft keeps the input of the page on which the operator quit, or on which the terminal was lost.
func (w *Wizard) keepDraft() {
	if w.running != nil || !w.savable() {
		return
	}
	if err := w.keep(); err == nil || w.far > HostsAt {
		_ = w.Fabric.KeepDraft(w.Answers)
	}
}

// save writes the answers. If another file exists it asks.
func (w *Wizard) save(how live.Saving) tea.Cmd {
	incomplete := w.keep() // the other pages are saved all the same
	path, err := w.Fabric.SaveAnswers(w.Answers, how)
	var exists *live.Exists
	switch w.clash = nil; {
	case errors.As(err, &exists):
		w.clash = &clash{backends.Clean(exists.Path), live.NewScroll(w.Theme, paintDiff(w.Theme, exists.Diff))}
	case err != nil:
		w.Err = err
	default:
		w.Say("Answers saved: " + path)
		w.Saved, w.Err = path, nil
		if incomplete != nil {
			w.Err = backends.Usagef("", "correct the page and save again", "saved without all of this page: %w", incomplete)
		}
	}
	return nil
}

func paintDiff(t theme.Theme, diff string) string {
	lines := strings.Split(diff, "\n")
	for i, l := range lines {
		switch {
		case strings.HasPrefix(l, "-"):
			lines[i] = t.Bad.Render(l)
		case strings.HasPrefix(l, "+"):
			lines[i] = t.Good.Render(l)
		}
	}
	return strings.Join(lines, "\n")
}

// settle handles the keys of a clash.
func (w *Wizard) settle(k tea.KeyPressMsg) tea.Cmd {
	switch k.String() {
	case "y":
		return w.save(live.Overwrite)
	case "n":
		return w.save(live.Beside)
	case "esc":
		w.clash = nil
	default:
		w.clash.scroll.Update(k)
	}
	return nil
}

func (c *clash) view(t theme.Theme, width, height int) string {
	top := theme.Wrap(fmt.Sprintf("%s exists with other answers. y overwrites it, n saves beside it under another name, Esc saves nothing.",
		c.path), width)
	return t.Title.Render(top) + "\n\n" + c.scroll.View(width, height-strings.Count(top, "\n")-2)
}

// An editedMsg brings the answers back from the editor.
type editedMsg struct {
	before, after string
	err           error
}

// edit opens the answers in the operator's editor; invalid ones are opened again with the errors above each line.
func (w *Wizard) edit() tea.Cmd {
	_ = w.keep() // the editor can complete the page
	var b strings.Builder
	if err := answers.Save(&b, w.Answers); err != nil {
		return w.Fail(err)
	}
	text := cmp.Or(w.rough, b.String())
	c, read, err := w.Fabric.Editor(text)
	if err != nil {
		return w.Fail(err)
	}
	return tea.Exec(editor{c}, func(err error) tea.Msg {
		after, readErr := read()
		return editedMsg{b.String(), after, cmp.Or(err, readErr)}
	})
}

// An editor is a command that starts shortly after the screen has stopped. In bubbletea 2.0.9 the screen freezes if a command ends at
// once, such as an EDITOR that does not exist (charmbracelet/bubbletea issue 1778): the renderer's ticker is stopped after it was
// restarted.
type editor struct{ *exec.Cmd }

// SetStdin implements tea.ExecCommand.
func (e editor) SetStdin(r io.Reader) {
	if e.Stdin == nil {
		e.Stdin = r
	}
}

// SetStdout implements tea.ExecCommand.
func (e editor) SetStdout(w io.Writer) {
	if e.Stdout == nil {
		e.Stdout = w
	}
}

// SetStderr implements tea.ExecCommand.
func (e editor) SetStderr(w io.Writer) {
	if e.Stderr == nil {
		e.Stderr = w
	}
}

// Run implements tea.ExecCommand.
func (e editor) Run() error {
	<-time.After(10 * time.Millisecond)
	return e.Cmd.Run()
}

// edited handles the answers after the editor. Errors that existed before the edit are ignored: the answers may not be complete
// yet.
func (w *Wizard) edited(m editedMsg) tea.Cmd {
	if m.err != nil {
		return w.Fail(backends.Permanentf("", "set EDITOR to an editor that runs in this terminal",
			"the editor failed, the answers are as before: %w", m.err))
	}
	after := entry.Unmarked(m.after)
	if after == m.before {
		w.rough = ""
		return nil
	}
	a, wrong := answers.Edited(m.before, after)
	if len(wrong) == 0 {
		wrong = entry.Missing(a, w.Overview, after)
	}
	if len(wrong) > 0 {
		w.rough = entry.Marked(after, wrong)
		where := ""
		if wrong[0].Line > 0 {
			where = fmt.Sprintf("line %d: ", wrong[0].Line)
		}
		w.Err = backends.Usagef("", "press Ctrl-E to correct them: each is marked above its line",
			"%s of the edited answers cannot be used; %s%s", plain.Counted(len(wrong), "value"), where, wrong[0].What)
		return nil
	}
	w.Answers = a
	return w.Show(min(w.at, VMsAt))
}
