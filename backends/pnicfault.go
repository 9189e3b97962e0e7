package backends

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

func judge(h *Host, n *NIC, w PNICWish) PNICVerdict {
	v := PNICVerdict{NIC: n}
	if v.Against = unwanted(n, w); len(v.Against) > 0 {
		return v // other faults are irrelevant
	}
	if h.State != "" && h.State != "connected" {
		v.Against = []PNICReason{{HostAway, "HOST-CONN-001", "is on a host that is " + h.State + "; vCenter shows the last known state",
			"reconnect the host in vCenter"}}
		return v
	}
	if n.Hidden != "" {
		v.Against = []PNICReason{hidden(n, w)}
		return v
	}
	v.Against = append(inUse(h, n, w), unable(h, n, w)...)
	v.Against = append(v.Against, notUp(n, w)...)
	what := n.Driver
	if w.Purpose == SharedNIC {
		what = fmt.Sprintf("RoCE %s (%s)", map[bool]string{true: "v1", false: "v2"}[w.Protocol == "rocev1"], n.RDMADevice)
	}
	v.fits = fmt.Sprintf("%s, %s, link up, free", what, Speed(n.SpeedMbps))
	// A driver that the operator names is accepted as it is.
	if v.Unlisted = w.Purpose == SharedNIC && w.Driver == "" && w.Drivers != nil && !w.Drivers.RoCE(n.Driver); v.Unlisted {
		what += ", driver " + n.Driver + " not listed (unverified)"
		v.fits = fmt.Sprintf("%s, %s, link up, free", what, Speed(n.SpeedMbps))
	}
	if n.Switch != "" {
		v.fits = strings.TrimSuffix(v.fits, "free") + "uplink of " + n.Switch
	}
	return v
}

// hidden returns what rules out a PCI function without a pNIC. A plan for VFs writes the card's firmware anyway and sets the port
// to Ethernet; other modes do not write firmware.
func hidden(n *NIC, w PNICWish) PNICReason {
	to := ""
	if w.Drivers != nil {
		to = w.Drivers.ToEthernet(n)
	}
	switch {
	case to == "":
		return PNICReason{NotCapable, w.PresentCheck(), n.Hidden, "install the driver of the card, or choose another pNIC"}
	case w.Purpose == VFParent:
		return PNICReason{SwitchedOff, w.PresentCheck(), n.Hidden, "name it by nic.device: \"" + n.PCI + "\"; the plan sets it to Ethernet"}
	}
	return PNICReason{NotCapable, w.PresentCheck(), n.Hidden, "set it to Ethernet and reboot the host: " + to + "; or choose another pNIC"}
}

// unwanted returns how a pNIC differs from the requested one. A pNIC without link has no speed to compare, and an uplink of the
// wish's switch is the requested one even if its link runs slower: for both, the maximum speed is compared.
func unwanted(n *NIC, w PNICWish) []PNICReason {
	if against := undescribed(n, w); len(against) > 0 || w.Position == 0 || strings.EqualFold(n.PCI, w.at) {
		return against
	}
	return []PNICReason{{WrongDevice, w.PresentCheck(), fmt.Sprintf("is not number %d of those that match, by PCI address", w.Position),
		"correct nic.position"}}
}

// place returns the PCI address of the pNIC at the wish's position, "" if there is none.
func (w PNICWish) place(h *Host) string {
	var all []string
	for i := range h.NICs {
		if n := &h.NICs[i]; w.Position > 0 && len(undescribed(n, w)) == 0 {
			all = append(all, strings.ToLower(n.PCI))
		}
	}
	slices.Sort(all)
	if w.Position < 1 || w.Position > len(all) {
		return ""
	}
	return all[w.Position-1]
}

// slotOf returns a PCI address without its function and with its segment.
func slotOf(pci string) string {
	slot, _, _ := strings.Cut(strings.ToLower(pci), ".")
	if strings.Count(slot, ":") == 1 {
		slot = "0000:" + slot
	}
	return slot
}

