package session

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/nic"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/engine/journal"
	"github.com/rdma-setup/rdma-setup/wizard/plan/recipe"
)

// Facts returns the facts for checks.
func (s *Session) Facts(ctx context.Context, a *answers.Answers, inv *backends.Inventory, full bool) *checks.Facts {
	return s.Gather(ctx, a, inv, full, false)
}

// Gather reads them; before is true before a run.
func (s *Session) Gather(ctx context.Context, a *answers.Answers, inv *backends.Inventory, full, before bool) *checks.Facts {
	f := &checks.Facts{Answers: recipe.Deal(a, inv), Inventory: inv, Now: inv.VCenter.ClockAsked, Before: before}
	lacks, err := s.VC.Missing(ctx, needs(a, inv, before))
	f.LacksErr = err
	for _, l := range lacks {
		f.Lacks = append(f.Lacks, checks.Lack{Entity: l.Entity, Privilege: l.Privilege})
	}
	if t := s.Env.Twin; t == nil || !t.Keep { // nobody reads the checks of the last plan on a twin
		f.Changed = s.lastChanges(inv.VCenter.InstanceUUID)
	}
	if full {
		s.ask(ctx, a, inv, checkAsks(a, inv))
	}
	return f
}

// needs returns the required privileges by object. Before a run every host and VM that takes part is included, and each
// cluster whose image is changed; otherwise the datacenter represents them, which costs nothing for hundreds of hosts.
func needs(a *answers.Answers, inv *backends.Inventory, before bool) map[backends.Ref][]string {
	root := backends.Ref{Type: backends.TypeVCenter, Name: "vCenter"}
	site := root
	if a.Hosts.Datacenter != "" {
		site = backends.Ref{Type: backends.TypeDatacenter, Name: a.Hosts.Datacenter}
	}
	targets := map[backends.TargetType][]backends.Ref{}
	if before {
		for _, h := range Reachable(a, inv) {
			targets[backends.TypeHost] = append(targets[backends.TypeHost], backends.HostRef(h.Name))
		}
		for _, v := range a.VMs {
			if vm := inv.VM(v.Name); vm != nil {
				targets[backends.TypeVM] = append(targets[backends.TypeVM], backends.VMRef(vm.Name))
			}
		}
	}
	want := map[backends.Ref][]string{}
	for _, p := range checks.Needed(a) {
		on := targets[checks.HeldOn(p)]
		if len(on) == 0 {
			on = []backends.Ref{site}
		}
		for _, t := range on {
			want[t] = append(want[t], p)
		}
	}
	if slices.ContainsFunc(a.HostPackages(), nic.ForImage) && slices.ContainsFunc(Reachable(a, inv), (*backends.Host).Imaged) {
		on := map[backends.Ref]bool{root: true, site: !before}
		for _, h := range Reachable(a, inv) {
			if before && h.Imaged() {
				on[backends.ClusterRef(h.Cluster)] = true
			}
		}
		for t, is := range on {
			if is {
				want[t] = append(want[t], checks.Images()...)
			}
		}
	}
	return want
}

// lastChanges returns when runs on this vCenter last changed a setting that takes effect at a host's next boot; nil if the journals
// cannot be read.
func (s *Session) lastChanges(vcenter string) map[string]time.Time {
	out := map[string]time.Time{}
	err := journal.Changes(s.Set.StateDir, vcenter, func(st *journal.State) {
		for _, r := range st.Records {
			switch backends.Kind(r.Kind) {
			case backends.KindModuleParams, backends.KindFirmware, backends.KindFirmwareImage, backends.KindComponent, backends.KindImageComponent:
				if r.Type == journal.TypeOutcome && r.Time.After(out[r.Target.Name]) {
					out[r.Target.Name] = r.Time
				}
			}
		}
	})
	if err != nil {
		return nil
	}
	return out
}

// noSSH is the reason for hosts whose shell cannot be used because a check starts nothing.
const noSSH = "the SSH service of the host is not running, and check does not start it"

// AskShells reads the firmware of the cards, Secure Boot and the log in the ESXi shells, if SSH runs already. The tools load a
// kernel module, which stays until the next boot: therefore the operator must allow it.
func (s *Session) AskShells(ctx context.Context, a *answers.Answers, facts *checks.Facts) error {
	if err := s.reachGuests(); err != nil {
		return err
	}
	var open []string
	for _, h := range Reachable(a, facts.Inventory) {
		if h.System == nil {
			h.System = &backends.HostSystem{}
		}
		if h.Services["TSM-SSH"].Running {
			open = append(open, h.Name)
		} else {
			h.System.ShellError = noSSH
		}
	}
	for name, r := range s.Shells.Read(s.Voiced(ctx), open, backends.Apart(a.Run.Parallel), s.Set.HostTimeout) {
		h := facts.Inventory.Host(name)
		sys := h.System
		sys.SecureBoot, sys.Log = r.SecureBoot, sinceBoot(r.Log, h.BootTime)
		if sys.ShellError = ""; r.Err != nil {
			sys.ShellError = r.Err.Error()
		} else {
			sys.Firmware = r.Cards
		}
	}
	return ctx.Err()
}

// sinceBoot returns the lines of a log that are not older than the boot: each begins with the time in UTC (vSphere Monitoring and
// Performance, ESXi Log Files: ISO 8601). nil stays nil.
func sinceBoot(lines []string, boot time.Time) []string {
	return slices.DeleteFunc(lines, func(line string) bool {
		stamp, _, _ := strings.Cut(line, " ")
		at, err := time.Parse(time.RFC3339, stamp)
		return err == nil && at.Before(boot)
	})
}
