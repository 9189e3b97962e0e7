package form

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/ui/form/entry"
	"github.com/rdma-setup/rdma-setup/ui/form/frame"
	"github.com/rdma-setup/rdma-setup/ui/live"
	"github.com/rdma-setup/rdma-setup/ui/plain"
	"github.com/rdma-setup/rdma-setup/ui/render"
	"github.com/rdma-setup/rdma-setup/ui/theme"
	"github.com/rdma-setup/rdma-setup/wizard/engine"
	"github.com/rdma-setup/rdma-setup/wizard/report"
)

// A reading shows a report above the steps that follow, and writes it as HTML.
type reading struct {
	reader *live.Reader           // nil until there is something to read
	where  func(width int) string // the steps that follow
}

// read shows a report, the text that follows it, and the next steps.
func (p *reading) read(w *frame.Wizard, r *report.Report, after string, steps [][2]string) {
	steps = backends.Shown(steps)
	p.where = func(width int) string {
		label := 0
		for _, s := range steps {
			label = max(label, len(s[0])+2)
		}
		out := w.Theme.Title.Render("Next steps")
		for _, s := range steps {
			text := theme.Wrap(s[1], max(1, width-label-2))
			out += "\n  " + w.Theme.Quiet.Render(fmt.Sprintf("%-*s", label, s[0])) +
				strings.ReplaceAll(text, "\n", "\n"+strings.Repeat(" ", label+2))
		}
		return out
	}
	p.reader = live.NewReader(w.Theme, func(width int) string {
		var b strings.Builder
		if r != nil {
			_ = render.Screen(&b, r, w.Theme, width)
		}
		return b.String() + after
	})
}

// Typing reports whether letters are meant for the search.
func (p *reading) Typing() bool { return p.reader != nil && p.reader.Typing() }

// Editing reports whether Enter belongs to the search field.
func (p *reading) Editing() bool { return p.Typing() }

func (p *reading) hints() []frame.Hint {
	hints := []frame.Hint{{Key: "h", Does: "write HTML"}}
	for _, k := range p.reader.Keys() {
		hints = append(hints, frame.Hint{Key: k[0], Does: k[1]})
	}
	return hints
}

func (p *reading) update(w *frame.Wizard, r *report.Report, msg tea.Msg) (tea.Cmd, bool) {
	if p.reader == nil {
		return nil, false
	}
	if k, ok := msg.(tea.KeyPressMsg); ok && k.String() == "h" && r != nil && !p.Typing() {
		var b bytes.Buffer
		path, err := "", render.HTML(&b, r)
		if err == nil {
			path, err = w.Fabric.SaveHTML(cmp.Or(r.Run, "look"), b.Bytes())
		}
		if err != nil {
			return w.Fail(err), true
		}
		w.Say("written: " + path)
		return nil, true
	}
	return nil, p.reader.Update(msg)
}

func (p *reading) view(width, height int) string {
	where := p.where(width)
	top := p.reader.View(width, height-lines(where)-1)
	return top + strings.Repeat("\n", max(1, height-lines(top)-lines(where)+1)) + where
}

// finalPage is the report with the next steps, which are always visible.
type finalPage struct{ reading }

func (p *finalPage) Title() string       { return "Report" }
func (p *finalPage) Hints() []frame.Hint { return p.hints() }
func (p *finalPage) EnterLabel() string  { return "finish" }

func (p *finalPage) Enter(w *frame.Wizard) tea.Cmd {
	var b strings.Builder
	if w.RunErr != nil {
		fmt.Fprintf(&b, "\n%s\n", w.Theme.Bad.Render(backends.Clean("error: "+w.RunErr.Error())))
		if hint := backends.HintOf(w.RunErr); hint != "" {
			_ = plain.Printf(&b, "hint:  %s\n", hint)
		}
	}
	p.read(w, w.Report, b.String(), steps(w))
	return nil
}

// steps returns the files and commands after a run, the most urgent first.
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

func (p *finalPage) Update(w *frame.Wizard, msg tea.Msg) (tea.Cmd, bool) {
	return p.update(w, w.Report, msg)
}

func (p *finalPage) Accept(*frame.Wizard) (tea.Cmd, error) { return tea.Quit, nil }

func (p *finalPage) View(_ *frame.Wizard, width, height int) string { return p.view(width, height) }

// lookPage reads everything, checks it and shows the report without changing anything. It is not one of the numbered pages; Enter
// continues with the setup.
type lookPage struct{ reading }

func (p *lookPage) Title() string { return "Read-only report: nothing is changed" }
func (p *lookPage) Hints() []frame.Hint {
	hints := []frame.Hint{{Key: "r", Does: "read again"}}
	if p.reader != nil {
		hints = append(hints, p.hints()...)
	}
	return hints
}

// Reported reports whether the report is shown, so that quitting needs no confirmation.
func (p *lookPage) Reported() bool { return p.reader != nil }

func (p *lookPage) EnterLabel() string {
	if p.reader == nil {
		return "read"
	}
	return "set up"
}

func (p *lookPage) Enter(w *frame.Wizard) tea.Cmd {
	p.reader = nil
	a := *w.Answers
	var inv *backends.Inventory
	var rep *report.Report
	return w.Do("reading hosts and VMs and checking them", func(ctx context.Context) (err error) {
		inv, rep, err = w.Fabric.Inspect(ctx, &a)
		return err
	}, func(w *frame.Wizard, err error) tea.Cmd {
		if err != nil {
			return w.Fail(err)
		}
		w.Inspected = rep
		p.read(w, rep, entry.Found(w.Theme, inv), [][2]string{{"set up", "press Enter; nothing is changed before you accept the plan"},
			{"repeat", w.Fabric.InspectCommand()}})
		return nil
	})
}

func (p *lookPage) Update(w *frame.Wizard, msg tea.Msg) (tea.Cmd, bool) {
	if k, ok := msg.(tea.KeyPressMsg); ok && k.String() == "r" && !p.Typing() {
		return p.Enter(w), true
	}
	return p.update(w, w.Inspected, msg)
}

func (p *lookPage) Accept(w *frame.Wizard) (tea.Cmd, error) {
	if p.reader == nil {
		return p.Enter(w), nil
	}
	propose(w)
	return w.Show(frame.PasswordAt + 1), nil
}

func (p *lookPage) View(w *frame.Wizard, width, height int) string {
	switch {
	case p.reader != nil:
		return p.view(width, height)
	case w.Busy != "":
		return w.Theme.Quiet.Render(theme.Wrap("Reading vCenter and its hosts. Nothing is written.", width))
	}
	return theme.Wrap("Nothing has been read. Press Enter or r to read, or Esc to go back.", width)
}
