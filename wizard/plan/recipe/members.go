package recipe

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/nic"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
	"github.com/rdma-setup/rdma-setup/wizard/plan/current"
	"github.com/rdma-setup/rdma-setup/wizard/plan/draft"
	"github.com/rdma-setup/rdma-setup/wizard/sizing"
)

// portGroup plans one distributed port group with one active uplink.
func (r *rail) portGroup(sw *backends.Switch, name string) {
	ref := backends.PortGroupRef(name)
	c := plan.Change{
		Setting: backends.Setting{Target: ref, Kind: backends.KindPortGroup},
		After:   []string{draft.SwitchID(r.want.Switch.Name)},
		Why:     "the RDMA adapters connect to it; one active uplink, because RDMA does not support NIC teaming",
	}
	want := backends.PortGroupSpec{Switch: r.want.Switch.Name, VLAN: r.want.Switch.VLAN, Binding: "earlyBinding",
		Active: []string{backends.UplinkName(1)}}
	if sw != nil && len(sw.Uplinks) > 0 {
		want.Active = sw.Uplinks[:1]
	}
	pg := r.Inventory.PortGroup(name)
	if pg == nil {
		if who := r.standard(name); who != "" {
			r.Refuse(ref, "DVS-PG-007", "choose another name for the port group", "a network of this name exists already: %s is on it", who)
		}
		c.To = backends.ValueOf(want)
		r.Add(c)
		return
	}
	remedy := "choose another name for the port group"
	switch {
	case pg.Switch != r.want.Switch.Name:
		r.Refuse(ref, "DVS-PG-007", remedy, "exists on the switch %s", pg.Switch)
	case pg.Uplink:
		r.Refuse(ref, "DVS-PG-007", remedy, "is the uplink port group of %s", pg.Switch)
	case strings.ContainsAny(pg.VLAN, "-, abcdefghijklmnopqrstuvwxyz"):
		r.Refuse(ref, "DVS-PG-VLAN-008", remedy, "carries several VLANs (%s); RDMA needs one, tagged by the switch", pg.VLAN)
	case pg.Binding != "" && pg.Binding != want.Binding:
		r.Refuse(ref, "DVS-PG-007", remedy, "uses %s port binding, which cannot be changed while adapters are connected", pg.Binding)
	default:
		if len(pg.Active) == 1 && slices.Contains(sw.Uplinks, pg.Active[0]) {
			want.Active = pg.Active // any of them can be used
		}
		c.From, c.To = current.PortGroup(pg), backends.ValueOf(want)
		if c.From != c.To {
			c.Why = portGroupWhy(pg, want)
			if !slices.Equal(pg.Active, want.Active) {
				c.Within = r.pvrdmaOff(sw, "", "the active uplink of "+pg.Name+" changes")
			}
		}
		r.Add(c)
	}
}

// standard returns a vmknic or VM that uses a standard switch's port group of this name: network names are unique in a datacenter.
func (b *builder) standard(name string) string {
	for _, h := range b.Inventory.Hosts {
		for _, k := range h.VMKs {
			if k.PortGroup == name {
				return k.Device + " of " + h.Name
			}
		}
	}
	for _, v := range b.Inventory.VMs {
		if slices.ContainsFunc(v.Adapters, func(a backends.Adapter) bool { return a.PortGroup == name && a.Switch == "" }) {
			return "the VM " + v.Name
		}
	}
	return ""
}

func portGroupWhy(pg *backends.PortGroup, want backends.PortGroupSpec) string {
	var why []string
	if pg.VLAN != fmt.Sprint(want.VLAN) {
		why = append(why, fmt.Sprintf("VLAN %d was asked for, it has %s", want.VLAN, pg.VLAN))
	}
	if len(pg.Active) != 1 || !slices.Equal(pg.Active, want.Active) {
		why = append(why, "one active uplink, because RDMA does not support NIC teaming")
	}
	return strings.Join(why, "; ")
}

// member plans a host's membership in the DVS: only the chosen pNIC.
func (r *rail) member(sw *backends.Switch, h *draft.Host) {
	if wish := sizing.PNICWish(r.view, h.Name); backends.NoHCA(h.Host, wish) {
		r.plainMember(sw, h, backends.PlainUplinks(h.Host, wish))
		return
	}
	n := r.port(h)
	if n == nil {
		return
	}
	h.SetPort(r.index, len(r.Rails), n)
	c := plan.Change{
		Setting: draft.MemberSetting(h.Name, r.want.Switch.Name),
		From:    backends.Absent,
		To:      backends.ValueOf(backends.MemberSpec{PNICs: []string{n.Device}}),
		After:   []string{draft.SwitchID(r.want.Switch.Name)},
		Why: fmt.Sprintf("%s (%s, %s, %s) carries this host's RDMA%s", n.Device, cmp.Or(n.RDMADevice, n.PCI), backends.Speed(n.SpeedMbps),
			n.Driver, r.label()),
	}
	if n.Hidden != "" {
		id := backends.Setting{Target: backends.HostRef(h.Name), Kind: backends.KindActiveVFs, Name: n.PCI}.ID()
		c.After = append(c.After, id)
		h.Ready = append(h.Ready, c.ID()) // like the reboot that it waits for, it needs the VMs to be off
		c.Why = fmt.Sprintf("%s %s and becomes a pNIC by the reboot; it carries this host's RDMA then%s", n.PCI, n.Hidden, r.label())
	}
	r.joins(sw, h, n, c)
}

