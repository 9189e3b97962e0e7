// Package fabric models how the lab's network handles traffic between two guests: whether it arrives, whether it uses RDMA or
// falls back to TCP, how fast it is, and what the counters show. The result depends only on the configuration of the world.
package fabric

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

// An End is an interface of a guest with the settings made in the guest.
type End struct {
	VM  string
	MAC string
	MTU int // of the interface, in bytes
	Up  bool
}

// A Port is a physical port of a host. Concurrent tests share its capacity.
type Port struct{ Host, PNIC string }

// A Link is one direction of a PCIe link of a host: the link of a card's slot, or the uplink of a PCIe switch.
type Link struct {
	Host, At string // PCI address of the device below the link
	In       bool   // towards the memory of the host
	Switch   bool   // whether it is the uplink of a PCIe switch
	Gbps     float64
}

// A Device is an RDMA device of a host on the path of the traffic.
type Device struct{ Host, Name string }

// A Path describes the network between two interfaces.
type Path struct {
	Reachable bool   // frames arrive
	Why       string // why frames do not arrive, or why RDMA does not use the adapters
	SameHost  bool
	VF        bool // between VFs or fully assigned ports: RDMA bypasses the hypervisor
	RDMA      bool // PVRDMA uses the adapters, or memory on the same host; if false, TCP between the hosts
	LinkMbps  int  // rate of the slower port; 0 on the same host
	MTU       int  // largest IP packet in bytes that the switches forward; the MTU of the guests is not considered
	Tagged    bool // with a VLAN tag
	Ports     []Port
	Devices   []Device // devices that count the traffic; empty on the same host and in the fallback
	Hops      int      // number of switches after the first
	Links     []Link   // PCIe links on the path; empty on the same host
	SlotGbps  float64  // rate that these links currently allow; 0: no limit
	Small     float64  // fraction of the message rate; 0: all of it
	Large     float64  // fraction of the bandwidth above 64 KiB; 0: all of it
}

// side is the part of a path on the host of one end.
type side struct {
	vm          *world.VM
	host        *world.Host
	adapter     *world.Adapter
	vlan        int
	mtu         int
	uplink      *world.PNIC
	teamed      bool
	passthrough bool // the physical port is assigned to the VM, without a virtual switch between them
}

func unreachable(format string, args ...any) Path { return Path{Why: fmt.Sprintf(format, args...)} }

// Between computes the path from a to b. The conditions for RDMA are those of VMware's "PVRDMA Support" and KB 328676: the HCA
// is the only uplink of the DVS, the ruleset pvrdma is open, and a vmknic is tagged on both hosts.
func Between(s *world.State, a, b End) Path {
	x, why := look(s, a)
	if why != "" {
		return unreachable("%s", why)
	}
	y, why := look(s, b)
	if why != "" {
		return unreachable("%s", why)
	}
	switch {
	case x.vlan != y.vlan:
		return unreachable("VLAN %d of %s is not VLAN %d of %s", x.vlan, a.VM, y.vlan, b.VM)
	case x.passthrough || y.passthrough: // connected by the physical network
	case x.adapter.DVS != "" && y.adapter.DVS != "" && x.uplink != nil && y.uplink != nil: // likewise, or by their virtual switch
	case x.adapter.DVS != y.adapter.DVS, x.adapter.DVS == "" && x.adapter.PortGroup != y.adapter.PortGroup:
		return unreachable("%s and %s are on different networks", a.VM, b.VM)
	}
	p := Path{Reachable: true, MTU: min(x.mtu, y.mtu), Tagged: x.vlan != 0}
	bypass := x.bypasses() && y.bypasses()
	pvrdma := x.is(world.PVRDMA) && y.is(world.PVRDMA)
	if x.host == y.host && !x.passthrough && !y.passthrough && x.adapter.DVS == y.adapter.DVS {
		p.SameHost, p.VF, p.RDMA = true, bypass, bypass || pvrdma && x.adapter.Protocol == y.adapter.Protocol
		return p
	}
	for _, e := range []side{x, y} {
		if e.uplink == nil {
			return unreachable("%s has no uplink with a link for %s", e.host.Name, e.network())
		}
		p.Ports = append(p.Ports, Port{Host: e.host.Name, PNIC: e.uplink.Device})
	}
	p.LinkMbps = min(x.uplink.SpeedMbps, y.uplink.SpeedMbps)
	p.MTU = min(p.MTU, x.mtu, y.mtu, x.uplink.Cable.Largest(), y.uplink.Cable.Largest())
	if x.uplink.Cable.Switch() != y.uplink.Cable.Switch() {
		p.Hops = leafToLeaf
	}
	p.hardware(x, y)
	if bypass {
		p.VF, p.RDMA = true, true
		return p
	}
	if !pvrdma {
		p.Why = "not both adapters are PVRDMA"
		return p
	}
	if p.Why = fallback(x, y); p.Why != "" {
		return p
	}
	p.RDMA = true
	for _, e := range []side{x, y} {
		p.Devices = append(p.Devices, Device{Host: e.host.Name, Name: e.uplink.RDMA.Name})
	}
	return p
}

