package cmd

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/catalogue"
	"github.com/rdma-setup/rdma-setup/ui/cmd/console"
	"github.com/rdma-setup/rdma-setup/ui/plain"
	"github.com/rdma-setup/rdma-setup/wizard/engine"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
	"github.com/rdma-setup/rdma-setup/wizard/plan/recipe"
	"github.com/rdma-setup/rdma-setup/wizard/report"
)

// repair checks, and turns the automatic fixes into a plan that runs like apply: shown, consented to, journalled, with resume and
// rollback. It checks again afterwards, which determines the exit code.
func (f *checkFlags) repair(ctx context.Context, e *console.Env, cmd *cobra.Command, stop <-chan struct{}) error {
	looking, cancel := backends.Stoppable(ctx, stop)
	defer cancel()
	u, err := f.begin(looking, e, cmd)
	if err != nil {
		return f.ended(looking, e, cmd, err)
	}
	defer u.s.Close()
	before, err := u.look(looking)
	if err != nil {
		return f.ended(looking, e, cmd, err)
	}
	p, err := u.remedies(looking, before, e.Stderr)
	switch {
	case looking.Err() != nil:
		return looking.Err()
	case err != nil || p == nil:
		if shown := f.show(e, before); shown != nil {
			return shown
		}
		if err != nil {
			return err
		}
		return console.Exit(before.verdict().Exit)
	}
	if f.output == "text" {
		if err := before.text(e.Stderr); err != nil {
			return err
		}
	}
	a := *u.a
	a.Measure.Bandwidth, a.Measure.Latency = false, false // neither if the run is resumed: check loads no fabric without consent
	r := &runner{env: e, s: u.s, a: &a, flags: f.planFlags, yes: f.yes, json: f.output == "json", stop: stop}
	if err := r.consent(p); err != nil {
		return err
	}
	res, runErr := carryOut(ctx, u.s, r.a, p, f.planFlags, stop, plain.Lines(e.Lines(e.Stderr, e.Stderr)))
	if runErr != nil || res.Status != engine.StatusDone {
		r.json = false // the events went to stderr: stdout is for the single document of check
		return r.finish(ctx, p, res, runErr)
	}
	after, err := u.look(ctx)
	if err != nil {
		return f.ended(ctx, e, cmd, err)
	}
	u.label(ctx, after)
	rep, err := reportOf(u.s, u.a, p, res, nil, aftermath{findings: after.report.Checks}, nil, runErr)
	if err != nil {
		return err
	}
	after.report.Run, after.report.Changes = rep.Run, rep.Changes
	if err := f.show(e, after); err != nil {
		return err
	}
	fmt.Fprintf(e.Stderr, "fixed in run %s; report: rdma-setup report %s; undo: %s\n", res.Run, res.Run, u.s.Undo(res.Run, console.ExitOK))
	u.s.KeepLab(console.ExitOK)
	return console.Exit(after.verdict().Exit)
}

// remedies plans what fixes the findings; nil if there is nothing to do. Findings without a step are reported.
func (u *checkup) remedies(ctx context.Context, c *checked, w io.Writer) (*planned, error) {
	manual := func(left []checks.Finding) {
		for _, l := range left {
			_ = plain.Printf(w, "no automatic fix for %s of %s: %s\n", l.ID, l.Target.Name, l.Remedy)
		}
	}
	if !slices.ContainsFunc(c.report.Checks, report.AutomaticFix) {
		_, left := report.FixChanges(&plan.Plan{}, c.report.Checks)
		manual(left)
		fmt.Fprintln(w, "nothing to fix: no finding has an automatic fix")
		return nil, nil
	}
	f := u.flags
	f.skip, f.only = f.sel.Skip, nil
	p, err := makePlan(ctx, u.s, u.a, f.planFlags)
	if err != nil {
		report.Label(nil, c.report.Checks)
		return nil, err
	}
	var left []checks.Finding
	report.Label(p.plan, c.report.Checks)
	f.only, left = report.FixChanges(p.plan, c.report.Checks)
	manual(left)
	if len(f.only) == 0 {
		fmt.Fprintln(w, "nothing to fix: the plan for these answers changes none of the findings")
		return nil, nil
	}
	return p, p.plan.Narrow(f.only)
}

// label leaves the fix "automatic" to the findings that a plan for this site would change. A plan needs the details of all hosts: if
// they were not read, the labels stay those of the rows.
func (u *checkup) label(ctx context.Context, c *checked) {
	switch f := u.flags; {
	case f.file == "":
		report.Label(nil, c.report.Checks) // a plan needs answers
	case !f.sel.Quick && len(f.limit) == 0:
		opts := f.options()
		opts.Skip = f.sel.Skip
		labelled(ctx, u.facts, opts, c.report.Checks)
	}
}

// labelled does so with facts that were read.
func labelled(ctx context.Context, facts *checks.Facts, opts plan.Options, found []checks.Finding) {
	before := *facts
	before.Before = true
	must := catalogue.Run(ctx, &before, checks.Selection{Uses: facts.Answers.Uses(), Preflight: true, Skip: opts.Skip})
	p, err := recipe.Build(facts.Answers, assumed(facts.Inventory), opts)
	switch {
	case refusal(nil, must) == nil && err != nil && len(facts.Answers.HostPackages()) > 0:
		return // a check does not read what is in packages for hosts: whether the plan is refused is not known
	case refusal(err, must) != nil:
		p = nil
	}
	report.Label(p, found)
}

// assumed is the inventory with what a check does not read from hosts, which only says how a change is made: nothing is staged for the next
// boot.
func assumed(inv *backends.Inventory) *backends.Inventory {
	out := *inv
	out.Hosts = slices.Clone(inv.Hosts)
	for i := range out.Hosts {
		if sys := out.Hosts[i].System; sys != nil && sys.NextVIBs.State == "" {
			few := *sys
			few.NextVIBs.State = backends.FactAbsent
			out.Hosts[i].System = &few
		}
	}
	return &out
}
