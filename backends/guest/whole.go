package guest

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/ssh"
)

// card returns the MAC of a passed-through NIC: vCenter has no adapter for it, only the guest reports it. If the guest does not
// report the card, the error is of kind refused.
func (g *Guests) card(ctx context.Context, vm, name string) (string, error) {
	owner := &backends.VM{}
	pci, _ := backends.OfHCA(name)
	if pci != "" {
		devices, err := g.macs.Devices(ctx, vm)
		if err != nil {
			return "", err
		}
		owner.Devices = devices
	}
	r, err := g.Run(ctx, vm, ssh.Command{Script: networkScript() + section("rdma", script("rdma-devices.sh"))})
	if err != nil {
		return "", err
	}
	f := sections(r.Stdout)
	seen := backends.Guest{RDMA: f.devices(f.network().interfaces)}
	if d := seen.CardAt(owner, name); d != nil && d.MAC != "" {
		return d.MAC, nil
	}
	return "", notSeen(vm, pci, owner.Devices, seen.RDMA)
}

// notSeen explains why none of the RDMA devices of a guest can be identified as the card at a PCI address of the host.
func notSeen(vm, pci string, given []backends.AssignedDevice, seen []backends.VerbsDevice) error {
	refuse := func(hint, format string, args ...any) error {
		return backends.Errorf(backends.KindRefused, label(vm), hint, format, args...)
	}
	if pci == "" {
		return refuse("load the driver of the card in the guest, and connect one of its ports", "the guest has no RDMA device, or several of which none is active")
	}
	i := slices.IndexFunc(given, func(d backends.AssignedDevice) bool { return strings.EqualFold(d.PCI, pci) })
	var at []string
	for _, d := range seen {
		at = append(at, d.Name+" behind "+cmp.Or(d.Bridge, "no bridge"))
	}
	have := cmp.Or(strings.Join(at, ", "), "there is none")
	switch {
	case i < 0:
		return refuse("run rdma-setup apply again: it attaches the card to the VM", "the VM does not have the card at %s", pci)
	case given[i].GuestBridge() == "":
		return refuse("power the VM off and on once, so that vCenter gives the device a slot behind a PCI bridge",
			"cannot tell which RDMA device is the card at %s: its PCI slot in the VM is %d; RDMA devices of the guest: %s", pci, given[i].Slot, have)
	}
	return refuse("look for pciBridgeN.pciSlotNumber and pciPassthruN.pciSlotNumber in the VM's advanced settings: with the VM off, remove "+
		"those that were set by hand, and run rdma-setup apply again",
		"no RDMA device of the guest is behind the PCI bridge %s, where slot %d of the card at %s leads (KB 311606); RDMA devices of the guest: %s",
		given[i].GuestBridge(), given[i].Slot, pci, have)
}
