package recipe

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
	"github.com/rdma-setup/rdma-setup/wizard/plan/draft"
	"github.com/rdma-setup/rdma-setup/wizard/sizing"
)

func (b *builder) selectVMs() {
	byName, guests := b.vmIndex(), map[string]*backends.Guest{}
	for i := range b.Inventory.Guests {
		guests[b.Inventory.Guests[i].VM] = &b.Inventory.Guests[i]
	}
	for _, want := range b.Answers.VMs {
		v := b.findVM(want.Name, byName)
		if v == nil {
			continue
		}
		ref := backends.VMRef(v.Name)
		if b.TakesPart(v) {
			b.Refuse(ref, "", "name each VM once", "is listed twice in vms, once by its path")
			continue
		}
		if b.Part(v.Host) == nil {
			if len(b.Options.Limit) > 0 {
				b.NoteEach(v.Name, "skipped by --limit")
				continue
			}
			switch h := b.Inventory.Host(v.Host); {
			case h == nil || h.State == "connected" || !b.wanted(h):
				b.Refuse(ref, "", "add the host, move the VM, or remove it from vms", "is on %s, which the answers do not include", v.Host)
			case len(b.Answers.Hosts.Names) == 0: // hosts that are named are refused themselves
				b.Refuse(ref, "", "reconnect the host, or remove the VM from vms", "is on %s, which vCenter is not connected to (%s)", v.Host, h.State)
			}
			continue
		}
		if b.vmState(v) {
			b.ByVM[v.Name] = &draft.VM{VM: v, Wish: want, Nets: b.networks(want), Guest: guests[v.Name]}
			b.VMs = append(b.VMs, b.ByVM[v.Name])
		}
	}
	b.addresses()
	b.prefixes()
}

// networks returns the RDMA interfaces that a VM should have. A card that is passed through is on no port group.
func (b *builder) networks(want answers.VM) []answers.Adapter {
	nets := b.Answers.Networks(want)
	if !b.WholeCard() || b.Answers.Several() {
		return nets
	}
	if len(nets) > 1 {
		b.Refuse(backends.VMRef(want.Name), "", "give it one address, list its cards as rails, or set gpudirect.nic to sriov",
			"has %d adapters in vms; its "+
				"one RDMA card has one network", len(nets))
	}
	nets = slices.Clone(nets)
	for i := range nets {
		nets[i].PortGroup = backends.WholeHCA
	}
	return nets
}

// vmIndex returns the VMs by name, by inventory path, and by the names that they share with other VMs of vCenter.
func (b *builder) vmIndex() map[string][]*backends.VM {
	idx := map[string][]*backends.VM{}
	for i := range b.Inventory.VMs {
		v := &b.Inventory.VMs[i]
		names := []string{v.Name, v.Path, backends.BaseName(v.Name)}
		slices.Sort(names)
		for _, n := range slices.Compact(names) {
			if n != "" {
				idx[n] = append(idx[n], v)
			}
		}
	}
	return idx
}

// findVM returns a VM by name or inventory path. An ambiguous name is an error.
func (b *builder) findVM(name string, idx map[string][]*backends.VM) *backends.VM {
	var found []*backends.VM
	for _, v := range idx[name] {
		if v.Name == name || v.Path == name {
			return v
		}
		found = append(found, v)
	}
	if len(found) == 0 {
		b.Refuse(backends.VMRef(name), "", nearName(name, b.Inventory.VMs, func(v backends.VM) string { return v.Name },
			"name or inventory path"), "no such VM in the inventory")
		return nil
	}
	paths := backends.Each(found, func(v *backends.VM) string { return cmp.Or(v.Path, v.Name) })
	slices.Sort(paths)
	b.Usage = append(b.Usage, fmt.Sprintf("vms: %q is the name of several VMs of vCenter; write the inventory path: %s", name,
		strings.Join(paths, ", ")))
	return nil
}

func (b *builder) vmState(v *backends.VM) bool {
	ref := backends.VMRef(v.Name)
	switch {
	case v.Template:
		b.Refuse(ref, "VM-POWER-001", "clone it and name the clone", "is a template")
	case v.VCenterVM:
		b.Refuse(ref, "VM-POWER-001", "remove it from vms", "is the vCenter itself; it is never powered off")
	case v.State != "" && v.State != "connected":
		b.Refuse(ref, "VM-POWER-001", "repair its storage or registration first", "is %s", v.State)
	case v.Power == "suspended":
		b.Refuse(ref, "VM-POWER-001", "resume it, or power it off", "is suspended")
	case v.FaultTolerant:
		b.Refuse(ref, "VM-FT-028", "switch fault tolerance off", "runs with fault tolerance, which does not support RDMA adapters")
	default:
		if h := b.Part(v.Host); h.InMaintenance && v.Power != "poweredOn" {
			b.Refuse(ref, "HOST-MAINT-002", "take the host out of maintenance mode",
				"is on %s, which is in maintenance mode: it cannot be powered on", v.Host)
			return false
		}
		return true
	}
	return false
}

func (b *builder) addresses() {
	vmks, tools := map[string]string{}, map[string]string{}
	for _, h := range b.Inventory.Hosts {
		for _, k := range h.VMKs {
			vmks[k.IP] = k.Device + " on " + h.Name
		}
	}
	for _, v := range b.Inventory.VMs {
		for _, ip := range v.IPs {
			if other := tools[ip]; other == "" || b.ByVM[other] != nil {
				tools[ip] = v.Name
			}
		}
	}
	for _, p := range b.VMs {
		for _, n := range p.Nets {
			if !n.IP.IsValid() {
				continue
			}
			ip := n.IP.Addr().String()
			if who, taken := vmks[ip]; taken {
				b.Refuse(backends.VMRef(p.Name), "GST-DUPIP-016", "choose another address", "%s is the address of %s", ip, who)
			}
			if who, taken := tools[ip]; taken && who != p.Name {
				b.Object(backends.VMRef(p.Name), "GST-DUPIP-016", "choose another address", "%s is in use by the VM %s", ip, who)
			}
		}
	}
}

