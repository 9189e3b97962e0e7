package plan

import (
	"slices"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// A hostPart is a host that takes part, and its RDMA pNIC.
type hostPart struct {
	*backends.Host
	nic     *backends.NIC // nil when none could be chosen
	shell   string        // id of the bracket that has SSH open, "" when there is none
	reboots []string      // ids of its reboots, in their order
	ready   []string      // ids that its VMs wait for before they get a VF or a device
}

// A vmPart is a VM that takes part.
type vmPart struct {
	*backends.VM
	asked string // its name in the answers
	nets  []answers.Adapter
	guest *backends.Guest     // nil: nobody asked it
	gpus  []*backends.GPU     // that it shall have whole
	card  *backends.PCIDevice // the RDMA card that it shall have whole, nil where it gets a VF
}

// on tells whether the VM runs.
func (v *vmPart) on() bool { return v.Power == "poweredOn" }

// part gives a host that takes part, nil for any other.
func (d *draft) part(host string) *hostPart { return d.byHost[host] }

// takesPart tells whether a VM is one of the answers.
func (d *draft) takesPart(v *backends.VM) bool { return d.byVM[v.Name] != nil }

// power asks for the VM's power cycle and gives its id.
func (d *draft) power(v *backends.VM, why string) string {
	br := Bracket{Kind: backends.BracketVMPower, Target: backends.VMRef(v.Name), Why: why, Leave: backends.ValueOf("poweredOn")}
	if v.Power == "poweredOn" {
		br.Effect = VMPowerCycle
	}
	id := br.ID()
	if _, there := d.brackets[id]; !there {
		d.brackets[id] = &br
		d.order = append(d.order, id)
	}
	return id
}

// powered gives the id of the VM's power cycle, and whether one was asked for.
func (d *draft) powered(v *backends.VM) (string, bool) {
	id := Bracket{Kind: backends.BracketVMPower, Target: backends.VMRef(v.Name)}.ID()
	_, there := d.brackets[id]
	return id, there
}

// switchID is the id of what is done to the switch.
func (d *draft) switchID() string {
	return backends.Setting{Target: backends.SwitchRef(d.a.Switch.Name), Kind: backends.KindSwitch}.ID()
}

// memberSetting is a host's share in a switch.
func memberSetting(host, dvs string) backends.Setting {
	return backends.Setting{Target: backends.HostRef(host), Kind: backends.KindMember, Name: dvs}
}

// networkIDs gives what a VM waits for: the switch, the port groups and its host's share and control settings.
func (d *draft) networkIDs(host string) []string {
	ref := backends.HostRef(host)
	ids := []string{
		d.switchID(), memberSetting(host, d.a.Switch.Name).ID(),
		backends.Setting{Target: ref, Kind: backends.KindOption, Name: VMKnicOption}.ID(),
		backends.Setting{Target: ref, Kind: backends.KindFirewall, Name: FirewallRuleset}.ID(),
	}
	for _, pg := range d.a.PortGroups() {
		ids = append(ids, backends.Setting{Target: backends.PortGroupRef(pg), Kind: backends.KindPortGroup}.ID())
	}
	if h := d.part(host); h != nil {
		ids = append(ids, h.ready...)
	}
	return ids
}

// nonEmpty gives the ids that are any.
func nonEmpty(ids ...string) []string {
	return slices.DeleteFunc(ids, func(id string) bool { return id == "" })
}
