package draft

import (
	"slices"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/nic"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
)

// A Host is a host that takes part, and its RDMA pNIC.
type Host struct {
	*backends.Host
	Chosen  *backends.NIC       // of the first rail that it has; nil when none could be chosen
	Ports   []*backends.NIC     // by rail; nil if none could be chosen, and where the host leaves the rail out
	Shell   string              // id of the bracket that has SSH open, "" when there is none
	Reboots []string            // ids of its reboots, in their order
	Out     []string            // ids of what takes it out of service: its reboots, or the maintenance mode around several
	Ready   []string            // ids that its VMs wait for before they get a VF or a device
	Paired  map[string]int      // how many GPUs of VMs are used with each card, by PCI address
	Updates map[string]nic.Burn // cards that may get newer firmware, by the PCI address of their first function
}

// Takes notes the pNIC of one of several rails.
func (h *Host) Takes(rail, rails int, n *backends.NIC) {
	if h.Ports == nil {
		h.Ports = make([]*backends.NIC, rails)
	}
	h.Ports[rail] = n
	if h.Chosen == nil {
		h.Chosen = n
	}
}

// A VM is a VM that takes part.
type VM struct {
	Wish answers.VM // as the answers have it
	*backends.VM
	To    int // hardware version that it should have
	Nets  []answers.Adapter
	Guest *backends.Guest      // nil: not requested it
	GPUs  []*backends.GPU      // that it should have whole
	VGPU  string               // profile of the vGPUs that it should have, "" none
	VGPUs int                  // how many
	Cards []backends.PCIDevice // the RDMA cards that it should have whole, in the order of its rails; none where it gets VFs
}

// On reports whether the VM runs.
func (v *VM) On() bool { return v.Power == "poweredOn" }

// Part returns a host that takes part, nil for any other.
func (d *Draft) Part(host string) *Host { return d.ByHost[host] }

// TakesPart reports whether a VM is one of the answers.
func (d *Draft) TakesPart(v *backends.VM) bool { return d.ByVM[v.Name] != nil }

// Power asks for the VM's power cycle and gives its id.
func (d *Draft) Power(v *backends.VM, why string) string {
	br := plan.Bracket{Kind: backends.BracketVMPower, Target: backends.VMRef(v.Name), Why: why, From: backends.ValueOf(v.Power), Leave: backends.ValueOf("poweredOn")}
	if v.Power == "poweredOn" {
		br.Effect = plan.VMPowerCycle
	}
	id := br.ID()
	if _, there := d.Brackets[id]; !there {
		d.Brackets[id] = &br
		d.Order = append(d.Order, id)
	}
	return id
}

// Powered returns the id of the VM's power cycle, and whether one was requested.
func (d *Draft) Powered(v *backends.VM) (string, bool) {
	id := plan.Bracket{Kind: backends.BracketVMPower, Target: backends.VMRef(v.Name)}.ID()
	_, there := d.Brackets[id]
	return id, there
}

// SwitchID is the id of what is done to a switch.
func SwitchID(dvs string) string {
	return backends.Setting{Target: backends.SwitchRef(dvs), Kind: backends.KindSwitch}.ID()
}

// MemberSetting is a host's share in a switch.
func MemberSetting(host, dvs string) backends.Setting {
	return backends.Setting{Target: backends.HostRef(host), Kind: backends.KindMember, Name: dvs}
}

// NetworkIDs returns what a VM waits for: the switches, the port groups and its host's share and control settings.
func (d *Draft) NetworkIDs(host string) []string {
	ref := backends.HostRef(host)
	var ids []string
	for _, r := range d.Rails {
		ids = append(ids, SwitchID(r.Switch.Name), MemberSetting(host, r.Switch.Name).ID())
	}
	ids = append(ids,
		backends.Setting{Target: ref, Kind: backends.KindOption, Name: backends.VMKNICOption}.ID(),
		backends.Setting{Target: ref, Kind: backends.KindFirewall, Name: plan.FirewallRuleset}.ID())
	for _, pg := range d.groups {
		ids = append(ids, backends.Setting{Target: backends.PortGroupRef(pg), Kind: backends.KindPortGroup}.ID())
	}
	if h := d.Part(host); h != nil {
		ids = append(ids, h.Ready...)
	}
	return ids
}

// RailOf returns the place of the rail of an adapter.
func (d *Draft) RailOf(n answers.Adapter) int {
	return max(0, slices.IndexFunc(d.Rails, func(r answers.Rail) bool { return r.Name == n.Rail }))
}

// Port is the pNIC of a host by which an adapter's traffic leaves, nil if none could be chosen.
func (d *Draft) Port(h *Host, n answers.Adapter) *backends.NIC {
	if i := d.RailOf(n); i < len(h.Ports) {
		return h.Ports[i]
	}
	return nil
}

// IDs returns the ids that are any.
func IDs(ids ...string) []string {
	return slices.DeleteFunc(ids, func(id string) bool { return id == "" })
}
