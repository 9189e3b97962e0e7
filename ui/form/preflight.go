package form

import (
	"context"
	"errors"
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/ui/live"
	"github.com/rdma-setup/rdma-setup/ui/plain"
	"github.com/rdma-setup/rdma-setup/ui/theme"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
)

// preflightPage reads the chosen hosts and guests and shows what stands in the way.
type preflightPage struct {
	scroll  *live.Scroll // nil until everything was read
	refused *plan.Refused
}

func (p *preflightPage) title() string { return "Preflight" }
func (p *preflightPage) hints() []hint { return []hint{{"r", "read again"}, {"Up Down", "scroll"}} }
func (p *preflightPage) typing() bool  { return false }
func (p *preflightPage) enterWord() string {
	switch {
	case p.scroll == nil:
		return "read"
	case p.refused != nil:
		return "" // there is no going on
	}
	return "go on"
}

func (p *preflightPage) enter(w *wizard) tea.Cmd {
	p.scroll, p.refused = nil, nil
	w.plan = nil
	a := w.answers
	var inv *backends.Inventory
	var found []checks.Finding
	return w.do("reading hosts and guests", func(ctx context.Context) (err error) {
		if inv, err = w.fabric.Survey(ctx, a); err != nil {
			return err
		}
		found = w.fabric.Preflight(ctx, a, inv)
		return ctx.Err()
	}, func(w *wizard, err error) tea.Cmd {
		if err != nil {
			return w.fail(err)
		}
		w.findings = found
		made, err := w.fabric.Plan(a, inv)
		switch {
		case errors.As(err, &p.refused):
		case err != nil:
			return w.fail(err)
		default:
			w.plan = made
		}
		p.scroll = live.NewScroll(w.theme, p.text(w, inv))
		return nil
	})
}

func (p *preflightPage) text(w *wizard, inv *backends.Inventory) string {
	var b strings.Builder
	failed := plain.Count(w.findings)[checks.Fail]
	switch {
	case p.refused != nil:
		fmt.Fprintf(&b, "%s %s\n", w.theme.Symbol(theme.Fail), w.theme.Bad.Render("This cannot be done as it stands. Nothing was changed."))
		refusals(&b, p.refused)
	case failed > 0:
		fmt.Fprintf(&b, "%s %s\n", w.theme.Symbol(theme.Fail), w.theme.Bad.Render(counted(failed, "check")+" failed. Nothing was changed."))
	default:
		fmt.Fprintf(&b, "%s %s\n", w.theme.Symbol(theme.Pass), w.theme.Good.Render("Nothing stands in the way."))
	}
	fmt.Fprintf(&b, "\nRead: %s, %s, %s.\n", counted(len(inv.Hosts), "host"), counted(len(inv.VMs), "VM"), counted(len(inv.Guests), "guest"))
	_ = plain.Findings(&b, w.findings)
	return b.String()
}

// refusals lists the reasons; targets with the same stand together.
func refusals(b *strings.Builder, refused *plan.Refused) {
	type cause struct{ why, remedy string }
	var order []cause
	who := map[cause][]string{}
	for _, r := range refused.Refusals {
		c := cause{r.Why, r.Remedy}
		if who[c] == nil {
			order = append(order, c)
		}
		who[c] = append(who[c], r.Target.Name)
	}
	for _, c := range order {
		fmt.Fprintf(b, "\n%s: %s\n  remedy: %s\n", plain.Names(who[c]), plain.Clean(c.why), plain.Clean(c.remedy))
	}
}

func (p *preflightPage) update(w *wizard, msg tea.Msg) (tea.Cmd, bool) {
	if k, ok := msg.(tea.KeyPressMsg); ok && k.String() == "r" {
		return p.enter(w), true
	}
	return nil, p.scroll != nil && p.scroll.Update(msg)
}

func (p *preflightPage) accept(w *wizard) (tea.Cmd, error) {
	switch {
	case p.scroll == nil:
		return p.enter(w), nil
	case p.refused != nil:
		return nil, p.refused
	}
	if n := plain.Count(w.findings)[checks.Fail]; n > 0 {
		return nil, backends.Errorf(backends.KindRefused, "", "mend what is named above and press r, or go back and change the answers", "%s failed", counted(n, "check"))
	}
	return w.next(), nil
}

func (p *preflightPage) view(w *wizard, width, height int) string {
	switch {
	case p.scroll != nil:
		return p.scroll.View(width, height)
	case w.busy != "":
		return w.theme.Quiet.Render(theme.Wrap("Every chosen host and guest is being asked. Nothing is written.", width))
	}
	return theme.Wrap("The hosts and guests were not read. Enter or r reads them, Esc goes back.", width)
}
