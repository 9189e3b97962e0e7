package session

import (
	"net/netip"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/plan/recipe"
)

// SharedNodes returns the RDMA device and the GID index that all guests share.
func SharedNodes(inv *backends.Inventory, a *answers.Answers) (device string, gid int, notes []string) {
	a, gid = recipe.Deal(a, inv), -1
	sameDevice, sameGID, first := true, true, true
	for _, v := range a.VMs {
		d, index, ok := rdmaAddress(inv, v.Name, a.Networks(v))
		if !ok {
			notes = append(notes, v.Name+": no RDMA device with its address was found")
			continue
		}
		if first {
			device, gid, first = d, index, false
			continue
		}
		sameDevice, sameGID = sameDevice && d == device, sameGID && index == gid
	}
	if !sameDevice {
		device, notes = "", append(notes, "the guests' RDMA devices have different names: NCCL detects them by itself")
	}
	if !sameGID {
		gid, notes = -1, append(notes, "the guests' RoCE v2 addresses have different indexes: NCCL (2.21 and later) detects them by itself")
	}
	return device, gid, notes
}

// rdmaAddress returns the RDMA device with one of a VM's addresses in its guest, and the GID index of that address.
func rdmaAddress(inv *backends.Inventory, name string, networks []answers.Adapter) (device string, gid int, ok bool) {
	vm := inv.VM(name)
	if vm == nil {
		return "", -1, false
	}
	g := inv.Guest(vm.Name)
	if g == nil {
		return "", -1, false
	}
	for _, n := range networks {
		own := found(inv, vm, n)
		for _, d := range g.RDMA {
			for _, entry := range d.GIDs {
				if ip, err := netip.ParseAddr(entry.IPv4); err == nil && own.IsValid() && ip == own.Addr() && entry.Type == "RoCE v2" {
					return d.Name, entry.Index, true
				}
			}
		}
	}
	return "", -1, false
}
