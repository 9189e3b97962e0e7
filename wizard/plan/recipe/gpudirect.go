package recipe

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
	"github.com/rdma-setup/rdma-setup/wizard/plan/draft"
	"github.com/rdma-setup/rdma-setup/wizard/plan/driver"
)

// gpudirect plans the hosts' part of mode gpudirect: GPUs, and the RDMA card or its VFs, reserved for VMs (Reference Deployment
// Guide for RoCE accelerated HPC or ML applications with GPUDirect RDMA on vSphere 6.7, NVIDIA/Mellanox; Scaling HPC and ML with
// GPUDirect RDMA on vSphere 6.7, VMware; VMware, DirectPath I/O).
func (b *builder) gpudirect() {
	if b.Virtual() {
		b.sriov()
	} else {
		for _, h := range b.Hosts {
			b.powerPolicy(h)
		}
	}
	for _, h := range b.Hosts {
		b.assign(h)
		driver.ATS(b.Draft, h)
		b.passThrough(h)
	}
}

// cards determines the RDMA cards that are passed through to the VMs of each host.
func (b *builder) cards() {
	for _, h := range b.Hosts {
		if b.Answers.Several() {
			b.cardsOfRails(h)
			continue
		}
		on := b.vmsOn(h)
		if len(on) > 1 {
			names := backends.Each(on, func(v *draft.VM) string { return v.Name })
			b.Refuse(backends.HostRef(h.Name), "HOST-PT-FREE-014",
				"set gpudirect.nic to sriov, so that each gets a VF, or remove all but one from vms",
				"%s are on it, but a whole card can be assigned to one VM only", strings.Join(names, " and "))
			continue
		}
		if len(on) == 1 {
			if c := b.chooseCard(h, on[0]); c != nil {
				on[0].Cards = []backends.PCIDevice{*c}
			}
		} else {
			b.NoteEach(h.Name, "the answers list no VM on [it|them]: nothing is passed through")
		}
	}
}

// chooseCard returns the function of the RDMA card: the one that the VM has, the pNIC that the answers describe, or one that was
// passed through before and is no longer a pNIC.
func (b *builder) chooseCard(h *draft.Host, v *draft.VM) *backends.PCIDevice {
	cards := h.Cards()
	for i := range cards {
		if b.has(v, cards[i].Address) {
			return &cards[i]
		}
	}
	if b.leadsToNVSwitch(h, b.Answers.NIC.Device) {
		return nil
	}
	quiet := newBuilder(b.Answers, b.Inventory, b.Options)
	nic := quiet.rail(0).chooseNIC(h)
	if nic == nil {
		if c := b.passedOn(h, cards); c != nil {
			return c
		}
		if b.cardElsewhere(h, cards) {
			return nil
		}
	}
	if nic = b.rail(0).chooseNIC(h); nic == nil {
		return nil
	}
	h.SetPort(0, 1, nic)
	i := slices.IndexFunc(cards, func(c backends.PCIDevice) bool { return strings.EqualFold(c.Address, nic.PCI) })
	if i < 0 {
		b.Refuse(backends.HostRef(h.Name), "HOST-PT-ACTIVE-013", "choose a port of a ConnectX card",
			"%s at %s is not in the host's list of PCI devices", nic.Device, nic.PCI)
		return nil
	}
	return &cards[i]
}

// leadsToNVSwitch refuses a host if its function at an address may be no adapter.
func (b *builder) leadsToNVSwitch(h *draft.Host, pci string) bool {
	if !h.LeadsToNVSwitch(pci) {
		return false
	}
	b.Refuse(backends.HostRef(h.Name), "HOST-PT-FREE-014", "name another card by nic.device",
		"the ConnectX-7 function at %s may lead to the NVSwitches of the %s: only its VPD (SMDL=SW_MNG) shows that, and vSphere does "+
			"not report it", pci, h.Baseboard)
	return true
}

