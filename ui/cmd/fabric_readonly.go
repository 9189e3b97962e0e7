package cmd

import (
	"cmp"
	"context"
	"io"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/bundle"
	"github.com/rdma-setup/rdma-setup/checks/catalogue"
	"github.com/rdma-setup/rdma-setup/ui/live"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/report"
)

// Inspect implements live.Fabric: the same as check, or the preflight if nothing has been set up yet.
func (f *fabric) Inspect(ctx context.Context, a *answers.Answers) (*backends.Inventory, *report.Report, error) {
	f.s.AskAgain()
	named := len(a.VMs) > 0
	inv, err := f.world(ctx, a, named)
	if err != nil {
		return nil, nil, err
	}
	ready := slices.ContainsFunc(inv.VMs, carriesRDMA)
	f.ready = ready
	own := *a
	switch {
	case named:
	case ready:
		own = *answersFrom(inv)
	default:
		own = *f.Propose(&own, inv)
	}
	facts := &checks.Facts{}
	var found []checks.Finding
	notes := []string{"read-only: nothing was changed or measured"}
	if ready {
		facts = f.s.Facts(ctx, &own, inv, true)
		found = catalogue.Run(ctx, facts, checks.Selection{Uses: own.Uses()})
	} else {
		found = preflight(ctx, f.s, &own, inv, planFlags{})
		notes = append(notes, "no VM has an RDMA adapter: nothing is set up yet, and what was checked is whether mode "+string(own.Mode)+
			" can be")
	}
	c := checkedOf(f.s, &own, inv, found, nil)
	c.report.Notes = notes
	return inv, c.report, ctx.Err()
}

// world reads what the answers name, or everything.
func (f *fabric) world(ctx context.Context, a *answers.Answers, named bool) (*backends.Inventory, error) {
	if named {
		return f.s.Survey(ctx, a)
	}
	f.s.Use(a)
	inv, err := f.s.Inventory(ctx, backends.Scope{Details: true})
	if err == nil {
		f.s.Note(inv)
	}
	return inv, err
}

// carriesRDMA reports whether a VM has an adapter or device of one of the modes.
func carriesRDMA(v backends.VM) bool {
	return slices.ContainsFunc(v.Adapters, func(a backends.Adapter) bool { return a.Type == "pvrdma" || a.Type == "sriov" })
}

// Rehearsable implements live.Fabric. On the private lab the run itself is the rehearsal.
func (f *fabric) Rehearsable(l live.Login) bool {
	return !f.Private(l) && f.last != nil && f.last.plan != nil && !f.last.plan.Empty()
}

// Rehearse implements live.Fabric: the same as rehearse with the usual times.
func (f *fabric) Rehearse(ctx context.Context, a *answers.Answers) (string, error) {
	f.s.Wide = true
	inv, err := f.s.Inspect(ctx, a, false)
	f.s.Wide = false
	if err != nil {
		return "", err
	}
	facts := f.s.Facts(ctx, a, inv, true)
	f.s.AskRest(ctx, a, inv)
	e := f.s.Env
	usual := rehearseFlags{stated: usualTimes(), given: func(string) bool { return false }}
	r, _, err := usual.play(ctx, e, io.Discard, &bundle.Bundle{Tool: e.Version, Made: e.Now(), Facts: facts, Answers: a})
	if err = cmp.Or(ctx.Err(), err); err != nil {
		return "", err
	}
	r.Plan = nil // it is on the page already
	var text strings.Builder
	err = r.Text(&text)
	return text.String(), err
}

// Asks implements live.Fabric.
func (f *fabric) Asks(ask live.Ask) { f.s.Asks(ask) }

// InspectCommand implements live.Fabric.
func (f *fabric) InspectCommand() string {
	cmd := "rdma-setup discover"
	if f.ready {
		cmd = "rdma-setup check -o html --out report.html"
	}
	if f.s.Lab != nil {
		cmd += " --lab"
	}
	return cmd
}