// leafToLeaf is the number of additional switches on a path between two leaf switches: a spine and the other leaf.
const leafToLeaf = 2

// laneGbps returns the data rate of a PCIe lane by generation: 8, 16 and 32 GT/s with 128b/130b encoding, minus the headers of
// packets of 256 bytes.
func laneGbps(gen int) float64 { return float64(int(1)<<gen) * 128.0 / 130 * 256 / 280 }

// hardware sets the limits of a path that the cards and their slots cause.
func (p *Path) hardware(from, to side) {
	least := func(have, limit float64) float64 {
		if limit > 0 && (have == 0 || limit < have) {
			return limit
		}
		return have
	}
	for i, e := range []side{from, to} {
		c := e.uplink
		for _, link := range linksOf(e.host, c) {
			link.In = i == 1
			p.Links, p.SlotGbps = append(p.Links, link), least(p.SlotGbps, link.Gbps)
		}
		p.Small, p.Large = least(p.Small, c.SmallShare), least(p.Large, c.LargeShare)
	}
}

// BelowSwitches returns the path for data that stays below the PCIe switches of both ends, for example for GPU memory below the same
// switches.
func (p Path) BelowSwitches() Path {
	p.Links = slices.DeleteFunc(slices.Clone(p.Links), func(l Link) bool { return l.Switch })
	return p
}

// linksOf returns the PCIe links between a port and the memory of its host: the slot of its card, and the uplink of the PCIe
// switch above the card, which has the same width as the slot. All ports of a card, and all cards below a switch, share them.
func linksOf(h *world.Host, c *world.PNIC) []Link {
	gen, lanes, at := 3, 16, c.PCI
	if card := h.Card(c.PCI); card != nil {
		gen, lanes, at = card.Gen, card.Lanes, card.PCI
	}
	if c.Lanes > 0 {
		gen, lanes = 3, c.Lanes
	}
	slot := Link{Host: h.Name, At: at, Gbps: laneGbps(gen) * float64(lanes)}
	out := []Link{slot}
	if above := h.Above(c.PCI); len(above) > 2 {
		slot.At, slot.Switch = above[1], true
		out = append(out, slot)
	}
	return out
}

func look(s *world.State, e End) (side, string) {
	var o side
	if o.vm = s.VM(e.VM); o.vm == nil {
		return o, e.VM + " does not exist"
	}
	o.host = s.Host(o.vm.Host)
	o.adapter = o.vm.Adapter(e.MAC)
	switch {
	case !o.vm.On:
		return o, e.VM + " is off"
	case o.host == nil || o.host.State != world.Up:
		return o, o.vm.Host + " does not answer"
	case s.WholeOf(o.vm, e.MAC) != nil:
		return o, o.port(s.WholeOf(o.vm, e.MAC), e)
	case o.adapter == nil:
		return o, e.VM + " has no adapter " + e.MAC
	case !o.adapter.Connected:
		return o, "the adapter of " + e.VM + " is not connected"
	case !e.Up:
		return o, "the interface in " + e.VM + " is down"
	}
	why := ""
	if o.adapter.DVS == "" {
		why = o.standard()
	} else {
		why = o.distributed(s.Switch(o.adapter.DVS))
	}
	if o.adapter.Type == world.SRIOV && why == "" {
		why = o.virtualFunction(s)
	}
	return o, why
}

// switchMTU is the MTU of the physical switch.
const switchMTU = 9216

// port sets the side of a VM to which a physical port is assigned, or returns why it cannot.
func (o *side) port(p *world.PNIC, e End) string {
	if !e.Up {
		return "the interface in " + e.VM + " is down"
	}
	o.passthrough, o.mtu = true, switchMTU
	if p.LinkUp {
		o.uplink = p
	}
	return ""
}

func (o *side) is(kind world.AdapterType) bool { return o.adapter != nil && o.adapter.Type == kind }

// bypasses reports whether the guest uses the card without the hypervisor.
func (o *side) bypasses() bool { return o.passthrough || o.is(world.SRIOV) }

func (o *side) network() string {
	if o.passthrough {
		return "the port of " + o.vm.Name
	}
	return o.adapter.PortGroup
}

// virtualFunction replaces the uplink by the port of the VF. The VF sends its frames there, regardless of the teaming policy.
func (o *side) virtualFunction(s *world.State) string {
	p, _ := o.host.PortOf(o.adapter)
	if p == nil {
		return "the adapter of " + o.vm.Name + " has no VF"
	}
	o.uplink, o.mtu, o.teamed = nil, s.MTU(o.host, p), false
	if p.LinkUp {
		o.uplink = p
	}
	return ""
}

