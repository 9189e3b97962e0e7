package draft

import (
	"slices"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/nic"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
)

// A Host is a host that takes part, with its RDMA pNIC.
type Host struct {
	*backends.Host
	Chosen  *backends.NIC       // of its first rail; nil if none could be chosen
	Ports   []*backends.NIC     // by rail; nil if none could be chosen, or if the host does not have the rail
	Shell   string              // id of the bracket that opens SSH, "" if there is none
	Looks   string              // id of the bracket that opens SSH after the last reboot, "" if there is none
	Manager string              // id of the change that installs the NVIDIA vGPU Manager, "" if there is none
	Reboots []string            // ids of its reboots, in order
	Out     []string            // ids of the brackets that take it out of service: its reboots, or the maintenance mode around several
	Ready   []string            // ids that its VMs wait for before they get a VF or a device
	Paired  map[string]int      // how many GPUs of VMs are used with each card, by PCI address
	Updates map[string]nic.Burn // cards that may get newer firmware, by the PCI address of their first function
}

// SetPort sets the pNIC of one of several rails.
func (h *Host) SetPort(rail, rails int, n *backends.NIC) {
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
	Wish answers.VM // as in the answers
	*backends.VM
	To    int // requested hardware version
	Nets  []answers.Adapter
	Guest *backends.Guest      // nil: not read
	GPUs  []*backends.GPU      // passed-through GPUs that it should have
	VGPU  string               // profile of the vGPUs that it should have, "" none
	VGPUs int                  // how many
	Group string               // vendor device group that they are in, "" for none
	Cards []backends.PCIDevice // passed-through RDMA cards that it should have, in the order of its rails; none if it gets VFs
}

// On reports whether the VM runs.
func (v *VM) On() bool { return v.Power == "poweredOn" }

// Part returns a host that takes part, or nil.
func (d *Draft) Part(host string) *Host { return d.ByHost[host] }

// TakesPart reports whether a VM is one of the answers.
func (d *Draft) TakesPart(v *backends.VM) bool { return d.ByVM[v.Name] != nil }

// Power requests the VM's power cycle and returns its id.
func (d *Draft) Power(v *backends.VM, why string) string {
	br := plan.Bracket{Kind: backends.BracketVMPower, Target: backends.VMRef(v.Name), Why: why, From: backends.ValueOf(v.Power),
		Leave: backends.ValueOf("poweredOn")}
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
	id := plan.PowerID(v.Name)
	_, there := d.Brackets[id]
	return id, there
}

// SwitchID returns the id of the change of a switch.
func SwitchID(dvs string) string {
	return backends.Setting{Target: backends.SwitchRef(dvs), Kind: backends.KindSwitch}.ID()
}

// MemberSetting returns the setting of a host's membership in a switch.
func MemberSetting(host, dvs string) backends.Setting {
	return backends.Setting{Target: backends.HostRef(host), Kind: backends.KindMember, Name: dvs}
}

// NetworkIDs returns what a VM waits for: the switches, the port groups and its host's membership and control settings.
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

// RailOf returns the index of an adapter's rail.
func (d *Draft) RailOf(n answers.Adapter) int {
	return max(0, slices.IndexFunc(d.Rails, func(r answers.Rail) bool { return r.Name == n.Rail }))
}

// Port returns the pNIC of a host for an adapter's traffic, nil if none could be chosen.
func (d *Draft) Port(h *Host, n answers.Adapter) *backends.NIC {
	if i := d.RailOf(n); i < len(h.Ports) {
		return h.Ports[i]
	}
	return nil
}

// IDs returns the non-empty ids.
func IDs(ids ...string) []string {
	return slices.DeleteFunc(ids, func(id string) bool { return id == "" })
}