// passedOn returns the only card that is passed through, is not a pNIC and belongs to no VM.
func (b *builder) passedOn(h *draft.Host, cards []backends.PCIDevice) *backends.PCIDevice {
	var free []*backends.PCIDevice
	for i := range cards {
		c := &cards[i]
		named := !strings.Contains(b.Answers.NIC.Device, ":") || strings.EqualFold(b.Answers.NIC.Device, c.Address)
		pnic := slices.ContainsFunc(h.NICs, func(n backends.NIC) bool { return strings.EqualFold(n.PCI, c.Address) })
		if c.Enabled && !pnic && named && b.owner(h, c.Address) == nil {
			free = append(free, c)
		}
	}
	if len(free) != 1 {
		return nil
	}
	return free[0]
}

// cardElsewhere refuses a host whose RDMA card belongs to a VM other than in the answers: while that VM has it, the card is not a
// pNIC, and has neither speed nor link to compare.
func (b *builder) cardElsewhere(h *draft.Host, cards []backends.PCIDevice) bool {
	for _, c := range cards {
		if strings.Contains(b.Answers.NIC.Device, ":") && !strings.EqualFold(b.Answers.NIC.Device, c.Address) {
			continue
		}
		if o := b.owner(h, c.Address); o != nil {
			b.Refuse(backends.HostRef(h.Name), "HOST-PT-FREE-014", takeFrom(o)+", or name another card by nic.device",
				"the RDMA card at %s belongs to %s", c.Address, ownerName(o))
			return true
		}
	}
	return false
}

// ownerName describes a VM that has a device: its name, power state and folder.
func ownerName(v *backends.VM) string {
	state := map[string]string{"poweredOn": "powered on", "poweredOff": "powered off"}[v.Power]
	if i := strings.LastIndexByte(v.Path, '/'); i > 0 {
		return fmt.Sprintf("%s (%s, in %s)", v.Name, cmp.Or(state, v.Power), v.Path[:i])
	}
	return fmt.Sprintf("%s (%s)", v.Name, cmp.Or(state, v.Power))
}

// takeFrom says how to free a device. A VM's PCI devices can be removed only while it is off (vSphere Virtual Machine
// Administration, "Add a PCI Device to a Virtual Machine").
func takeFrom(v *backends.VM) string {
	if v.Power == "poweredOff" {
		return "remove the device from " + v.Name
	}
	return "shut " + v.Name + " down and remove the device from it"
}

func (b *builder) has(v *draft.VM, pci string) bool {
	return slices.ContainsFunc(v.Devices, func(d backends.AssignedDevice) bool { return strings.EqualFold(d.PCI, pci) })
}

// owner returns the VM that has a device of a host; a running one has priority.
func (b *builder) owner(h *draft.Host, pci string) *backends.VM {
	var found *backends.VM
	for i := range b.Inventory.VMs {
		v := &b.Inventory.VMs[i]
		if v.Host != h.Name || !slices.ContainsFunc(v.Devices, func(d backends.AssignedDevice) bool { return strings.EqualFold(d.PCI, pci) }) {
			continue
		}
		if found == nil || v.Power == "poweredOn" {
			found = v
		}
	}
	return found
}

// A device is one that a host should reserve for a VM.
type device struct {
	pci, what              string // what: "GPU", "RDMA card"
	capable, enabled, live bool
	dependents             []string
}

func (b *builder) devicesOf(h *draft.Host) []device {
	var out []device
	for _, v := range b.vmsOn(h) {
		for _, g := range v.GPUs {
			out = append(out, device{g.PCI, "GPU", g.Capable, g.Enabled, g.Active, g.Dependents})
		}
		for _, c := range v.Cards {
			out = append(out, device{c.Address, "RDMA card", c.Capable, c.Enabled, c.Active, c.Dependents})
		}
	}
	return out
}

