package checks

import (
	"cmp"
	"net/netip"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
)

// controlPlaneChecks look at what PVRDMA needs between hosts: the tagged vmknic and the firewall.
func controlPlaneChecks() []Check {
	return []Check{
		{
			ID: "HOST-VMKNIC-SET-001", Scope: Host, Link: InHost, Modes: pvrdmaOnly, Quick: true, Fix: Automatic, Source: "seed 000, section 4",
			Criteria: "a vmknic is named, no quotes, no blanks / - / empty or quoted",
			Remedy:   "Set Net.PVRDMAVmknic to the vmknic.",
			Run: eachHost(func(_ *Facts, h *backends.Host) Answer {
				t := backends.HostRef(h.Name)
				v, known := h.Options[vmknicOption]
				if !known {
					return unknown(t, "%s was not read", vmknicOption)
				}
				return passIf(v != "" && !strings.ContainsAny(v, "\"' \t"), t, "%s is %q", vmknicOption, v)
			}),
		},
		{
			ID: "HOST-VMKNIC-EXIST-002", Scope: Host, Link: InHost, Modes: pvrdmaOnly, Quick: true, Preflight: true, Fix: Automatic, Source: "seed 000",
			Criteria: "the vmknic exists with a static IP / DHCP / missing",
			Remedy:   "Create the vmknic or choose one that has an IP.",
			Run: eachHost(func(f *Facts, h *backends.Host) Answer {
				t, name := backends.HostRef(h.Name), f.vmknic(h)
				v := h.VMK(name)
				switch {
				case v == nil:
					return fail(t, "there is no vmknic %q", name)
				case v.IP == "":
					return fail(t, "%s has no IP address", name)
				}
				return warnIf(v.DHCP, t, "%s has %s/%d, DHCP %t", name, v.IP, v.PrefixLen, v.DHCP)
			}),
		},
		{
			ID: "HOST-VMKNIC-SUBNET-003", Scope: Host, Link: InHost, Modes: pvrdmaOnly, Quick: true, Preflight: true, Fix: Manual, Source: "seed 000, seed 003",
			Criteria: "all tagged vmknics in one subnet / in several, which must be routed / -",
			Remedy:   "Readdress the vmknics, or make sure the subnets are routed to each other.",
			Run:      vmknicSubnets,
		},
		{
			ID: "HOST-VMKNIC-DUP-004", Scope: Host, Link: InHost, Modes: pvrdmaOnly, Quick: true, Preflight: true, Fix: Manual, Source: "ours",
			Criteria: "vmknic addresses are unique / - / duplicate",
			Remedy:   "Fix the addressing.",
			Run: func(f *Facts) []Answer {
				owner := map[string]string{}
				var out []Answer
				for _, h := range f.connected() {
					v := h.VMK(f.vmknic(h))
					if v == nil || v.IP == "" {
						continue
					}
					other, twice := owner[v.IP]
					owner[v.IP] = h.Name
					if twice {
						out = append(out, fail(backends.HostRef(h.Name), "%s is also the address of %s", v.IP, other))
					} else {
						out = append(out, pass(backends.HostRef(h.Name), "%s %s", v.Device, v.IP))
					}
				}
				return out
			},
		},
		{
			ID: "HOST-VMKNIC-PING-005", Scope: Host, Link: InHost, Modes: pvrdmaOnly, Fix: Manual, Source: "seed 000",
			Criteria: "the vmknics reach each other without loss / < 5 % / more",
			Remedy:   "Fix VLAN and switch between the vmknics.",
			Run: eachPeer(func(_ *Facts, t backends.Ref, peer string, p Peer) Answer {
				switch {
				case p.Loss == 0:
					return pass(t, "no ping to %s was lost", peer)
				case p.Loss < 5:
					return warn(t, "%.1f %% of the pings to %s were lost", p.Loss, peer)
				}
				return fail(t, "%.1f %% of the pings to %s were lost", p.Loss, peer)
			}),
		},
		{
			ID: "HOST-VMKNIC-MTU-006", Scope: Host, Link: InHost, Modes: pvrdmaOnly, Quick: true, Fix: Automatic, Source: "Broadcom KB 419088",
			Criteria: "MTU of the DVS, or the vmknic lives on another switch / lower than the DVS / higher",
			Remedy:   "Set the MTU of the vmknic to that of the DVS.",
			Run: eachHost(func(f *Facts, h *backends.Host) Answer {
				t, v := backends.HostRef(h.Name), h.VMK(f.vmknic(h))
				sw := f.Inventory.Switch(f.Answers.Switch.Name)
				switch {
				case v == nil:
					return Answer{}
				case sw == nil || v.Switch != sw.Name:
					return pass(t, "%s has MTU %d on %s, which does not carry RDMA", v.Device, v.MTU, cmp.Or(v.Switch, "none"))
				case v.MTU > sw.MTU:
					return fail(t, "%s has MTU %d, %s only %d", v.Device, v.MTU, sw.Name, sw.MTU)
				}
				return warnIf(v.MTU < sw.MTU, t, "%s has MTU %d, %s has %d", v.Device, v.MTU, sw.Name, sw.MTU)
			}),
		},
		{
			ID: "HOST-FW-PVRDMA-007", Scope: Host, Link: InHost, Modes: pvrdmaOnly, Quick: true, Fix: Automatic, Source: "seed 000, section 4",
			Criteria: "ruleset pvrdma on / - / off",
			Remedy:   "Enable the firewall ruleset pvrdma.",
			Run: eachHost(func(_ *Facts, h *backends.Host) Answer {
				t := backends.HostRef(h.Name)
				r, known := h.Firewall[pvrdmaRuleset]
				if !known {
					return unknown(t, "the firewall was not read, or this ESXi has no ruleset pvrdma")
				}
				return passIf(r.Enabled, t, "ruleset pvrdma is %s", onOff(r.Enabled))
			}),
		},
		{
			ID: "HOST-FW-ALLOW-008", Scope: Host, Link: InHost, Modes: pvrdmaOnly, Quick: true, Fix: Automatic, Unverified: true, Source: "unverified",
			Criteria: "all addresses allowed or the peers listed / - / blocks",
			Remedy:   "Add the peers' subnets to the ruleset.",
			Run:      firewallAllows,
		},
		{
			ID: "HOST-PORT-28250-009", Scope: Host, Link: InHost, Modes: pvrdmaOnly, Fix: Manual, Source: "seed 003",
			Criteria: "TCP 28250 of the peers is open / could not be tried / closed",
			Remedy:   "Open TCP 28250 between the vmknics in the physical firewall.",
			Run: eachPeer(func(_ *Facts, t backends.Ref, peer string, p Peer) Answer {
				if p.Port == "" {
					return waiting(t, "TCP 28250 of %s was not tried: that takes the ESXi shell", peer)
				}
				return passIf(p.Port == "open", t, "TCP 28250 of %s is %s", peer, p.Port)
			}),
		},
	}
}

