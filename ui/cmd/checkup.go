package cmd

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/bundle"
	"github.com/rdma-setup/rdma-setup/checks/catalogue"
	"github.com/rdma-setup/rdma-setup/checks/perftest"
	"github.com/rdma-setup/rdma-setup/ui/cmd/console"
	"github.com/rdma-setup/rdma-setup/ui/cmd/session"
	"github.com/rdma-setup/rdma-setup/ui/plain"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// A checkup is a health check that can be repeated in one session.
type checkup struct {
	flags *checkFlags
	s     *session.Session
	a     *answers.Answers // given, or guessed from the first check
	facts *checks.Facts    // of the last check
	calls int              // before the next check

	base     *bundle.Baseline
	compared bool // base was already looked up
}

// begin connects to the vCenter of the answers, or without answers to that of the settings.
func (f *checkFlags) begin(ctx context.Context, e *console.Env, cmd *cobra.Command) (*checkup, error) {
	u := &checkup{flags: f}
	if f.file != "" {
		var err error
		u.s, u.a, err = f.planFlags.begin(ctx, e, cmd)
		return u, err
	}
	set, err := console.ReadSettings(e, cmd)
	if err != nil {
		return nil, err
	}
	u.s, err = session.Open(ctx, e, set, nil)
	return u, err
}

func (u *checkup) look(ctx context.Context) (*checked, error) {
	f := u.flags
	inv, err := u.world(ctx)
	if err != nil {
		return nil, err
	}
	if err := u.compare(inv); err != nil {
		return nil, err
	}
	if err := knownLimit(inv, f.limit); err != nil {
		return nil, err
	}
	a, inv := limited(u.a, inv, f.limit)
	facts := u.s.Facts(ctx, a, inv, !f.sel.Quick)
	if f.shell {
		if err := u.s.AskShells(ctx, a, facts); err != nil {
			return nil, err
		}
	}
	if u.base != nil {
		u.drift(ctx, facts)
	}
	var measured []perftest.Measurement
	if f.pairs != "" {
		if measured, err = u.s.Measure(ctx, a, nil, f.pairs, (&runner{env: u.s.Env}).progress()); err != nil {
			return nil, err
		}
		facts.Pairs = append(facts.Pairs, pairFacts(measured)...)
	}
	sel := f.sel
	sel.Uses = u.a.Uses()
	u.facts = facts
	c := checkedOf(u.s, a, inv, catalogue.Run(ctx, facts, sel), measured)
	c.report.Unconfigured = c.report.Unconfigured && len(sel.Only) == 0 // then only those rows are judged
	c.calls, u.calls, c.baseline = u.s.VC.Calls()-u.calls, u.s.VC.Calls(), u.base
	return c, ctx.Err()
}

// world reads what the answers name, or without answers everything, with the mode guessed from the VMs.
func (u *checkup) world(ctx context.Context) (*backends.Inventory, error) {
	if u.flags.file != "" {
		return u.s.Inspect(ctx, u.a, u.flags.sel.Quick)
	}
	inv, err := u.s.Inventory(ctx, backends.Scope{Details: true})
	if err == nil && u.a == nil {
		u.a = answersFrom(inv)
	}
	return inv, err
}

// answersFrom guesses answers from the inventory: the mode by the VMs' adapters, their switch, and the hosts that are its
// members.
func answersFrom(inv *backends.Inventory) *answers.Answers {
	a := answers.Default(answers.PVRDMA)
	dvs, gpus := map[string]int{}, false
	for _, v := range inv.VMs {
		for _, ad := range v.Adapters {
			switch ad.Type {
			case "pvrdma":
				a.Mode = answers.PVRDMA
			case "sriov":
				a.Mode = answers.SRIOV
			default:
				continue
			}
			dvs[ad.Switch]++
			a.Switch.PortGroup = ad.PortGroup
			a.VMs = append(a.VMs, answers.VM{Name: v.Name})
			gpus = gpus || len(v.VGPUProfiles()) > 0 || len((&checks.Facts{Inventory: inv}).GPUsOf(&v)) > 0
		}
	}
	switch {
	case gpus && a.Mode == answers.PVRDMA:
		a.GPUDirect.NIC = answers.NICPVRDMA
	case gpus:
		a.Mode, a.GPUDirect.NIC = answers.GPUDirect, "sriov"
	}
	for name, n := range dvs {
		if best := dvs[a.Switch.Name]; n > best {
			a.Switch.Name = name
		}
	}
	if sw := inv.Switch(a.Switch.Name); sw != nil {
		a.Switch.MTU = sw.MTU
		for host := range sw.Members {
			a.Hosts.Names = append(a.Hosts.Names, host)
		}
		slices.Sort(a.Hosts.Names)
	}
	for _, h := range inv.Hosts {
		a.Hosts.Datacenter = cmp.Or(a.Hosts.Datacenter, h.Datacenter)
		if len(a.Hosts.Names) == 0 || slices.Contains(a.Hosts.Names, h.Name) {
			if vmk := h.Options[backends.VMKNICOption]; vmk != "" {
				a.PVRDMA.VMKNic.Name = vmk
			}
		}
	}
	return a
}

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
		_ = plain.Printf(u.s.Env.Stderr, "warning: %s\n", err.Error())
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
	if n := checks.Count(c.report.Checks)[checks.Fail]; n > 0 && !force {
		first := catalogue.FirstBroken(c.report.Checks)
		return &console.CodeError{Code: c.verdict().Exit,
			Err: backends.Refusedf("", "fix it first, or save the baseline anyway with --force",
				"the baseline was not saved: %d checks fail, the first is %s of %s", n, first.ID, backends.Clean(first.Target.Name))}
	}
	if file == keepDefault {
		file = bundle.BaselinePath(u.s.Set.StateDir, u.facts.Inventory.VCenter.InstanceUUID)
	}
	b := bundle.BaselineOf(u.facts, u.s.Env.Now(), u.s.Env.Version)
	if err := bundle.SaveBaseline(file, b); err != nil {
		return &console.CodeError{Code: max(c.verdict().Exit, checkWarning), Err: err}
	}
	if abs, err := filepath.Abs(file); err == nil {
		file = abs
	}
	how := ""
	if u.flags.sel.Quick {
		how = "; a quick check reads neither module parameters nor guests, so later checks will not compare them"
	}
	fmt.Fprintf(u.s.Env.Stderr, "baseline saved in %s: %d hosts, %d VMs, %d guests%s\n", file, len(b.Inventory.Hosts), len(b.Inventory.VMs),
		len(b.Inventory.Guests), how)
	return nil
}

// drift passes to the checks the baseline and the number of lost links since. Events use vCenter's clock.
func (u *checkup) drift(ctx context.Context, facts *checks.Facts) {
	facts.Baseline = u.base.Inventory
	vc := facts.Inventory.VCenter
	lost, err := u.s.VC.LinksLost(ctx, u.base.Made.Add(vc.Clock.Sub(vc.ClockAsked)))
	if err != nil && ctx.Err() == nil {
		_ = plain.Printf(u.s.Env.Stderr, "warning: changes of links since the baseline are not known: %s\n", err.Error())
	}
	facts.LinksLost = lost
}