// joins plans a host's membership in the DVS: it joins, or gets another uplink n, nil for none.
func (r *rail) joins(sw *backends.Switch, h *draft.Host, n *backends.NIC, c plan.Change) {
	if sw != nil {
		if m, is := sw.Members[h.Name]; is {
			c.From = backends.ValueOf(backends.MemberSpec{PNICs: append([]string{}, m.PNICs...)})
			if n != nil {
				r.memberState(sw, h, n, m)
			}
			if c.From != c.To {
				c.Disrupts = []plan.Disruption{plan.UplinkFlap}
				c.Within = r.pvrdmaOff(sw, h.Name, "the RDMA uplink of "+h.Name+" changes")
			}
		} else if newer(sw.Version, h.Version) {
			r.Refuse(backends.HostRef(h.Name), "DVS-VERSION-002", "upgrade the host, or choose another switch.name",
				"ESXi %s cannot join %s of version %s", h.Version, sw.Name, sw.Version)
		}
	}
	r.Add(c)
}

func (b *builder) memberState(sw *backends.Switch, h *draft.Host, n *backends.NIC, m backends.Member) {
	switch says, excluded := nic.ENS(n.Driver, b.Virtual()); {
	case m.ENS && excluded:
		b.Object(backends.HostRef(h.Name), "HOST-ENS-017", "switch Enhanced Networking Stack off for this host on "+sw.Name,
			"runs %s in %s; %s", sw.Name, m.DataPath(), says)
	case m.ENS:
		b.NoteEach(h.Name, "[runs|run] %s in %s; %s: measure before you rely on it", sw.Name, m.DataPath(), says)
	}
	if m.Status != "" && m.Status != "up" {
		b.NoteEach(h.Name, "%s on %s; rectify the [host|hosts] in vCenter", m.Status, sw.Name)
	}
}

// pvrdmaOff returns the brackets of all running VMs with a PVRDMA adapter on the switch, on one host or ("") on all: RDMA uplinks
// can be changed only while these are off (KB 328676). It refuses if one of them does not take part.
func (b *builder) pvrdmaOff(sw *backends.Switch, host, why string) []string {
	var ids []string
	for _, v := range current.PVRDMAVMs(b.Inventory, sw.Name, host) {
		if !b.TakesPart(v) {
			b.Refuse(backends.VMRef(v.Name), "VM-POWER-001", "shut it down, or add it to vms",
				"is on with a PVRDMA adapter on %s, and %s; RDMA uplinks can only be changed while such VMs are off (KB 328676)", sw.Name, why)
			continue
		}
		ids = append(ids, b.Power(v, why+"; RDMA uplinks can only be changed while PVRDMA VMs are off (KB 328676)"))
	}
	return ids
}

// usingRDMA is VMware's text on how PVRDMA adapters talk to each other.
const usingRDMA = "vSphere Networking 7.0, Using RDMA in vSphere"

// plainMember plans the membership of a host without an RDMA card: with an ordinary pNIC, or with none.
func (r *rail) plainMember(sw *backends.Switch, h *draft.Host, uplinks []*backends.NIC) {
	ref := backends.HostRef(h.Name)
	if len(uplinks) > 1 {
		r.Refuse(ref, "HOST-PNIC-RDMA-001", "name one by nic.macs", "has no RDMA card, and several ordinary pNICs could be its uplink: %s",
			strings.Join(devices(uplinks), ", "))
		return
	}
	if mac := sizing.PNICWish(r.view, h.Name).MAC; mac != "" && len(uplinks) == 0 {
		r.Refuse(ref, "HOST-PNIC-STATE-003", "correct nic.macs, check cable and switch port, or leave the host out of nic.macs",
			"has no RDMA card, and no free pNIC with link has the MAC address %s of nic.macs", mac)
		return
	}
	c := plan.Change{
		Setting: draft.MemberSetting(h.Name, r.want.Switch.Name),
		From:    backends.Absent,
		To:      backends.ValueOf(backends.MemberSpec{PNICs: []string{}}),
		After:   []string{draft.SwitchID(r.want.Switch.Name)},
		Why:     "this host has no RDMA card and no free pNIC with link; its VMs connect to each other only",
	}
	if len(uplinks) == 0 {
		if r.Answers.PVRDMA.VMKNic.Creates(h.Name) {
			r.Refuse(ref, "HOST-VMKNIC-EXIST-002", fmt.Sprintf("name one that it has: pvrdma.vmknic.names: {%s: vmk0}", h.Name),
				"has no RDMA card and no free pNIC with link: a vmknic that is created there reaches no other host")
		}
		r.NoteEach(h.Name,
			"[has|have] no RDMA card and no free pNIC with link: [its|their] PVRDMA adapters reach only VMs on the same host, by copying "+
				"memory (%s)", usingRDMA)
		r.joins(sw, h, nil, c)
		return
	}
	n := uplinks[0]
	c.To = backends.ValueOf(backends.MemberSpec{PNICs: []string{n.Device}})
	c.Why = fmt.Sprintf("this host has no RDMA card; %s (%s, %s) connects its VMs to the others by TCP", n.Device, backends.Speed(n.SpeedMbps),
		n.Driver)
	r.NoteEach(h.Name,
		"[has|have] no RDMA card: [its|their] PVRDMA adapters reach VMs on the same host by copying memory, and VMs on other hosts by TCP, "+
			"which is slower than RDMA (%s); both are measured and not judged", usingRDMA)
	r.joins(sw, h, n, c)
}
