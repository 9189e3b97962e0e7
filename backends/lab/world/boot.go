package world

import "fmt"

// boot lets hosts and guests that are on come up with what they are configured for.
func (s *State) boot() error {
	for _, h := range s.Hosts {
		h.detach()
		h.populate()
	}
	for _, v := range s.VMs {
		v.Guest.NICs = v.bootNICs()
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

// bootNICs is what Tools report right after boot: the first adapter with its address from DHCP, and an RDMA adapter
// with its address where the guest is already set up.
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
			nic.Addrs = []string{fmt.Sprintf("10.20.%d.%d/16", v.Index/200, 11+v.Index%200)}
		case a.Type == PVRDMA && v.Guest.Preset == "pvrdma" && v.RDMA()[0] == a:
			nic.Addrs, nic.MTU = []string{v.Guest.RDMAAddr}, 9000
		}
		nics = append(nics, nic)
	}
	return nics
}

// adapterSlots are the PCI slot numbers that the adapters of a VM get, in order; the guest names them after it.
var adapterSlots = [...]int{192, 224, 256, 161, 193, 225, 257, 162, 194, 226}

// NextSlot is the PCI slot number of the next adapter of a VM.
func (v *VM) NextSlot() int {
	for _, slot := range adapterSlots {
		if find(v.Adapters, func(a *Adapter) bool { return a.Slot == slot }) == nil &&
			find(v.Devices, func(d *Passthrough) bool { return d.Slot == slot }) == nil {
			return slot
		}
	}
	return 1184 + 32*(len(v.Adapters)+len(v.Devices))
}
