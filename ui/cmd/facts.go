package cmd

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/catalogue"
	"github.com/rdma-setup/rdma-setup/ui/cmd/hostfacts"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/engine/journal"
)

// preflight runs the checks that must not fail before anything is written.
func (s *session) preflight(ctx context.Context, a *answers.Answers, inv *backends.Inventory, f planFlags) []checks.Finding {
	a, inv = limited(a, inv, f.limit)
	facts := s.gather(ctx, a, inv, false, true)
	found := catalogue.Run(ctx, facts, checks.Selection{Mode: a.Mode, Preflight: true, Skip: f.skip})
	for i := range found {
		// What --force-nic takes is in use: the operator has said so by its name, and the plan says what stops.
		if c := &found[i]; c.ID == "HOST-PNIC-USED-012" && c.Status == checks.Fail && slices.ContainsFunc(f.forceNIC, func(spec string) bool {
			return strings.HasPrefix(spec, c.Target.Name+"/")
		}) {
			c.Status, c.Evidence = checks.Warn, c.Evidence+"; taken by --force-nic all the same"
		}
	}
	return found
}

// limited leaves out hosts that --limit does not name, and the VMs and guests on them.
func limited(a *answers.Answers, inv *backends.Inventory, hosts []string) (*answers.Answers, *backends.Inventory) {
	if len(hosts) == 0 {
		return a, inv
	}
	few, out := *a, *inv
	few.Hosts.Names = slices.DeleteFunc(slices.Clone(a.Hosts.Names), func(name string) bool { return !slices.Contains(hosts, name) })
	few.VMs = slices.DeleteFunc(slices.Clone(a.VMs), func(v answers.VM) bool {
		vm := inv.VM(v.Name)
		return vm != nil && !slices.Contains(hosts, vm.Host)
	})
	out.Hosts = slices.DeleteFunc(slices.Clone(inv.Hosts), func(h backends.Host) bool { return !slices.Contains(hosts, h.Name) })
	out.VMs = slices.DeleteFunc(slices.Clone(inv.VMs), func(v backends.VM) bool { return !slices.Contains(hosts, v.Host) })
	out.Guests = slices.DeleteFunc(slices.Clone(inv.Guests), func(g backends.Guest) bool { return out.VM(g.VM) == nil })
	return &few, &out
}

// facts is what checks may look at.
func (s *session) facts(ctx context.Context, a *answers.Answers, inv *backends.Inventory, full bool) *checks.Facts {
	return s.gather(ctx, a, inv, full, false)
}

// gather reads it; before is true ahead of a run.
func (s *session) gather(ctx context.Context, a *answers.Answers, inv *backends.Inventory, full, before bool) *checks.Facts {
	f := &checks.Facts{Answers: a, Inventory: inv, Now: inv.VCenter.ClockAsked, Before: before}
	lacks, err := s.vc.Missing(ctx, needs(a, inv, before))
	f.LacksErr = err
	for _, l := range lacks {
		f.Lacks = append(f.Lacks, checks.Lack{Entity: l.Entity, Privilege: l.Privilege})
	}
	f.Changed = s.lastChanges(inv.VCenter.InstanceUUID)
	if full {
		f.HostFacts = hostfacts.Read(ctx, s.vc, s.set.HostTimeout, a, inv)
	}
	return f
}

// needs says which privileges the account needs on what. Ahead of a run every host and VM that takes part is asked for;
// otherwise the datacenter stands for them, which hundreds of hosts cost nothing.
func needs(a *answers.Answers, inv *backends.Inventory, before bool) map[backends.Ref][]string {
	site := backends.Ref{Type: backends.TypeVCenter, Name: "vCenter"}
	if a.Hosts.Datacenter != "" {
		site = backends.Ref{Type: backends.TypeDatacenter, Name: a.Hosts.Datacenter}
	}
	targets := map[backends.TargetType][]backends.Ref{}
	if before {
		for _, h := range hostfacts.Reachable(a, inv) {
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
	return want
}

// lastChanges says when runs on this vCenter last set what a host takes up at its next boot; nil where the journals
// cannot be read.
func (s *session) lastChanges(vcenter string) map[string]time.Time {
	runs, err := journal.Runs(s.set.StateDir)
	if err != nil {
		return nil
	}
	out := map[string]time.Time{}
	for _, run := range runs {
		if run.VCenter != vcenter || !run.Changed {
			continue
		}
		st, err := journal.Read(s.set.StateDir, run.Run)
		if err != nil {
			return nil
		}
		for _, r := range st.Records {
			switch backends.Kind(r.Kind) {
			case backends.KindModuleParams, backends.KindFirmware, backends.KindComponent:
				if r.Type == journal.TypeOutcome && r.Time.After(out[r.Target.Name]) {
					out[r.Target.Name] = r.Time
				}
			}
		}
	}
	return out
}

// answersFrom guesses what shall be from what is there: the mode by the VMs' adapters, the switch that they hang on,
// and the hosts that are its members.
func answersFrom(inv *backends.Inventory) *answers.Answers {
	a := answers.Default(answers.PVRDMA)
	dvs := map[string]int{}
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
		}
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
		if a.Hosts.Datacenter == "" {
			a.Hosts.Datacenter = h.Datacenter
		}
		if len(a.Hosts.Names) == 0 || slices.Contains(a.Hosts.Names, h.Name) {
			if vmk := h.Options["Net.PVRDMAVmknic"]; vmk != "" {
				a.PVRDMA.VMKNic = vmk
			}
		}
	}
	return a
}