// passThrough plans the devices that a host reserves for its VMs. If the host can rebind devices a GPU needs no reboot; a network
// card always needs one, because the driver of the pNIC has it until then.
func (b *builder) passThrough(h *draft.Host) {
	ref := backends.HostRef(h.Name)
	all := b.devicesOf(h)
	why := []string{}
	for _, d := range all {
		switch {
		case !d.capable && !d.enabled:
			b.Refuse(ref, "HOST-IOMMU-005",
				"switch VT-d (AMD: IOMMU) on in the BIOS; if it is already on, this slot or card cannot be passed through",
				"the %s at %s cannot be passed through", d.what, d.pci)
			return
		case !b.groupFree(h, d):
			return
		case d.live:
		case d.enabled:
			why = append(why, fmt.Sprintf("%s at %s is enabled and waits for it", d.what, d.pci))
		case d.what != "GPU":
			why = append(why, fmt.Sprintf("%s at %s goes from the host's driver to VMs", d.what, d.pci))
		case !h.Rebind:
			why = append(why, fmt.Sprintf("this host can only pass devices through after a reboot (%s at %s)", d.what, d.pci))
		}
	}
	shared, late := b.graphics(h)
	if late {
		why = append(why, "its GPUs serve for vGPUs after it")
	}
	reboot := ""
	if len(why) > 0 {
		br := plan.Bracket{Kind: backends.BracketReboot, Target: ref, Why: strings.Join(why, "; "), From: plan.HostFound(h.InMaintenance),
			Effect: plan.HostReboot}
		if n := len(h.Reboots); n > 0 { // the last reboot for the VFs serves both
			reboot = h.Reboots[n-1]
			b.Brackets[reboot].Why += "; " + br.Why
		} else {
			reboot = br.ID()
			b.Brackets[reboot] = &br
			h.Reboots = append(h.Reboots, reboot)
		}
		h.Ready = append(h.Ready, reboot)
	}
	for _, c := range shared {
		if reboot != "" && !c.State {
			c.Within, c.Disrupts = []string{reboot}, []plan.Disruption{plan.HostReboot}
		} else if reboot != "" {
			c.After = append(c.After, reboot)
		}
		b.Add(c)
		h.Ready = append(h.Ready, c.ID())
	}
	for _, d := range all {
		set := backends.Setting{Target: ref, Kind: backends.KindPassthrough, Name: d.pci}
		c := plan.Change{Setting: set, From: b.Now(set), To: backends.ValueOf(true), Why: b.passWhy(d)}
		if reboot != "" {
			c.Within, c.Disrupts = []string{reboot}, []plan.Disruption{plan.HostReboot}
		}
		b.Add(c)
		h.Ready = append(h.Ready, set.ID())
		if d.live {
			continue
		}
		after := []string{set.ID()}
		if reboot != "" {
			after = append(after, reboot)
		}
		live := backends.Setting{Target: ref, Kind: backends.KindActivePassthrough, Name: d.pci}
		b.Add(plan.Change{Setting: live, From: b.Now(live), To: backends.ValueOf(true), State: true, After: after,
			Why: "checked after it was enabled: some hosts lose it at the next boot (PCIe hot-plug, HPE a00121002)"})
		h.Ready = append(h.Ready, live.ID())
	}
}

func (b *builder) passWhy(d device) string {
	why := "the " + d.what + " is reserved for its VM (DirectPath I/O)"
	if len(d.dependents) > 0 {
		why += "; " + strings.Join(d.dependents, ", ") + " in its IOMMU group are passed through with it"
	}
	return why
}

// groupFree refuses a device if its group contains something that the host itself or another VM uses.
func (b *builder) groupFree(h *draft.Host, d device) bool {
	for _, other := range d.dependents {
		use := ""
		for i := range h.NICs {
			n := &h.NICs[i]
			if why := n.Usage(backends.PNICWish{Purpose: backends.WholeCard}); strings.EqualFold(n.PCI, other) && why != "" {
				use = n.Device + ", which " + why
			}
		}
		if i := slices.IndexFunc(h.PCI, func(p backends.PCIDevice) bool { return p.Address == other }); use == "" && i >= 0 &&
			strings.HasPrefix(h.PCI[i].Class, "01") {
			use = "a storage controller (" + cmp.Or(h.PCI[i].Name, h.PCI[i].Class) + ")"
		}
		if v := b.owner(h, other); use == "" && v != nil && b.ByVM[v.Name] == nil {
			use = "a device of the VM " + v.Name
		}
		if use != "" {
			b.Refuse(backends.HostRef(h.Name), "HOST-PT-DEPEND-015", "choose a device in another slot, or switch ACS on in the BIOS",
				"the %s at %s shares its IOMMU group with %s: %s", d.what, d.pci, other, use)
			return false
		}
	}
	return true
}
