package answers

import (
	"cmp"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
)

// A Rail is one RDMA pNIC per host with its switch and port group.
type Rail struct {
	Name   string `yaml:"name" json:"name"` // "": the only rail, written as nic and switch
	NIC    NIC    `yaml:"nic" json:"nic"`
	Switch Switch `yaml:"switch" json:"switch"`
	SRIOV  struct {
		VFs int `yaml:"vfs" json:"vfs"` // 0: sriov.vfs
	} `yaml:"sriov" json:"sriov"`
	Network  netip.Prefix `yaml:"network" json:"network,omitzero"` // network of VMs that only have ip
	Optional bool         `yaml:"optional" json:"optional"`        // hosts without a port for it are accepted
}

// MaxRails is the maximum number of rails: a VM supports ten network adapters (vSphere configuration maximums), hosts up to
// sixteen pNICs of this kind.
const MaxRails = 16

// FromRails applies the rails in the answers and sets missing names of switches and port groups. From then on NIC and Switch are
// those of the first rail: editing them edits the first rail.
func (a *Answers) FromRails(rails []Rail) {
	a.Rails = rails
	for i := range rails {
		number := ""
		if len(rails) > 1 {
			number = fmt.Sprintf("-%d", i+1)
		}
		s := &rails[i].Switch
		s.Name = cmp.Or(s.Name, "RDMA-DVS"+number)
		s.PortGroup = cmp.Or(s.PortGroup, "RDMA-PG"+number)
	}
	if len(rails) > 0 {
		a.NIC, a.Switch = rails[0].NIC, rails[0].Switch
	}
}

// AllRails returns the rails in the answers, else the one defined by nic and switch.
func (a *Answers) AllRails() []Rail {
	out := slices.Clone(a.Rails)
	if len(out) == 0 {
		out = []Rail{{}}
	}
	out[0].NIC, out[0].Switch = a.NIC, a.Switch
	for i := range out {
		out[i].SRIOV.VFs = cmp.Or(out[i].SRIOV.VFs, a.SRIOV.VFs)
	}
	return out
}

// Several reports whether the answers have more than one rail, so that messages must name the rail.
func (a *Answers) Several() bool { return len(a.Rails) > 1 }

// ForRail returns the answers for one rail: its pNIC, switch and VFs, and of each VM the adapters on it; VMs without an adapter
// on it are left out. With one rail these are the answers themselves.
func (a *Answers) ForRail(i int) *Answers {
	if !a.Several() {
		return a
	}
	one, rail := *a, a.AllRails()[i]
	one.Rails, one.NIC, one.Switch, one.SRIOV.VFs = []Rail{rail}, rail.NIC, rail.Switch, rail.SRIOV.VFs
	one.VMs = nil
	for _, v := range a.VMs {
		nets := a.Networks(v)
		v.IP = Address{}
		v.Adapters = slices.DeleteFunc(slices.Clone(nets), func(n Adapter) bool { return n.Rail != rail.Name })
		if len(v.Adapters) > 0 || len(nets) == 0 {
			one.VMs = append(one.VMs, v)
		}
	}
	return &one
}

// Views returns ForRail of every rail.
func (a *Answers) Views() []*Answers {
	out := make([]*Answers, len(a.AllRails()))
	for i := range out {
		out[i] = a.ForRail(i)
	}
	return out
}

// RailOf returns the rail of an adapter (see Networks): the named one, else the only one.
func (a *Answers) RailOf(n Adapter) Rail {
	all := a.AllRails()
	return all[max(0, slices.IndexFunc(all, func(r Rail) bool { return r.Name == n.Rail }))]
}

// Card returns the PCI address that describes the pNIC, "" if it is described otherwise.
func (r Rail) Card() string {
	var p PCI
	if p.UnmarshalText([]byte(r.NIC.Device)) != nil {
		return ""
	}
	return string(p)
}

// RailLabel returns how messages name a rail: " (rail NAME)" if there are several, else "".
func (a *Answers) RailLabel(rail string) string {
	if !a.Several() {
		return ""
	}
	return " (rail " + rail + ")"
}

// onRails expands an ip for several rails: the address itself on the first, the same host number in the network of each other
// rail; with dhcp each rail has its own server. A rail without a network gets the one at its position: 192.168.51.0/24 after
// 192.168.50.0/24.
func (a *Answers) onRails(ip Address) []Adapter {
	out := make([]Adapter, len(a.Rails))
	for i, r := range a.Rails {
		out[i] = Adapter{Rail: r.Name, IP: ip, PortGroup: r.Switch.PortGroup}
		if i == 0 || ip.DHCP || !ip.Addr().Is4() {
			continue
		}
		host, bits := number(ip.Addr())-number(ip.Masked().Addr()), ip.Bits()
		base := number(ip.Masked().Addr()) + uint32(i)<<(32-bits)
		if r.Network.IsValid() && r.Network.Addr().Is4() {
			base, bits = number(r.Network.Masked().Addr()), r.Network.Bits()
		}
		out[i].IP.Prefix = netip.PrefixFrom(netip.AddrFrom4([4]byte{byte((base + host) >> 24), byte((base + host) >> 16),
			byte((base + host) >> 8), byte(base + host)}), bits)
	}
	return out
}

