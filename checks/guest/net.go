package guest

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/row"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/sizing"
)

// guestNetChecks examine the RDMA port in the guests and its network.
func guestNetChecks() []checks.Check {
	return []checks.Check{
		{
			ID: "GST-PORT-010", Scope: checks.Guest, Link: checks.InGuest, Fixes: []backends.Kind{backends.KindPort},
			Source:   row.BitfusionGuide + "; vmw_pvrdma driver",
			Criteria: "PORT_ACTIVE / - / down or no device", Remedy: "Bring the link up; for PVRDMA reload vmw_pvrdma last.",
			Run: eachVerbs("GST-PORT-010", func(_ *checks.Facts, t backends.Ref, d *backends.VerbsDevice) checks.Answer {
				return row.PassIf(d.State == "PORT_ACTIVE", t, "%s is %s", d.Name, cmp.Or(d.State, "none"))
			}),
		},
		{
			ID: "GST-LINK-011", Scope: checks.Guest, Link: checks.InGuest, Fix: checks.Reboot, Source: row.SRIOVStudy,
			Criteria: "Ethernet / - / InfiniBand", Remedy: "Set LINK_TYPE to ETH in the NIC's firmware.",
			Run: eachVerbs("GST-LINK-011", func(_ *checks.Facts, t backends.Ref, d *backends.VerbsDevice) checks.Answer {
				return row.PassIf(d.LinkLayer == "" || strings.EqualFold(d.LinkLayer, "Ethernet"), t, "%s has link layer %s", d.Name,
					cmp.Or(d.LinkLayer, "none"))
			}),
		},
		{
			ID: "GST-MTU-012", Scope: checks.Guest, Link: checks.InGuest, Fixes: []backends.Kind{backends.KindAddress}, Source: row.SRIOVStudy,
			Criteria: "as planned / IB MTU still 4096 / lower (PVRDMA: warn)", Remedy: "Set the MTU persistently.",
			Run: eachNetdev("GST-MTU-012", func(f *checks.Facts, t backends.Ref, i *backends.Interface, _ string) checks.Answer {
				want := f.Answers.Switch.MTU
				switch {
				case i.MTU == want:
					return row.Pass(t, "%s has MTU %d", i.Name, i.MTU)
				case sizing.IBMTU(i.MTU) >= 4096 || f.Answers.Mode == answers.PVRDMA:
					return row.Warn(t, "%s has MTU %d, wanted %d", i.Name, i.MTU, want)
				}
				return row.Fail(t, "%s has MTU %d, wanted %d", i.Name, i.MTU, want)
			}),
		},
		{
			ID: "GST-IBMTU-013", Scope: checks.Guest, Link: checks.InGuest, Fixes: []backends.Kind{backends.KindAddress},
			Source:   "Linux iboe_get_mtu; " + row.SRIOVStudy,
			Criteria: "4096, or what the planned MTU allows / PVRDMA: lower / SR-IOV, GPUDirect: lower",
			Remedy:   "Raise the Ethernet MTU on every hop.",
			Run: eachVerbs("GST-IBMTU-013", func(f *checks.Facts, t backends.Ref, d *backends.VerbsDevice) checks.Answer {
				want := cmp.Or(sizing.IBMTU(f.Answers.Switch.MTU), 4096)
				if d.ActiveMTU == 0 {
					return row.Waiting(t, "ibv_devinfo reports no active MTU of %s", d.Name)
				}
				if d.ActiveMTU >= want || f.Answers.Mode == answers.PVRDMA {
					return row.WarnIf(d.ActiveMTU < want, t, "%s has active MTU %d, wanted %d", d.Name, d.ActiveMTU, want)
				}
				return row.Fail(t, "%s has active MTU %d, wanted %d", d.Name, d.ActiveMTU, want)
			}),
		},
		{
			ID: "GST-IP-014", Scope: checks.Guest, Link: checks.InGuest, Fixes: []backends.Kind{backends.KindAddress}, Source: row.BitfusionGuide,
			Criteria: "the planned address, or DHCP where that is planned / DHCP / none", Remedy: "Configure the address.",
			Run: eachNetdev("GST-IP-014", func(_ *checks.Facts, t backends.Ref, i *backends.Interface, want string) checks.Answer {
				if want == backends.DHCP {
					return row.PassIf(i.DHCP, t, "%s has %s, DHCP %t", i.Name, cmp.Or(strings.Join(i.Addresses, ", "), "none"), i.DHCP)
				}
				if !slices.Contains(i.Addresses, want) {
					return row.Fail(t, "%s has %s, wanted %s", i.Name, cmp.Or(strings.Join(i.Addresses, ", "), "none"), want)
				}
				return row.WarnIf(i.DHCP, t, "%s has %s, DHCP %t", i.Name, want, i.DHCP)
			}),
		},
		{
			ID: "GST-SUBNET-015", Scope: checks.Guest, Link: checks.InGuest, Preflight: true, Fix: checks.Manual,
			Source:   row.SRIOVStudy + ", reference 15",
			Criteria: "no two adapters in one subnet / - / two", Remedy: "Use a separate subnet for RDMA.",
			Run: eachGuest(guestSubnets),
		},
		{
			ID: "GST-POLICY-036", Scope: checks.Guest, Link: checks.InGuest, Fixes: []backends.Kind{backends.KindARP, backends.KindAddress},
			Source: "Linux kernel, ip-sysctl.rst (arp_ignore, arp_announce, rp_filter); Red Hat Solution 30564",
			Criteria: "rails in one subnet: each with a rule, a route, arp_ignore, arp_announce and rp_filter of its own / not all of it kept " +
				"over a reboot / lacking",
			Remedy: "Apply again, or give each rail a subnet of its own.",
			Run:    eachPort(policy),
		},
		{
			ID: "GST-DUPIP-016", Scope: checks.Guest, Link: checks.InGuest, Fix: checks.Manual, Source: row.SRIOVStudy,
			Criteria: "no other machine is known to use the address / - / another one uses it", Remedy: "Change the address.",
			Run: eachPort(duplicate),
		},
		{
			ID: "GST-NAME-017", Scope: checks.Guest, Link: checks.InGuest, Fix: checks.Manual, Source: "Broadcom KB 407595",
			Criteria: "the interface has the name of the baseline / another / -", Remedy: "Configure the interface by MAC.",
			Run: eachPort(func(f *checks.Facts, t backends.Ref, g *backends.Guest, p checks.Port) checks.Answer {
				i := p.Netdev(g)
				if f.Baseline == nil || i == nil {
					return row.Waiting(t, "there is no baseline (check --save-baseline saves one)")
				}
				was := f.Baseline.Guest(g.VM)
				if was == nil || was.Interface(i.MAC) == nil {
					return row.Waiting(t, "the baseline does not contain %s", i.MAC)
				}
				old := was.Interface(i.MAC).Name
				return row.WarnIf(old != i.Name, t, "%s is %s, in the baseline %s", i.MAC, i.Name, old)
			}),
		},
		{
			ID: "GST-IPPERSIST-018", Scope: checks.Guest, Link: checks.InGuest, Fixes: []backends.Kind{backends.KindAddress},
			Source:   row.BitfusionGuide,
			Criteria: "one file decides for the interface, with this address alone / - / another file decides, or none",
			Remedy:   "Write a persistent configuration.",
			Run:      eachPort(persistent),
		},
		{
			ID: "GST-NETFILES-044", Scope: checks.Guest, Link: checks.InGuest, Fix: checks.Manual,
			Source: "netplan bug 1746842; netplan reference, General structure",
			Criteria: "the network files are valid and name every interface with an address / one has no file / invalid, one stands in the way of " +
				"a new adapter, or an earlier release has changed a stanza of another file",
			Remedy: "Write a configuration for the interface.",
			Run:    eachGuest(netFiles),
		},
		{
			ID: "GST-GID-019", Scope: checks.Guest, Link: checks.InGuest, Fixes: []backends.Kind{backends.KindAddress},
			Source:   row.SRIOVStudy + "; nccl issue 426",
			Criteria: "RoCE v2 with IPv4 / v2 link-local only / v1 only",
			Remedy:   "Assign an IPv4 address; tests use the index of its RoCE v2 entry.",
			Run:      eachVerbs("GST-GID-019", gid),
		},
	}
}

