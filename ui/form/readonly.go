package form

import (
	"context"

	tea "charm.land/bubbletea/v2"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/ui/form/entry"
	"github.com/rdma-setup/rdma-setup/ui/form/frame"
	"github.com/rdma-setup/rdma-setup/ui/theme"
	"github.com/rdma-setup/rdma-setup/wizard/report"
)

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
