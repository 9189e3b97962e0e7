package cmd

import (
	"context"
	"slices"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// preflight runs the checks that must not fail before anything is written.
func (s *session) preflight(ctx context.Context, a *answers.Answers, inv *backends.Inventory, f planFlags) []checks.Finding {
	facts := s.facts(ctx, a, limited(inv, f.limit), false)
	facts.Before = true
	return checks.Run(ctx, facts, checks.Selection{Mode: a.Mode, Preflight: true, Skip: f.skip})
}

// limited leaves out hosts that --limit does not name, and the VMs and guests on them.
func limited(inv *backends.Inventory, hosts []string) *backends.Inventory {
	if len(hosts) == 0 {
		return inv
	}
	out := *inv
	out.Hosts = slices.DeleteFunc(slices.Clone(inv.Hosts), func(h backends.Host) bool { return !slices.Contains(hosts, h.Name) })
	out.VMs = slices.DeleteFunc(slices.Clone(inv.VMs), func(v backends.VM) bool { return !slices.Contains(hosts, v.Host) })
	out.Guests = slices.DeleteFunc(slices.Clone(inv.Guests), func(g backends.Guest) bool { return out.VM(g.VM) == nil })
	return &out
}

// facts gathers what checks may look at.
func (s *session) facts(ctx context.Context, a *answers.Answers, inv *backends.Inventory, full bool) *checks.Facts {
	f := &checks.Facts{Answers: a, Inventory: inv, Now: inv.VCenter.ClockAsked}
	lacks, err := s.vc.Missing(ctx, checks.Privileges(a.Mode))
	f.LacksErr = err
	for _, l := range lacks {
		f.Lacks = append(f.Lacks, checks.Lack{Entity: l.Entity, Privilege: l.Privilege})
	}
	if full {
		f.HostFacts = s.hostFacts(ctx, a, inv)
	}
	return f
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
