package recipe

import (
	"slices"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
	"github.com/rdma-setup/rdma-setup/wizard/plan/current"
	"github.com/rdma-setup/rdma-setup/wizard/plan/draft"
	"github.com/rdma-setup/rdma-setup/wizard/sizing"
)

// adapters plans a PVRDMA adapter for each network of a VM; an existing one is completed, never duplicated.
func (b *builder) adapters(v *draft.VM) []plan.Change {
	ref := backends.VMRef(v.Name)
	if i := slices.IndexFunc(v.Adapters, func(a backends.Adapter) bool { return a.Type != "pvrdma" && a.Type != "sriov" }); i != 0 {
		b.Refuse(ref, "VM-NIC-FIRST-014", "add a vmxnet3 adapter first: the RDMA adapter may not be the first one",
			"its first adapter is not an ordinary network adapter")
		return nil
	}
	if t := v.Adapters[0].Type; t != "vmxnet3" {
		b.NoteEach(v.Name, "the first adapter is %s; the VMware guides use vmxnet3", t)
	}
	wanted := map[string]bool{}
	var out []plan.Change
	for _, n := range v.Nets {
		wanted[n.PortGroup] = true
		s := backends.Setting{Target: ref, Kind: backends.KindAdapter, Name: n.PortGroup}
		c := plan.Change{Setting: s, From: b.Now(s), Why: b.adapterWhy(v, n), To: backends.ValueOf(backends.AdapterSpec{
			Type: "pvrdma", PortGroup: n.PortGroup, Switch: b.Rails[b.RailOf(n)].Switch.Name, Protocol: b.Answers.PVRDMA.Protocol, Start: true,
		})}
		if b.Virtual() {
			port := b.Port(b.Part(v.Host), n)
			if port == nil {
				continue // refused
			}
			c.To = backends.ValueOf(backends.AdapterSpec{Type: "sriov", PortGroup: n.PortGroup, Switch: b.Rails[b.RailOf(n)].Switch.Name,
				Start: true, GuestMTU: true, PF: port.PCI})
			c.Disrupts = []plan.Disruption{plan.NoVMotion, plan.NoSnapshots, plan.NoHA}
		}
		out = append(out, c)
	}
	b.others(v, wanted)
	return out
}

// guestOS warns if vCenter does not support the adapter for the VM's guest OS. It does not refuse: the list is about support, and
// adapters work in guests that it leaves out, such as "Other Linux".
func (b *builder) guestOS(v *draft.VM) {
	const check = "VM-NIC-GUESTOS-032"
	kind := b.Answers.AdapterType()
	supported, known := v.SupportsAdapter(kind)
	there := slices.ContainsFunc(v.Adapters, func(a backends.Adapter) bool { return a.Type == kind })
	if known && !supported && !there && !slices.Contains(b.Options.Skip, check) {
		b.NoteEach(v.Name,
			"guest OS %s on vmx-%d: vCenter does not list %s adapters for it; they usually work all the same (--skip %s hides this warning)",
			v.GuestID, v.Hardware, kind, check)
	}
}

func (b *builder) adapterWhy(v *draft.VM, n answers.Adapter) string {
	there := current.RDMAAdapter(v.VM, n.PortGroup) != nil
	switch {
	case b.Virtual() && there:
		return "completes the existing SR-IOV adapter"
	case b.Virtual():
		return "ESXi assigns it a free VF of the host's RDMA pNIC" + b.Answers.RailLabel(n.Rail) + " at power-on; the guest may change the MTU"
	case there:
		return "completes the existing PVRDMA adapter"
	}
	return "the paravirtual RDMA adapter of this VM" + b.Answers.RailLabel(n.Rail)
}

func (b *builder) carries(dvs string) bool {
	return slices.ContainsFunc(b.Rails, func(r answers.Rail) bool { return r.Switch.Name == dvs })
}

// others examines existing adapters that were not requested.
func (b *builder) others(v *draft.VM, wanted map[string]bool) {
	ref := backends.VMRef(v.Name)
	if b.Virtual() {
		b.otherVFs(v, wanted)
		return
	}
	count, seen := 0, map[string]bool{}
	for _, a := range v.Adapters {
		if a.Type == "sriov" && wanted[a.PortGroup] {
			b.Refuse(ref, "VM-NIC-DVS-019", "remove that adapter, or choose another port group", "has an SR-IOV adapter on %s already", a.PortGroup)
		}
		if a.Type != "pvrdma" {
			continue
		}
		count++
		switch {
		case wanted[a.PortGroup] && seen[a.PortGroup]:
			b.Refuse(ref, "VM-NIC-PVCOUNT-016", "remove one of them", "has two PVRDMA adapters on %s", a.PortGroup)
		case !wanted[a.PortGroup] && (b.carries(a.Switch) || a.Switch == ""):
			b.Refuse(ref, "VM-NIC-DVS-019", "name that port group in the answers, or remove the adapter",
				"has a PVRDMA adapter on %q already; a second one would not replace it", a.PortGroup)
		}
		seen[a.PortGroup] = true
	}
	total := len(v.Adapters)
	for pg := range wanted {
		if !seen[pg] {
			count++
			total++
		}
	}
	if low, _ := b.lowest(); count > 1 && low != "" && sizing.AdaptersForPVRDMA(low) == 1 {
		b.Refuse(ref, "VM-NIC-PVCOUNT-016", "give it one, or upgrade the hosts to 7.0 U2",
			"would have %d PVRDMA adapters; before ESXi 7.0 U2 a VM has one, from then on up to ten (KB 328676; vSphere Virtual Machine "+
				"Administration, Hardware Features)", count)
	}
	if total > 10 {
		b.Refuse(ref, "VM-NIC-MAX-015", "remove adapters, or give it adapters on fewer rails",
			"would have %d adapters; a VM has at most ten (vSphere "+
				"Virtual Machine Administration, Hardware Features)", total)
	}
}

// otherVFs examines existing RDMA adapters that were not requested.
func (b *builder) otherVFs(v *draft.VM, wanted map[string]bool) {
	seen := map[string]bool{}
	for _, a := range v.Adapters {
		switch {
		case a.Type == "pvrdma" && wanted[a.PortGroup]:
			b.Refuse(backends.VMRef(v.Name), "VM-NIC-DVS-019", "remove that adapter, or choose another port group",
				"has a PVRDMA adapter on %s already", a.PortGroup)
		case a.Type == "sriov" && seen[a.PortGroup] && wanted[a.PortGroup]:
			b.Refuse(backends.VMRef(v.Name), "VM-NIC-PVCOUNT-016", "remove one of them", "has two SR-IOV adapters on %s", a.PortGroup)
		}
		seen[a.PortGroup] = seen[a.PortGroup] || a.Type == "sriov"
	}
}
