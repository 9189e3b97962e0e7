package draft

import (
	"slices"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
)

// A Host is a host that takes part, and its RDMA pNIC.
type Host struct {
	*backends.Host
	Chosen  *backends.NIC // nil when none could be chosen
	Shell   string        // id of the bracket that has SSH open, "" when there is none
	Reboots []string      // ids of its reboots, in their order
	Out     []string      // ids of what takes it out of service: its reboots, or the maintenance mode around several
	Ready   []string      // ids that its VMs wait for before they get a VF or a device
}

// A VM is a VM that takes part.
type VM struct {
	Wish answers.VM // as the answers have it
	*backends.VM
	Nets  []answers.Adapter
	Guest *backends.Guest     // nil: nobody asked it
	GPUs  []*backends.GPU     // that it shall have whole
	Card  *backends.PCIDevice // the RDMA card that it shall have whole, nil where it gets a VF
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

// Powered returns the id of the VM's power cycle, and whether one was asked for.
func (d *Draft) Powered(v *backends.VM) (string, bool) {
	id := plan.Bracket{Kind: backends.BracketVMPower, Target: backends.VMRef(v.Name)}.ID()
	_, there := d.Brackets[id]
	return id, there
}

// SwitchID is the id of what is done to the switch.
func (d *Draft) SwitchID() string {
	return backends.Setting{Target: backends.SwitchRef(d.Answers.Switch.Name), Kind: backends.KindSwitch}.ID()
}

// MemberSetting is a host's share in a switch.
func MemberSetting(host, dvs string) backends.Setting {
	return backends.Setting{Target: backends.HostRef(host), Kind: backends.KindMember, Name: dvs}
}

// NetworkIDs returns what a VM waits for: the switch, the port groups and its host's share and control settings.
func (d *Draft) NetworkIDs(host string) []string {
	ref := backends.HostRef(host)
	ids := []string{
		d.SwitchID(), MemberSetting(host, d.Answers.Switch.Name).ID(),
		backends.Setting{Target: ref, Kind: backends.KindOption, Name: plan.VMKnicOption}.ID(),
		backends.Setting{Target: ref, Kind: backends.KindFirewall, Name: plan.FirewallRuleset}.ID(),
	}
	for _, pg := range d.Answers.PortGroups() {
		ids = append(ids, backends.Setting{Target: backends.PortGroupRef(pg), Kind: backends.KindPortGroup}.ID())
	}
	if h := d.Part(host); h != nil {
		ids = append(ids, h.Ready...)
	}
	return ids
}

// IDs returns the ids that are any.
func IDs(ids ...string) []string {
	return slices.DeleteFunc(ids, func(id string) bool { return id == "" })
}
