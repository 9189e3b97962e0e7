package form

import (
	"context"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/ui/form/entry"
	"github.com/rdma-setup/rdma-setup/ui/form/frame"
	"github.com/rdma-setup/rdma-setup/ui/live"
	"github.com/rdma-setup/rdma-setup/ui/theme"
	"github.com/rdma-setup/rdma-setup/wizard/report"
)

// lookPage reads everything, checks it and shows the report: the way through the wizard that writes nothing. It stands
// beside the numbered pages, and Enter goes from it to setting up.
type lookPage struct {
	scroll *live.Scroll // nil until everything was read
	where  string
}

func (p *lookPage) Title() string { return "Read-only report: nothing is changed" }
func (p *lookPage) Hints() []frame.Hint {
	return []frame.Hint{{Key: "r", Does: "read again"}, {Key: "Up Down", Does: "scroll"}}
}
func (p *lookPage) Typing() bool { return false }

// Reported reports whether the report stands and there is nothing to ask before one leaves.
func (p *lookPage) Reported() bool { return p.scroll != nil }

func (p *lookPage) EnterWord() string {
	if p.scroll == nil {
		return "read"
	}
	return "set up"
}

func (p *lookPage) Enter(w *frame.Wizard) tea.Cmd {
	p.scroll = nil
	a := *w.Answers
	var inv *backends.Inventory
	var rep *report.Report
	return w.Do("reading hosts and VMs and checking them", func(ctx context.Context) (err error) {
		inv, rep, err = w.Fabric.Look(ctx, &a)
		return err
	}, func(w *frame.Wizard, err error) tea.Cmd {
		if err != nil {
			return w.Fail(err)
		}
		w.Looked = rep
		p.scroll = live.NewScroll(w.Theme, entry.Looked(w.Theme, inv, rep))
		p.where = w.Theme.Title.Render("Next steps") + "\n" +
			"  " + w.Theme.Quiet.Render("set up  ") + "press Enter; nothing is changed before you accept the plan\n" +
			"  " + w.Theme.Quiet.Render("repeat  ") + backends.Clean(w.Fabric.LookCommand())
		return nil
	})
}

func (p *lookPage) Update(w *frame.Wizard, msg tea.Msg) (tea.Cmd, bool) {
	if k, ok := msg.(tea.KeyPressMsg); ok && k.String() == "r" {
		return p.Enter(w), true
	}
	return nil, p.scroll != nil && p.scroll.Update(msg)
}

func (p *lookPage) Accept(w *frame.Wizard) (tea.Cmd, error) {
	if p.scroll == nil {
		return p.Enter(w), nil
	}
	propose(w)
	return w.Show(frame.PasswordAt + 1), nil
}

func (p *lookPage) View(w *frame.Wizard, width, height int) string {
	switch {
	case p.scroll != nil:
		where := theme.Fold(p.where, width)
		top := p.scroll.View(width, height-lines(where)-1)
		return top + strings.Repeat("\n", max(1, height-lines(top)-lines(where)+1)) + where
	case w.Busy != "":
		return w.Theme.Quiet.Render(theme.Wrap("Reading vCenter and its hosts. Nothing is written.", width))
	}
	return theme.Wrap("Nothing has been read. Press Enter or r to read, or Esc to go back.", width)
}