func undescribed(n *NIC, w PNICWish) []PNICReason {
	one := func(f PNICFault, check, why, remedy string) []PNICReason {
		return []PNICReason{{f, check, why, remedy}}
	}
	switch can := n.MaxSpeedMbps; {
	case w.MAC != "" && n.Hidden != "":
		return one(WrongMAC, "HOST-PNIC-MAC-005", n.Hidden+" and shows no MAC", "choose it by nic.device")
	case w.MAC != "" && !strings.EqualFold(n.MAC, w.MAC):
		return one(WrongMAC, "HOST-PNIC-MAC-005", "has MAC "+n.MAC, "correct nic.macs for this host")
	case w.Device != "" && n.Device != w.Device && !strings.EqualFold(n.PCI, w.Device):
		return one(WrongDevice, w.PresentCheck(), "is not "+w.Device, "correct nic.device, or choose by nic.macs")
	case w.Slot != "" && slotOf(n.PCI) != slotOf(w.Slot):
		return one(WrongDevice, w.PresentCheck(), "is at "+n.PCI+", not in "+w.Slot, "correct nic.slot")
	case w.NUMA != "" && strconv.Itoa(n.NUMA) != w.NUMA:
		return one(WrongDevice, w.PresentCheck(), fmt.Sprintf("is on NUMA node %d", n.NUMA), "correct nic.numa")
	case w.Driver != "" && n.Driver != w.Driver:
		return one(WrongDriver, "HOST-PNIC-DRIVER-006", "has driver "+n.Driver, "install the driver, or correct nic.driver")
	case w.SpeedMbps == 0 || n.SpeedMbps == w.SpeedMbps, n.SpeedMbps == 0 && (can == 0 || can == w.SpeedMbps), w.own(n) && can == w.SpeedMbps:
		return nil
	case n.SpeedMbps == 0:
		return one(WrongSpeed, "HOST-PNIC-SPEED-004", "has no link and runs at up to "+Speed(can), "correct nic.speed")
	}
	return one(WrongSpeed, "HOST-PNIC-SPEED-004", "runs at "+Speed(n.SpeedMbps), "check cable and switch port, or correct nic.speed")
}

// PresentCheck returns the id of the check for a host without such a pNIC. Only PVRDMA has one for RDMA devices.
func (w PNICWish) PresentCheck() string {
	if w.Purpose == SharedNIC {
		return "HOST-PNIC-RDMA-001"
	}
	return "HOST-PNIC-STATE-003"
}

// Usage returns what a pNIC is already used for, "" if it is free. A vmknic, a storage adapter and an uplink of a standard or
// opaque switch always count. VMs with ordinary adapters count on every DVS except the one that the operator named; if none is
// named, a DVS with RDMA adapters only counts as free, because an earlier setup put the pNIC there.
func (n *NIC) Usage(w PNICWish) string {
	switch {
	case len(n.Roles) > 0:
		why := "carries " + strings.Join(n.Roles, ", ")
		if n.Switch != "" {
			why += " on " + n.Switch
		}
		if by := slices.Concat(n.Use.VMKs, n.Use.Storage); len(by) > 0 {
			why += " (" + strings.Join(by, ", ") + ")"
		}
		return why
	case n.Use.Opaque:
		return "is an uplink of " + n.Switch + ", which NSX manages"
	case n.Switch == "" || w.own(n):
		return ""
	case n.Use.Standard:
		return "is an uplink of the standard switch " + n.Switch
	case len(n.Use.VMs) > 0:
		return "is an uplink of " + n.Switch + ", which carries " + some(n.Use.VMs, "VM")
	case w.Switch != "" || w.Purpose == WholeCard:
		return "is an uplink of " + n.Switch
	}
	return ""
}

// Usage is NIC.Usage without the vmknic of PVRDMA itself, that is, one that this program created or that the host's option names:
// the pNIC stays available for RDMA.
func (h *Host) Usage(n *NIC, w PNICWish) string {
	other := func(device string) bool {
		k := h.VMK(device)
		return k == nil || len(k.Roles) > 0 || device != h.Options[VMKNICOption] && !w.VMKs.Holds(k)
	}
	if len(n.Use.VMKs) > 0 && !n.Use.Standard && !slices.ContainsFunc(n.Use.VMKs, other) {
		own := *n
		own.Roles = slices.DeleteFunc(slices.Clone(n.Roles), func(r string) bool { return r == RoleVMKernel })
		n = &own
	}
	return n.Usage(w)
}

func inUse(h *Host, n *NIC, w PNICWish) []PNICReason {
	why, remedy := h.Usage(n, w), "choose another pNIC, or move that traffic first"
	if why == "" {
		return nil
	}
	if w.Purpose == WholeCard {
		remedy = "choose another pNIC, or take it off its switch first"
	}
	return []PNICReason{{InUse, "HOST-PNIC-USED-012", why, remedy}}
}

