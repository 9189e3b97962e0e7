package checks

import (
	"net/netip"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
)

// vmknicOption is the advanced option that names the vmknic of PVRDMA's control plane.
const vmknicOption = "Net.PVRDMAVmknic"

// controlPlaneChecks look at what PVRDMA needs between hosts: the tagged vmknic and the firewall.
func controlPlaneChecks() []Check {
	return []Check{
		{
			ID: "HOST-VMKNIC-SET-001", Scope: Host, Modes: pvrdmaOnly, Quick: true, Fix: Automatic, Source: "seed 000, section 4",
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
			ID: "HOST-VMKNIC-EXIST-002", Scope: Host, Modes: pvrdmaOnly, Quick: true, Preflight: true, Fix: Automatic, Source: "seed 000",
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
			ID: "HOST-VMKNIC-SUBNET-003", Scope: Host, Modes: pvrdmaOnly, Quick: true, Preflight: true, Fix: Manual, Source: "seed 000, seed 003",
			Criteria: "all tagged vmknics in one subnet / in several, which must be routed / -",
			Remedy:   "Readdress the vmknics, or make sure the subnets are routed to each other.",
			Run:      vmknicSubnets,
		},
		{
			ID: "HOST-VMKNIC-DUP-004", Scope: Host, Modes: pvrdmaOnly, Quick: true, Preflight: true, Fix: Manual, Source: "ours",
			Criteria: "vmknic addresses are unique / - / duplicate",
			Remedy:   "Fix the addressing.",
			Run: func(f *Facts) []Answer {
				owner := map[string]string{}
				var out []Answer
				for _, h := range f.hosts() {
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
			ID: "HOST-FW-PVRDMA-007", Scope: Host, Modes: pvrdmaOnly, Quick: true, Fix: Automatic, Source: "seed 000, section 4",
			Criteria: "ruleset pvrdma on / - / off",
			Remedy:   "Enable the firewall ruleset pvrdma.",
			Run: eachHost(func(_ *Facts, h *backends.Host) Answer {
				t := backends.HostRef(h.Name)
				r, known := h.Firewall["pvrdma"]
				if !known {
					return unknown(t, "the firewall was not read, or this ESXi has no ruleset pvrdma")
				}
				return passIf(r.Enabled, t, "ruleset pvrdma is %s", onOff(r.Enabled))
			}),
		},
		{
			ID: "HOST-FW-ALLOW-008", Scope: Host, Modes: pvrdmaOnly, Quick: true, Fix: Automatic, Unverified: true, Source: "unverified",
			Criteria: "all addresses allowed or the peers listed / - / blocks",
			Remedy:   "Add the peers' subnets to the ruleset.",
			Run:      firewallAllows,
		},
	}
}

// vmknic is the vmknic that the answers name; where they name none the one that the host has.
func (f *Facts) vmknic(h *backends.Host) string {
	if f.Answers.PVRDMA.VMKNic != "" {
		return f.Answers.PVRDMA.VMKNic
	}
	return h.Options[vmknicOption]
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
	for _, h := range f.hosts() {
		if p, ok := prefix(h); ok {
			subnets[p]++
		}
	}
	var out []Answer
	for _, h := range f.hosts() {
		if p, ok := prefix(h); ok {
			out = append(out, warnIf(len(subnets) > 1, backends.HostRef(h.Name), "vmknic in %s, one of %d subnets", p, len(subnets)))
		}
	}
	return out
}

func firewallAllows(f *Facts) []Answer {
	return eachHost(func(f *Facts, h *backends.Host) Answer {
		t := backends.HostRef(h.Name)
		r, known := h.Firewall["pvrdma"]
		switch {
		case !known:
			return unknown(t, "the firewall was not read")
		case r.AllIP:
			return pass(t, "ruleset pvrdma allows all addresses")
		}
		for _, peer := range f.hosts() {
			v := peer.VMK(f.vmknic(peer))
			if peer.Name == h.Name || v == nil || v.IP == "" {
				continue
			}
			if !covers(r.Networks, v.IP) {
				return fail(t, "ruleset pvrdma allows %s, which leaves out %s of %s", orNone(strings.Join(r.Networks, ", ")), v.IP, peer.Name)
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