// persistent examines what decides for the interface of a port after a boot.
func persistent(_ *checks.Facts, t backends.Ref, g *backends.Guest, p checks.Port) checks.Answer {
	i := p.Netdev(g)
	switch {
	case i == nil || p.CIDR == "":
		return checks.Answer{}
	case i.Persistent:
		return row.Pass(t, "%s is configured by %s", i.Name, cmp.Or(i.Config, "none"))
	case g.Sudo == "none" || g.Sudo == "":
		return row.Unknown(t, "%s: the files that configure interfaces can only be read by root", i.Name)
	}
	a := row.Fail(t, "no file of rdma-setup configures %s", i.Name)
	a.Remedy = "Run rdma-setup apply, which writes a file that decides for " + i.Name + " alone."
	if rival, stands := g.NetRivals[i.Name]; stands {
		a.Evidence, a.Remedy = fmt.Sprintf("%s: %s", i.Name, rival), rival.Remedy
	} else if _, ours := backends.NetFileOf(i.Config); ours {
		a.Evidence = fmt.Sprintf("%s is configured by %s, which does not give it this address and MTU alone", i.Name, i.Config)
	} else if i.Config != "" { // it decides only because ours is missing: where both exist, it is a rival
		a.Evidence += "; " + i.Config + " decides for it"
	}
	return a
}

