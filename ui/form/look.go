package form

import (
	"context"
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/ui/live"
	"github.com/rdma-setup/rdma-setup/ui/plain"
	uireport "github.com/rdma-setup/rdma-setup/ui/report"
	"github.com/rdma-setup/rdma-setup/ui/theme"
	"github.com/rdma-setup/rdma-setup/wizard/report"
)

// lookPage reads everything, checks it and shows the report: the way through the wizard that writes nothing. It stands
// beside the numbered pages, and Enter goes from it to setting up.
type lookPage struct {
	scroll *live.Scroll // nil until everything was read
	where  string
}

func (p *lookPage) title() string { return "Look only: nothing is changed" }
func (p *lookPage) hints() []hint { return []hint{{"r", "read again"}, {"Up Down", "scroll"}} }
func (p *lookPage) typing() bool  { return false }
func (p *lookPage) enterWord() string {
	if p.scroll == nil {
		return "read"
	}
	return "set up"
}

func (p *lookPage) enter(w *wizard) tea.Cmd {
	p.scroll = nil
	a := *w.answers
	var inv *backends.Inventory
	var rep *report.Report
	return w.do("reading hosts and VMs and checking them", func(ctx context.Context) (err error) {
		inv, rep, err = w.fabric.Look(ctx, &a)
		return err
	}, func(w *wizard, err error) tea.Cmd {
		if err != nil {
			return w.fail(err)
		}
		w.looked = rep
		p.scroll = live.NewScroll(w.theme, looked(w.theme, inv, rep))
		p.where = w.theme.Title.Render("Where to go from here") + "\n" +
			"  " + w.theme.Quiet.Render("set up  ") + "Enter: step by step, nothing is changed before you accept a plan\n" +
			"  " + w.theme.Quiet.Render("again   ") + plain.Clean(w.fabric.LookCommand())
		return nil
	})
}

// looked is the report of a look: what was found, then what was checked.
func looked(t theme.Theme, inv *backends.Inventory, rep *report.Report) string {
	var b strings.Builder
	_ = uireport.Terminal(&b, rep, t)
	fmt.Fprintf(&b, "\n%s  vCenter %s, %s, %s\n", t.Title.Render("Found"), plain.Clean(inv.VCenter.Version), counted(len(inv.Hosts), "host"), counted(len(inv.VMs), "VM"))
	for _, l := range foundLines(inv) {
		b.WriteString("  " + l + "\n")
	}
	return b.String()
}

// foundLines tell of each host which pNICs fit RDMA, or why none does, and its GPUs.
func foundLines(inv *backends.Inventory) []string {
	var out []string
	for _, h := range inv.Hosts {
		r := hostRow(h)
		out = append(out, plain.Clean(r.Detail))
		for _, g := range h.GPUs {
			near, p2p := plain.Nearest(g)
			out = append(out, fmt.Sprintf("  GPU %s %s; P2P %s: %s", strings.TrimPrefix(g.PCI, "0000:"), soldAs(plain.Clean(g.Model)), p2p, near))
		}
	}
	return out
}

// look reads, checks and prints the report; nothing is written.
func (q *questions) look(ctx context.Context) error {
	q.say("reading hosts and VMs and checking them; nothing is written")
	inv, rep, err := q.o.Fabric.Look(ctx, q.a)
	if err != nil {
		return err
	}
	q.outcome.Looked = rep
	q.say("%s\nagain: %s", strings.TrimRight(looked(theme.Plain(), inv, rep), "\n"), plain.Clean(q.o.Fabric.LookCommand()))
	return nil
}

func (p *lookPage) update(w *wizard, msg tea.Msg) (tea.Cmd, bool) {
	if k, ok := msg.(tea.KeyPressMsg); ok && k.String() == "r" {
		return p.enter(w), true
	}
	return nil, p.scroll != nil && p.scroll.Update(msg)
}

func (p *lookPage) accept(w *wizard) (tea.Cmd, error) {
	if p.scroll == nil {
		return p.enter(w), nil
	}
	w.answers = w.fabric.Propose(w.answers, w.overview)
	return w.show(passwordAt + 1), nil
}

func (p *lookPage) view(w *wizard, width, height int) string {
	switch {
	case p.scroll != nil:
		where := theme.Fold(p.where, width)
		top := p.scroll.View(width, height-lines(where)-1)
		return top + strings.Repeat("\n", max(1, height-lines(top)-lines(where)+1)) + where
	case w.busy != "":
		return w.theme.Quiet.Render(theme.Wrap("vCenter and its hosts are being asked. Nothing is written.", width))
	}
	return theme.Wrap("Nothing was read. Enter or r reads, Esc goes back.", width)
}
