package cmd

import (
	"slices"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/ui/cmd/console"
	"github.com/rdma-setup/rdma-setup/ui/plain"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// limited returns the answers and the inventory without the hosts that --limit does not name and without the VMs and
// guests on them. With no names it returns both unchanged.
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

// knownLimit returns an error of KindRefused if --limit names a host that is not in the inventory.
func knownLimit(inv *backends.Inventory, hosts []string) error {
	for _, name := range hosts {
		if inv.Host(name) == nil {
			return backends.Errorf(backends.KindRefused, name, nearestHost(name, inv), "--limit contains a host that is not in the answers")
		}
	}
	return nil
}

// nearestHost is the hint for a host name that the answers do not select.
func nearestHost(name string, inv *backends.Inventory) string {
	names := plain.Mapped(inv.Hosts, hostName)
	return console.Meant(name, names, "%s?", "use a host from the answers: "+plain.Names(names))
}

func hostName(h backends.Host) string { return h.Name }
