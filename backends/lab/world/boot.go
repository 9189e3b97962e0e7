package world

import (
	"fmt"
	"slices"
	"sync"
)

// boot starts the hosts and guests that are on with their configuration.
func (s *State) boot() error {
	for _, h := range s.Hosts {
		h.detach()
		h.populate()
	}
	for _, v := range s.VMs {
		if v.Guest.NICs == nil {
			v.Guest.NICs = v.bootNICs()
		}
		if v.On {
			if err := s.AssignVFs(v); err != nil {
				return err
			}
			if err := s.AssignDevices(v); err != nil {
				return err
			}
			if len(v.Devices) > 0 {
				s.LogStart(v)
				s.LogStarted(v)
			}
		}
	}
	return nil
}

// bootNICs returns what VMware Tools report right after boot: the first adapter with its address from DHCP and, if the guest is
// already set up, the RDMA adapter with its address.
func (v *VM) bootNICs() []GuestNIC {
	if !v.On || !v.Guest.Up {
		return nil
	}
	var nics []GuestNIC
	for n, a := range v.Adapters {
		nic := GuestNIC{MAC: a.MAC, Name: fmt.Sprintf("ens%d", a.Slot), MTU: 1500}
		if a.Type == PVRDMA {
			nic.Name += "f0"
		}
		switch {
		case n == 0:
			nic.Addrs = []string{v.Management()}
		case a.Type == PVRDMA && v.Guest.Preset == "pvrdma" && v.RDMA()[0] == a:
			nic.Addrs, nic.MTU = []string{v.Guest.RDMAAddr}, 9000
		}
		nics = append(nics, nic)
	}
	return nics
}

// NextSlot returns the slot number for the next adapter or device of a VM. The guest derives interface names from it: ens192,
// ens224, ens256, ens161. The number is 32 times the number of the PCI bridge (5 to 8), plus the function of the bridge to
// which the device is connected.
func (v *VM) NextSlot() int {
	const bridges, functions = 4, 8
	slot := 192
	for n := 1; n < bridges*functions; n++ {
		slot = (5+n%bridges)*32 + n/bridges
		if find(v.Adapters, func(a *Adapter) bool { return a.Slot == slot }) == nil &&
			find(v.Devices, func(d *Passthrough) bool { return d.Slot == slot }) == nil {
			break
		}
	}
	return slot
}

// SlotNumber returns a slot in the format of the API (VirtualDevicePciBusSlotInfo): bits 0 to 4 are the device, bits 5 to 9 are
// the bridge number plus one, and the higher bits are the function of the bridge (KB 311606, Mapping PCI slot numbers to
// guest-visible PCI bus topology).
func SlotNumber(slot int) int32 { return int32(slot&^31 | slot&31<<10) }

// commands records the commands that are running in guests and hosts.
type commands struct {
	mu   sync.Mutex
	list []*Event
}

// Begin records that a command is running in a guest or a host until end is called.
func (w *World) Begin(host, vm, argv string) (end func()) {
	e := &Event{What: Process, Host: host, VM: vm, Detail: argv}
	w.commands.mu.Lock()
	defer w.commands.mu.Unlock()
	w.commands.list = append(w.commands.list, e)
	return func() {
		w.commands.mu.Lock()
		defer w.commands.mu.Unlock()
		w.commands.list = slices.DeleteFunc(w.commands.list, func(x *Event) bool { return x == e })
	}
}

// Running returns the running commands that take time, oldest first.
func (w *World) Running() []Event {
	w.commands.mu.Lock()
	defer w.commands.mu.Unlock()
	list := make([]Event, len(w.commands.list))
	for i, e := range w.commands.list {
		list[i] = *e
	}
	return list
}