func (o *side) standard() string {
	for _, v := range o.host.VSwitch {
		if !slices.Contains(v.PortGroups, o.adapter.PortGroup) {
			continue
		}
		o.mtu, o.vlan = v.MTU, o.adapter.VLAN
		o.uplink = o.first(v.Uplinks)
		return ""
	}
	return fmt.Sprintf("%s has no port group %s", o.host.Name, o.adapter.PortGroup)
}

func (o *side) distributed(d *world.DVS) string {
	if d == nil {
		return "the switch " + o.adapter.DVS + " does not exist"
	}
	pg := d.PortGroup(o.adapter.PortGroup)
	if pg == nil {
		return fmt.Sprintf("%s has no port group %s", d.Name, o.adapter.PortGroup)
	}
	m := d.Member(o.host.Name)
	if m == nil {
		return o.host.Name + " is no member of " + d.Name
	}
	o.mtu, o.vlan = d.MTU, pg.VLAN
	order := append(slices.Clone(pg.Active), pg.Standby...)
	if len(order) == 0 {
		order = d.Uplinks
	}
	var pnics []string
	for _, name := range order {
		if i := slices.Index(d.Uplinks, name); i >= 0 && i < len(m.PNICs) && m.PNICs[i] != "" {
			pnics = append(pnics, m.PNICs[i])
		}
	}
	o.uplink = o.first(pnics)
	o.teamed = len(slices.DeleteFunc(slices.Clone(m.PNICs), func(p string) bool { return p == "" })) > 1
	return ""
}

func (o *side) first(pnics []string) *world.PNIC {
	for _, name := range pnics {
		if p := o.host.PNIC(name); p != nil && p.LinkUp {
			return p
		}
	}
	return nil
}

// fallback returns why PVRDMA between two hosts falls back to TCP, or "" if it does not.
func fallback(x, y side) string {
	if x.adapter.Protocol != y.adapter.Protocol {
		return fmt.Sprintf("%s speaks %s, %s speaks %s", x.vm.Name, x.adapter.Protocol, y.vm.Name, y.adapter.Protocol)
	}
	var vmks []*world.VMK
	for _, e := range []side{x, y} {
		rdma := e.uplink.RDMA
		v1, v2 := rdma != nil && rdma.RoCEv1, rdma != nil && rdma.RoCEv2
		switch {
		case rdma == nil:
			return fmt.Sprintf("%s of %s has no RDMA device", e.uplink.Device, e.host.Name)
		case e.adapter.Protocol == "rocev1" && !v1, e.adapter.Protocol != "rocev1" && !v2:
			return fmt.Sprintf("%s of %s does not speak %s", rdma.Name, e.host.Name, e.adapter.Protocol)
		case e.teamed:
			return fmt.Sprintf("%s has more than one uplink on %s", e.host.Name, e.adapter.DVS)
		}
		vmk := e.host.VMK(e.host.Option("Net.PVRDMAVmknic"))
		if vmk == nil || vmk.IP == "" {
			return fmt.Sprintf("Net.PVRDMAVmknic of %s names no vmknic with an address", e.host.Name)
		}
		vmks = append(vmks, vmk)
	}
	for i, e := range []side{x, y} {
		peer := vmks[1-i]
		if r := e.host.Ruleset("pvrdma"); r == nil || !r.Enabled {
			return "the firewall ruleset pvrdma is closed on " + e.host.Name
		} else if !r.AllIP && !allows(r.Networks, peer.IP) {
			return fmt.Sprintf("the firewall ruleset pvrdma of %s does not let %s in", e.host.Name, peer.IP)
		}
	}
	if !meet(vmks[0], vmks[1]) {
		return fmt.Sprintf("%s of %s does not reach %s of %s", vmks[0].Device, x.host.Name, vmks[1].Device, y.host.Name)
	}
	return ""
}

func allows(networks []string, ip string) bool {
	addr, err := netip.ParseAddr(ip)
	return err == nil && slices.ContainsFunc(networks, func(n string) bool {
		if p, err := netip.ParsePrefix(n); err == nil {
			return p.Contains(addr)
		}
		a, err := netip.ParseAddr(n)
		return err == nil && a == addr
	})
}

// meet reports whether two vmknics can reach each other: both are in the same subnet, or both are on the routed management
// network.
func meet(a, b *world.VMK) bool {
	pa, err := netip.ParseAddr(a.IP)
	if err != nil {
		return false
	}
	pb, err := netip.ParseAddr(b.IP)
	if err != nil {
		return false
	}
	managed := func(v *world.VMK) bool { return slices.Contains(v.Roles, "management") }
	return netip.PrefixFrom(pa, a.Prefix).Masked().Contains(pb) || managed(a) && managed(b)
}
