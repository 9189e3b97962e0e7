package cmd

import (
	"context"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/catalogue"
	"github.com/rdma-setup/rdma-setup/ui/cmd/session"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// preflight runs the checks that must not fail before anything is written.
func preflight(ctx context.Context, s *session.Session, a *answers.Answers, inv *backends.Inventory, f planFlags) []checks.Finding {
	a, inv = limited(a, inv, f.limit)
	facts := s.Gather(ctx, a, inv, false, true)
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