// netFiles examines whether the guest gets its network at the next boot.
func netFiles(f *checks.Facts, t backends.Ref, g *backends.Guest) checks.Answer {
	for _, p := range []*backends.FileProblem{g.NetInvalid, g.NetShared} {
		if p != nil {
			a := row.Fail(t, "%s", p)
			a.Remedy = cmp.Or(p.Remedy, a.Remedy)
			return a
		}
	}
	rdma := map[string]bool{}
	for _, p := range f.Ports(f.Inventory.VM(g.VM)) {
		if i := p.Netdev(g); i != nil {
			rdma[i.Name] = true
		}
	}
	if p := g.NetComing(); p != nil && len(rdma) < len(f.Networks(g.VM)) {
		a := row.Fail(t, "%s", p)
		a.Remedy = cmp.Or(p.Remedy, a.Remedy)
		return a
	}
	for _, i := range g.Interfaces {
		auto := i.DHCP && g.NetConfig == "networkmanager" // by NetworkManager's automatic profile (NetworkManager.conf(5), no-auto-default)
		if g.NetConfig != "" && i.Config == "" && len(i.Addresses) > 0 && !i.Virtual && !rdma[i.Name] && !auto && g.Sudo != "none" &&
			g.Sudo != "" {
			return row.Warn(t, "%s has %s, and no file of %s configures it", i.Name, strings.Join(i.Addresses, ", "), g.NetConfig)
		}
	}
	return row.Pass(t, "the files of %s are valid", cmp.Or(g.NetConfig, "the network program"))
}

// guestSubnets looks for a second interface in the network of RDMA.
func guestSubnets(f *checks.Facts, t backends.Ref, g *backends.Guest) checks.Answer {
	ports, own := f.Ports(f.Inventory.VM(g.VM)), map[string]bool{}
	if len(ports) == 0 && !f.Before {
		return checks.Answer{} // the VM has no RDMA adapter, which another row reports
	}
	var rails []checks.Port // of other rails too: GST-POLICY-036 covers rails in one subnet
	for _, rail := range f.Rails() {
		rails = append(rails, rail.Ports(f.Inventory.VM(g.VM))...)
	}
	for _, p := range append(rails, ports...) {
		own[p.MAC] = true
		if i := p.Netdev(g); i != nil {
			own[i.MAC] = true
		} else if i := (checks.Port{CIDR: p.CIDR}).Netdev(g); i != nil && !f.Before {
			own[i.MAC] = true // the guest changed the MAC
		}
	}
	var wanted []netip.Prefix
	for _, p := range ports {
		if p.CIDR == backends.DHCP {
			wanted = append(wanted, answers.Address{DHCP: true}.Of(p.Netdev(g)))
		}
	}
	for _, n := range f.Networks(g.VM) {
		wanted = append(wanted, n.IP.Prefix)
	}
	for _, want := range wanted {
		for _, i := range g.Interfaces {
			if own[strings.ToLower(i.MAC)] {
				continue
			}
			for _, a := range i.Addresses {
				if p, err := netip.ParsePrefix(a); err == nil && p.Overlaps(want.Masked()) {
					return row.Fail(t, "%s has %s, in the same network as %s", i.Name, a, want)
				}
			}
		}
	}
	return row.Pass(t, "no other interface is in the RDMA network")
}

