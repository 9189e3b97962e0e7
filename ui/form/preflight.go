package form

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/perftest"
	"github.com/rdma-setup/rdma-setup/ui/form/entry"
	"github.com/rdma-setup/rdma-setup/ui/form/frame"
	"github.com/rdma-setup/rdma-setup/ui/live"
	"github.com/rdma-setup/rdma-setup/ui/plain"
	"github.com/rdma-setup/rdma-setup/ui/theme"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
)

// preflightPage reads the chosen hosts and guests and shows blockers.
type preflightPage struct {
	scroll  *live.Scroll // nil until everything was read
	refused *plan.Refused
}

func (p *preflightPage) Title() string { return "Preflight" }
func (p *preflightPage) Hints() []frame.Hint {
	hints := []frame.Hint{{Key: "r", Does: "read again"}, {Key: "Up Down", Does: "scroll"}}
	if p.refused != nil {
		hints = append([]frame.Hint{{Key: "g", Does: "go to the answer"}}, hints...)
	}
	return hints
}
func (p *preflightPage) Typing() bool { return false }
func (p *preflightPage) EnterLabel() string {
	switch {
	case p.scroll == nil:
		return "read"
	case p.refused != nil:
		return "" // the wizard cannot continue
	}
	return "continue"
}

func (p *preflightPage) Enter(w *frame.Wizard) tea.Cmd {
	p.scroll, p.refused = nil, nil
	w.Plan = nil
	a := w.Answers
	var inv *backends.Inventory
	var found []checks.Finding
	var made *plan.Plan
	var refused *plan.Refused
	var loads []perftest.LoadPlan
	var expected time.Duration
	return w.Do("reading hosts and guests", func(ctx context.Context) (err error) {
		if inv, err = w.Fabric.Survey(ctx, a); err != nil {
			return err
		}
		found = w.Fabric.Preflight(ctx, a, inv)
		if err = ctx.Err(); err != nil {
			return err
		}
		if made, err = w.Fabric.Plan(a, inv); errors.As(err, &refused) {
			return nil
		} else if err != nil {
			return err
		}
		loads, expected = w.Fabric.Loads(a, inv), w.Fabric.Expected(a, made)
		return nil
	}, func(w *frame.Wizard, err error) tea.Cmd {
		if err != nil {
			return w.Fail(err)
		}
		w.Findings, p.refused = found, refused
		if refused == nil {
			w.Plan, w.Loads, w.Expected = made, loads, expected
		}
		p.scroll = live.NewScroll(w.Theme, p.text(w, inv))
		return nil
	})
}

func (p *preflightPage) text(w *frame.Wizard, inv *backends.Inventory) string {
	var b strings.Builder
	failed := checks.Count(w.Findings)[checks.Fail]
	switch {
	case p.refused != nil:
		fmt.Fprintf(&b, "%s %s\n", w.Theme.Symbol(theme.Fail),
			w.Theme.Bad.Render("This setup is not possible, for the reasons below. Nothing was changed."))
		entry.Refusals(&b, p.refused)
	case failed > 0:
		fmt.Fprintf(&b, "%s %s\n", w.Theme.Symbol(theme.Fail), w.Theme.Bad.Render(plain.Counted(failed, "check")+" failed. Nothing was changed."))
	default:
		fmt.Fprintf(&b, "%s %s\n", w.Theme.Symbol(theme.Pass), w.Theme.Good.Render("Nothing prevents the setup."))
	}
	fmt.Fprintf(&b, "\nRead: %s, %s, %s.\n", plain.Counted(len(inv.Hosts), "host"), plain.Counted(len(inv.VMs), "VM"),
		plain.Counted(len(inv.Guests), "guest"))
	_ = plain.Findings(&b, w.Findings)
	return b.String()
}

func (p *preflightPage) Update(w *frame.Wizard, msg tea.Msg) (tea.Cmd, bool) {
	k, ok := msg.(tea.KeyPressMsg)
	switch {
	case ok && k.String() == "r":
		return p.Enter(w), true
	case ok && k.String() == "g" && p.refused != nil && len(p.refused.Refusals) > 0:
		return answerOf(w, p.refused.Refusals[0]), true
	}
	return nil, p.scroll != nil && p.scroll.Update(msg)
}

// answerOf shows the page with the answer that caused a refusal, with the cursor on its target: the answer that the remedy names, else
// those about the target.
func answerOf(w *frame.Wizard, r plan.Refusal) tea.Cmd {
	at, typ := frame.NICsAt, r.Target.Type
	switch {
	case named(entry.Settings(w.Answers, w.Overview), r.Remedy) != "":
		at = frame.SwitchAt
	case typ == backends.TypeVM, typ == backends.TypeGuest:
		at = frame.VMsAt
	case typ == backends.TypeSwitch, typ == backends.TypePortGroup:
		at = frame.SwitchAt
	case typ == backends.TypeVCenter, typ == backends.TypeDatacenter, typ == backends.TypeCluster:
		at = frame.HostsAt
	}
	cmd := w.Show(at)
	if page, ok := w.Page().(interface{ point(plan.Refusal) }); ok {
		page.point(r)
	}
	w.Err = backends.Usagef(r.Target.Name, r.Remedy, "%s", r.Why)
	return cmd
}

func (p *preflightPage) Accept(w *frame.Wizard) (tea.Cmd, error) {
	switch {
	case p.scroll == nil:
		return p.Enter(w), nil
	case p.refused != nil:
		return nil, p.refused
	}
	if n := checks.Count(w.Findings)[checks.Fail]; n > 0 {
		return nil, backends.Refusedf("", "fix the problems named above and press r, or go back and change the answers",
			"%s failed", plain.Counted(n, "check"))
	}
	return w.Next(), nil
}

func (p *preflightPage) View(w *frame.Wizard, width, height int) string {
	switch {
	case p.scroll != nil:
		return p.scroll.View(width, height)
	case w.Busy != "":
		return w.Theme.Quiet.Render(theme.Wrap("Reading all chosen hosts and guests. Nothing is written.", width))
	}
	return theme.Wrap("The hosts and guests have not been read. Press Enter or r to read them, or Esc to go back.", width)
}
