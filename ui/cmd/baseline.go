package cmd

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/bundle"
	"github.com/rdma-setup/rdma-setup/checks/catalogue"
	"github.com/rdma-setup/rdma-setup/ui/cmd/console"
	"github.com/rdma-setup/rdma-setup/ui/plain"
)

// Words for baselines that are not files.
const (
	keepDefault = "the state directory"
	noBaseline  = "none"
)

// compare finds the baseline for a check, once, so that all checks of a watch use the same.
func (u *checkup) compare(inv *backends.Inventory) error {
	file := u.flags.baseline
	if u.compared || file == noBaseline {
		return nil
	}
	file = cmp.Or(file, bundle.BaselinePath(u.s.Set.StateDir, inv.VCenter.InstanceUUID))
	var err error
	u.base, err = bundle.LoadBaseline(file, inv.VCenter.InstanceUUID)
	switch {
	case err != nil && u.flags.baseline == "": // it was not requested: the rest of the check is still useful
		fmt.Fprintf(u.s.Env.Stderr, "warning: %s\n", backends.Clean(err.Error()))
	case err != nil:
		return err
	case u.base == nil && u.flags.baseline != "":
		return console.Usage("save one with: rdma-setup check --save-baseline FILE", "there is no baseline %s", file)
	}
	u.compared = true
	return nil
}

// keep saves the current state as the new baseline. A broken state is refused without force.
func (u *checkup) keep(c *checked, file string, force bool) error {
	if n := plain.Count(c.report.Checks)[checks.Fail]; n > 0 && !force {
		first := catalogue.FirstBroken(c.report.Checks)
		return &console.CodeError{Code: c.code, Err: backends.Errorf(backends.KindRefused, "", "fix it first, or save the baseline anyway with --force",
			"the baseline was not saved: %d checks fail, the first is %s of %s", n, first.ID, backends.Clean(first.Target.Name))}
	}
	if file == keepDefault {
		file = bundle.BaselinePath(u.s.Set.StateDir, u.facts.Inventory.VCenter.InstanceUUID)
	}
	b := bundle.BaselineOf(u.facts, u.s.Env.Now(), u.s.Env.Version)
	if err := bundle.SaveBaseline(file, b); err != nil {
		return &console.CodeError{Code: max(c.code, checkWarning), Err: err}
	}
	if abs, err := filepath.Abs(file); err == nil {
		file = abs
	}
	how := ""
	if u.flags.sel.Quick {
		how = "; a quick check reads neither module parameters nor guests, so later checks will not compare them"
	}
	fmt.Fprintf(u.s.Env.Stderr, "baseline saved in %s: %d hosts, %d VMs, %d guests%s\n", file, len(b.Inventory.Hosts), len(b.Inventory.VMs), len(b.Inventory.Guests), how)
	return nil
}

// drift passes to the checks the baseline and the number of lost links since. Events use vCenter's clock.
func (u *checkup) drift(ctx context.Context, facts *checks.Facts) {
	facts.Baseline = u.base.Inventory
	vc := facts.Inventory.VCenter
	lost, err := u.s.VC.LinksLost(ctx, u.base.Made.Add(vc.Clock.Sub(vc.ClockAsked)))
	if err != nil && ctx.Err() == nil {
		fmt.Fprintf(u.s.Env.Stderr, "warning: changes of links since the baseline are not known: %s\n", backends.Clean(err.Error()))
	}
	facts.LinksLost = lost
}