// policy examines a port that shares its subnet with another rail of its guest.
func policy(_ *checks.Facts, t backends.Ref, g *backends.Guest, p checks.Port) checks.Answer {
	i, want := p.Netdev(g), backends.OneSubnet()
	switch {
	case !p.Shared:
		return row.Pass(t, "no other rail has the subnet of %s", cmp.Or(p.CIDR, p.MAC))
	case i == nil:
		return checks.Answer{} // GST-IP-014 reports it
	}
	arp := fmt.Sprintf("arp_ignore %d, arp_announce %d, rp_filter %d", i.ARP.Ignore, i.ARP.Announce, i.ARP.RPFilter)
	switch {
	case i.Table == 0:
		return row.Fail(t, "%s: its configuration has no rule for traffic from %s", i.Name, p.CIDR)
	case i.ARP.Ignore < want.Ignore || i.ARP.Announce < want.Announce || i.ARP.RPFilter == 1:
		return row.Fail(t, "%s: %s, wanted %d, %d and %d", i.Name, arp, want.Ignore, want.Announce, want.RPFilter)
	}
	stays := i.ARPKept != nil && *i.ARPKept == i.ARP
	return row.WarnIf(!stays, t, "%s: table %d, %s, persistent: %t", i.Name, i.Table, arp, stays)
}

// duplicate compares a port's address with all addresses in the inventory, and uses the result of arping if it ran.
func duplicate(f *checks.Facts, t backends.Ref, g *backends.Guest, p checks.Port) checks.Answer {
	want, _ := netip.ParsePrefix(p.CIDR) // invalid if the answers name none
	if p.CIDR == backends.DHCP {
		want = answers.Address{DHCP: true}.Of(p.Netdev(g))
	}
	if !want.IsValid() {
		return checks.Answer{}
	}
	ip := want.Addr().String()
	if i := p.Netdev(g); i != nil && i.Duplicate != "" {
		return row.Fail(t, "%s is also used by %s (arping)", ip, i.Duplicate)
	}
	for _, h := range f.Inventory.Hosts {
		for _, k := range h.VMKs {
			if k.IP == ip {
				return row.Fail(t, "%s is also used by %s of %s", ip, k.Device, h.Name)
			}
		}
	}
	for _, o := range f.Inventory.Guests {
		for _, i := range o.Interfaces {
			if o.VM != g.VM && slices.ContainsFunc(i.Addresses, func(a string) bool { return strings.HasPrefix(a, ip+"/") }) {
				return row.Fail(t, "%s is also used by %s in %s", ip, i.Name, o.VM)
			}
		}
	}
	for _, v := range f.Inventory.VMs {
		if v.Name != g.VM && slices.Contains(v.IPs, ip) {
			return row.Fail(t, "%s is also used by the VM %s", ip, v.Name)
		}
	}
	return row.Pass(t, "no other known vmknic, VM or guest uses %s", ip)
}

func gid(_ *checks.Facts, t backends.Ref, d *backends.VerbsDevice) checks.Answer {
	v2 := false
	for _, g := range d.GIDs {
		if strings.Contains(g.Type, "v2") {
			v2 = true
			if g.IPv4 != "" {
				return row.Pass(t, "%s: index %d is RoCE v2 for %s", d.Name, g.Index, g.IPv4)
			}
		}
	}
	if v2 {
		return row.Warn(t, "%s: no RoCE v2 entry has an IPv4 address", d.Name)
	}
	return row.Fail(t, "%s: none of the %d entries is RoCE v2", d.Name, len(d.GIDs))
}