// prefixes refuses addresses of guests on one network whose subnets overlap without being the same: one guest then sends to the other
// directly, and the other replies through a router, if at all.
func (b *builder) prefixes() {
	type subnet struct {
		netip.Prefix
		vm string
	}
	known := map[string][]subnet{} // by network
	for _, p := range b.VMs {
		for _, n := range p.Nets {
			one := subnet{n.IP.Masked(), p.Name}
			if !one.IsValid() || !p.Wish.Guest.Managed() {
				continue
			}
			i := slices.IndexFunc(known[n.PortGroup], func(other subnet) bool { return other.Overlaps(one.Prefix) })
			if i < 0 {
				known[n.PortGroup] = append(known[n.PortGroup], one)
			} else if other := known[n.PortGroup][i]; other.Prefix != one.Prefix {
				b.Object(backends.VMRef(p.Name), "GST-IP-014", "give all VMs of one network the same prefix length",
					"its subnet %s overlaps with %s of %s", one, other.Prefix, other.vm)
			}
		}
	}
}

func (b *builder) vm(v *draft.VM) {
	ref := backends.VMRef(v.Name)
	var body []plan.Change
	to, why := b.hardware(v)
	v.To = to
	if to == v.Hardware { // otherwise the list is for the version before the upgrade
		b.guestOS(v)
	}
	if to > v.Hardware {
		s := backends.Setting{Target: ref, Kind: backends.KindHardware}
		var names []string
		if slotsMove(v, to) {
			names = b.nicNames(v, to)
		}
		body = append(body, plan.Change{Setting: s, From: b.Now(s), To: backends.ValueOf(to), Why: why, After: names,
			Irreversible: "a hardware version cannot be lowered; only a snapshot taken before can restore it"})
	}
	if b.Answers.AdapterType() == "pvrdma" && to < sizing.HardwareNativeEndpoints {
		b.NoteEach(v.Name, "%s", pvrdmaLacks(to))
	}
	mem := backends.Setting{Target: ref, Kind: backends.KindMemory}
	body = append(body, plan.Change{Setting: mem, From: b.Now(mem),
		To:       backends.ValueOf(backends.MemorySpec{Locked: true, ReservationMB: v.MemoryMB}),
		Why:      "RDMA reads and writes the guest's memory directly (vSphere Networking; the Bitfusion guide leaves it out)",
		Disrupts: []plan.Disruption{plan.MemoryLocked}})
	body = append(body, b.tuning(v)...)
	if !b.WholeCard() {
		body = append(body, b.adapters(v)...)
	}
	if b.Answers.GPUs() {
		body = append(body, b.devices(v)...)
	}
	hw := backends.Setting{Target: ref, Kind: backends.KindHardware}.ID()
	for _, c := range body {
		if c.From == c.To {
			continue
		}
		c.Within = []string{b.Power(v.VM, "devices and memory of a VM change only while it is off")}
		c.Disrupts = append(c.Disrupts, plan.VMPowerCycle)
		c.After = append(c.After, b.NetworkIDs(v.Host)...)
		if c.Kind != backends.KindHardware {
			c.After = append(c.After, hw)
		}
		b.Add(c)
	}
	if id, cycled := b.Powered(v.VM); cycled && !v.On() && !v.Wish.Guest.Managed() {
		b.Brackets[id].Leave = backends.ValueOf("poweredOff") // an appliance is left as it was
	}
	if !v.On() && v.Wish.Guest.Managed() {
		b.Power(v.VM, "its guest can only be read and set up while it is on")
		b.NoteEach(v.Name, "powered off; will be powered on for setup and left on. Only then can the log-in to [its guest|their guests] be tried")
	}
	if v.Snapshots > 0 {
		b.NoteEach(v.Name, "[has|have] snapshots; reverting to one restores the old devices, but not the old memory reservation")
	}
}

func (b *builder) memoryFits() {
	sum := map[string]int64{}
	for _, v := range b.VMs {
		sum[v.Host] += v.MemoryMB
	}
	for _, h := range b.Hosts {
		if h.MemoryMB > 0 && sum[h.Name] > h.MemoryMB {
			b.Object(backends.HostRef(h.Name), "VM-MEMFIT-008", "move or shrink VMs", "%d MB of memory would be reserved, it has %d MB", sum[h.Name],
				h.MemoryMB)
		}
	}
}

// apart notes VMs whose RDMA addresses are in different subnets of one port group: that requires a router, and is more often a
// mistake.
func (b *builder) apart() {
	groups := map[string][]netip.Prefix{}
	var order []string
	for _, v := range b.VMs {
		for _, n := range v.Nets {
			subnet := n.IP.Masked()
			if !n.IP.IsValid() || slices.Contains(groups[n.PortGroup], subnet) {
				continue
			}
			if groups[n.PortGroup] == nil {
				order = append(order, n.PortGroup)
			}
			groups[n.PortGroup] = append(groups[n.PortGroup], subnet)
		}
	}
	for _, group := range order {
		if len(groups[group]) < 2 {
			continue
		}
		names := backends.Each(groups[group], netip.Prefix.String)
		b.Note("the RDMA addresses on %s are in %d subnets (%s): a router must forward RoCE between them, or their pairs cannot be measured",
			group, len(names), strings.Join(names, ", "))
	}
}