// unable returns the required features that a pNIC lacks.
func unable(h *Host, n *NIC, w PNICWish) (out []PNICReason) {
	no := func(f PNICFault, check, why, remedy string) { out = append(out, PNICReason{f, check, why, remedy}) }
	const another = "choose another pNIC"
	if n.DPU != "" {
		no(OnDPU, w.PresentCheck(), "belongs to the DPU "+n.DPU, another+": the host cannot use the ports of a DPU for RDMA")
	}
	switch w.Purpose {
	case VFParent:
		// A pNIC that offers no VFs yet is not a fault: from here firmware and BIOS cannot be distinguished, and the plan sets the
		// firmware.
		if w.Drivers != nil {
			if why, remedy := w.Drivers.NoVFs(n.Driver); why != "" {
				no(NotCapable, "HOST-PNIC-DRIVER-006", why, remedy)
			}
		}
		return out
	case WholeCard:
		if len(h.PCI) == 0 {
			no(NotCapable, "HOST-PNIC-DRIVER-006", "is on a host whose PCI devices were not read", "let the account read the host (System.Read)")
			return out
		}
		if !slices.ContainsFunc(h.Cards(), func(c PCIDevice) bool { return strings.EqualFold(c.Address, n.PCI) }) {
			no(NotCapable, "HOST-PNIC-DRIVER-006", "is not a ConnectX card",
				"choose a port of a ConnectX card: its driver in the guest can access GPU memory")
		}
		return out
	}
	v1 := w.Protocol == "rocev1"
	const roce = "HOST-PNIC-ROCEV2-002"
	switch {
	case n.RDMADevice == "" && !v1 && w.Drivers != nil && w.Drivers.RDMAOff(h, n):
		no(SwitchedOff, w.PresentCheck(), "has RDMA switched off in "+n.Driver, w.Drivers.NoDevice(h, n)+", or "+another)
	case n.RDMADevice == "":
		remedy := "load the RDMA driver" + w.rdmaModules() + ", or "
		switch {
		case w.Drivers == nil:
		case w.Drivers.NoDevice(h, n) != "":
			remedy = w.Drivers.NoDevice(h, n) + ", or "
		case !w.Drivers.RoCE(n.Driver): // another module does not help
			remedy = "RoCE needs an adapter with an RDMA device: "
		}
		no(NotCapable, w.PresentCheck(), "has no RDMA device", remedy+another)
		return out
	case v1 && n.RoCEv1, !v1 && n.RoCEv2:
	case n.RoCEv1:
		no(WrongProtocol, roce, "supports RoCE v1 only", "set pvrdma.protocol to rocev1, or "+another)
	case n.RoCEv2:
		no(WrongProtocol, roce, "does not support RoCE v1", "set pvrdma.protocol to rocev2")
	case n.IWARP:
		remedy := "switch the NIC to RoCE v2 with its driver's parameter"
		if w.Drivers != nil {
			remedy = cmp.Or(w.Drivers.IWARP(n), remedy)
		}
		no(WrongProtocol, roce, "supports iWARP only, not RoCE", remedy+", or "+another)
	default:
		no(WrongProtocol, roce, "has RDMA device "+n.RDMADevice+", which does not support RoCE", another)
	}
	// On the requested switch, ENS can be disabled: the plan and HOST-ENS-017 say so, and --skip applies.
	if n.Use.ENS && !w.own(n) && w.Drivers != nil && w.Drivers.NoENS(n.Driver) != "" {
		no(EnhancedPath, "HOST-ENS-017", "is on "+n.Switch+" in enhanced data path mode (ENS), where its RDMA is not available ("+
			w.Drivers.NoENS(n.Driver)+")",
			"switch Enhanced Networking Stack off for this host on "+n.Switch)
	}
	return out
}

// notUp returns why a pNIC carries no traffic now. For a shared pNIC the RDMA device counts too: down, init and armed are not
// ready; an unknown state is not a fault (vSphere API, HostRdmaDeviceConnectionState).
func notUp(n *NIC, w PNICWish) []PNICReason {
	const check, cable = "HOST-PNIC-STATE-003", "check cable, optics and switch port"
	switch {
	case n.SpeedMbps == 0:
		return []PNICReason{{NoLink, check, "has no link", cable}}
	case w.Purpose == SharedNIC && n.RDMADevice != "" && slices.Contains([]string{"down", "init", "armed"}, n.RDMAState):
		return []PNICReason{{RDMADown, check, "has RDMA device " + n.RDMADevice + ", which is " + n.RDMAState, cable}}
	case w.SpeedMbps != 0 && n.SpeedMbps != w.SpeedMbps:
		return []PNICReason{{Slow, "HOST-PNIC-SPEED-004", "runs at " + Speed(n.SpeedMbps), "check cable and switch port, or correct nic.speed"}}
	}
	return nil
}

// rdmaModules returns the known modules in brackets, "" if there are none.
func (w PNICWish) rdmaModules() string {
	if w.Drivers == nil {
		return ""
	}
	return " (" + strings.Join(w.Drivers.RDMAModules(), ", ") + ")"
}

// some names one element of a list and counts the rest.
func some(names []string, what string) string {
	if len(names) == 1 {
		return what + " " + names[0]
	}
	return fmt.Sprintf("%s %s and %d more", what, names[0], len(names)-1)
}