func vmknicSubnets(f *Facts) []Answer {
	subnets := map[netip.Prefix]int{}
	prefix := func(h *backends.Host) (netip.Prefix, bool) {
		v := h.VMK(f.vmknic(h))
		if v == nil {
			return netip.Prefix{}, false
		}
		addr, err := netip.ParseAddr(v.IP)
		if err != nil {
			return netip.Prefix{}, false
		}
		p, err := addr.Prefix(v.PrefixLen)
		return p, err == nil
	}
	for _, h := range f.connected() {
		if p, ok := prefix(h); ok {
			subnets[p]++
		}
	}
	var out []Answer
	for _, h := range f.connected() {
		if p, ok := prefix(h); ok {
			out = append(out, warnIf(len(subnets) > 1, backends.HostRef(h.Name), "vmknic in %s, one of %d subnets", p, len(subnets)))
		}
	}
	return out
}

func firewallAllows(f *Facts) []Answer {
	return eachHost(func(f *Facts, h *backends.Host) Answer {
		t := backends.HostRef(h.Name)
		r, known := h.Firewall[pvrdmaRuleset]
		switch {
		case !known:
			return unknown(t, "the firewall was not read")
		case !r.Enabled:
			return Answer{} // HOST-FW-PVRDMA-007 says so
		case r.AllIP:
			return pass(t, "ruleset pvrdma allows all addresses")
		}
		for _, peer := range f.connected() {
			v := peer.VMK(f.vmknic(peer))
			if peer.Name == h.Name || v == nil || v.IP == "" {
				continue
			}
			if !covers(r.Networks, v.IP) {
				return fail(t, "ruleset pvrdma allows %s, which leaves out %s of %s", cmp.Or(strings.Join(r.Networks, ", "), "none"), v.IP, peer.Name)
			}
		}
		return pass(t, "ruleset pvrdma allows %s, which covers all peers", strings.Join(r.Networks, ", "))
	})(f)
}

func covers(networks []string, ip string) bool {
	addr, err := netip.ParseAddr(ip)
	if err != nil {
		return false
	}
	for _, n := range networks {
		if p, err := netip.ParsePrefix(n); err == nil && p.Contains(addr) {
			return true
		}
		if n == ip {
			return true
		}
	}
	return false
}