// withoutIP returns the adapters of a VM whose addresses are not set up: one on each rail.
func (a *Answers) withoutIP() []Adapter {
	var out []Adapter
	for _, r := range a.AllRails() {
		out = append(out, Adapter{Rail: r.Name, PortGroup: r.Switch.PortGroup})
	}
	return out
}

func number(ip netip.Addr) uint32 {
	b := ip.As4()
	return uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3])
}

var (
	railName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,30}$`)
	slotText = regexp.MustCompile(`^(?i)([0-9a-f]{4}:)?[0-9a-f]{2}:[0-9a-f]{2}$`)
)

// rails checks that rails do not share names, pNICs, switches and port groups.
func (c *checker) rails(a *Answers) {
	if len(a.Rails) > MaxRails {
		c.bad("rails", "", "%d rails; at most %d are supported", len(a.Rails), MaxRails)
	}
	owner := map[string]string{}
	once := func(path, what, name, hint string) {
		if name == "" {
			return
		}
		if first, twice := owner[what+name]; twice {
			c.bad(path, hint, "%q is also used by %s", clip(name), first)
			return
		}
		owner[what+name] = path[:strings.IndexByte(path, ']')+1]
	}
	for i, r := range a.Rails {
		at := fmt.Sprintf("rails[%d]", i)
		if r.Name != "" && !railName.MatchString(r.Name) {
			c.bad(at+".name", "", "%q is not a valid rail name", clip(r.Name))
		}
		once(at+".name", "rail ", r.Name, "give each rail a name of its own")
		c.nic(r.NIC, at+".nic")
		c.network(r.Switch, at+".switch")
		once(at+".switch.name", "switch ", r.Switch.Name, "give each rail a switch of its own: its pNIC is the only uplink")
		once(at+".switch.portgroup", "port group ", r.Switch.PortGroup, "give each rail a port group of its own")
		if a.Several() && a.WholeCard() && !pciText.MatchString(r.NIC.Device) {
			c.bad(at+".nic.device", "write its PCI address, as 0000:3b:00.0 (rdma-setup discover shows it)",
				"%q: with several rails a whole card can only be identified by its PCI address", clip(r.NIC.Device))
		}
		if r.NIC.Position == 0 {
			once(at+".nic.device", "device ", strings.ToLower(r.NIC.Device), "rails never share a pNIC")
		}
		for _, host := range sorted(r.NIC.MACs) {
			once(at+".nic.macs{"+host+"}", "MAC ", string(r.NIC.MACs[host]), "rails never share a pNIC")
		}
		if n := r.Network; n.IsValid() && (!n.Addr().Is4() || n != n.Masked() || n.Bits() < 8 || n.Bits() > 30) {
			c.bad(at+".network", "", "%s is not an IPv4 network", n)
		}
	}
}

func (c *checker) nic(n NIC, at string) {
	if n.Device != "" && !vmnic.MatchString(n.Device) && !pciText.MatchString(n.Device) {
		c.bad(at+".device", "", "%q is not a device", clip(n.Device))
	}
	if n.Slot != "" && !slotText.MatchString(n.Slot) {
		c.bad(at+".slot", "", "%q is not a PCI slot", clip(n.Slot))
	}
	owner := map[MAC]string{}
	for _, host := range sorted(n.MACs) {
		mac, path := n.MACs[host], at+".macs{"+host+"}"
		if !mac.valid() {
			c.bad(path, "", "%q is not a MAC address", clip(string(mac)))
			continue
		}
		if other, twice := owner[mac]; twice {
			c.bad(path, "each pNIC has its own MAC address", "%s is also used by %q", mac, clip(other))
		}
		owner[mac] = host
	}
}

func (c *checker) network(s Switch, at string) {
	c.objectName(s.Name, at+".name")
	c.objectName(s.PortGroup, at+".portgroup")
	if s.PortGroup == s.Name && s.Name != "" {
		c.bad(at+".portgroup", "give the port group a name of its own", "%q is also the name of the switch", clip(s.Name))
	}
	if s.Version != "" && !version.MatchString(s.Version) {
		c.bad(at+".version", "", "%q is not a version", clip(s.Version))
	}
}

// firstTable is the routing table of a VM's first adapter if several are in one subnet; the others follow. iproute2 names the
// tables 253 to 255, and other programs use small numbers (/etc/iproute2/rt_tables).
const firstTable = 5001

// Table returns the routing table for packets from an adapter of a VM, given all its adapters: 0 if no other one is in its
// subnet. Linux sends packets from the address of any interface through the first interface in the subnet, and answers ARP
// requests for all addresses on each (kernel, ip-sysctl.rst, arp_ignore; Red Hat Solution 30564).
func Table(all []Adapter, n Adapter) int {
	alone := func(o Adapter) bool { return o == n || !o.IP.IsValid() || o.IP.Masked() != n.IP.Masked() }
	if !n.IP.IsValid() || !slices.ContainsFunc(all, func(o Adapter) bool { return !alone(o) }) {
		return 0
	}
	return firstTable + slices.Index(all, n)
}
