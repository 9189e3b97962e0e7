package host

import (
	"cmp"
	"net/netip"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/row"
)

// controlPlaneChecks examine what PVRDMA needs between hosts: the tagged vmknic and the firewall.
func controlPlaneChecks() []checks.Check {
	return []checks.Check{
		{
			ID: "HOST-VMKNIC-SET-001", Scope: checks.Host, Link: checks.InHost, Modes: row.PVRDMA, Quick: true,
			Fixes:    []backends.Kind{backends.KindOption},
			Source:   row.BitfusionGuide + ", section 4",
			Criteria: "a vmknic is set, without quotes or spaces / - / empty or quoted",
			Remedy:   "Set Net.PVRDMAVmknic to the vmknic.",
			Run: row.EachHost(func(_ *checks.Facts, t backends.Ref, h *backends.Host) checks.Answer {
				v, known := h.Options[backends.VMKNICOption]
				if !known {
					return row.Unknown(t, "%s was not read", backends.VMKNICOption)
				}
				return row.PassIf(v != "" && !strings.ContainsAny(v, "\"' \t"), t, "%s is %q", backends.VMKNICOption, v)
			}),
		},
		{
			ID: "HOST-VMKNIC-EXIST-002", Scope: checks.Host, Link: checks.InHost, Modes: row.PVRDMA, Quick: true, Preflight: true,
			Fix:      checks.Manual,
			Source:   row.BitfusionGuide,
			Criteria: "the vmknic exists with a static IP / DHCP / missing",
			Remedy:   "Create the vmknic, or choose one with a static IP address.",
			Run: row.EachHost(func(f *checks.Facts, t backends.Ref, h *backends.Host) checks.Answer {
				name := f.VMKNIC(h)
				v := h.VMK(name)
				switch {
				case v == nil && name == "" && f.Answers.PVRDMA.VMKNic.Creates(h.Name):
					return row.Waiting(t, "the vmknic has not been created yet")
				case v == nil:
					return row.Fail(t, "there is no vmknic %q", name)
				case v.IP == "":
					return row.Fail(t, "%s has no IP address", name)
				}
				return row.WarnIf(v.DHCP, t, "%s has %s/%d, DHCP %t", name, v.IP, v.PrefixLen, v.DHCP)
			}),
		},
		{
			ID: "HOST-VMKNIC-SUBNET-003", Scope: checks.Host, Link: checks.InHost, Modes: row.PVRDMA, Quick: true, Preflight: true,
			Fix:      checks.Manual,
			Source:   row.BitfusionGuide + ", " + row.KubernetesGuide,
			Criteria: "the vmknic for PVRDMA in the subnet of most hosts / in another, which must be routed / -",
			Remedy:   "Change the addresses of the vmknics, or make sure the subnets are routed to each other.",
			Run:      vmknicSubnets,
		},
		{
			ID: "HOST-VMKNIC-DUP-004", Scope: checks.Host, Link: checks.InHost, Modes: row.PVRDMA, Quick: true, Preflight: true, Fix: checks.Manual,
			Source:   "ours",
			Criteria: "vmknic addresses are unique / - / duplicate",
			Remedy:   "Give each vmknic a unique address.",
			Run: func(f *checks.Facts) []checks.Answer {
				owner := map[string]string{}
				var out []checks.Answer
				for _, h := range f.Connected() {
					v := h.VMK(f.VMKNIC(h))
					if v == nil || v.IP == "" {
						continue
					}
					other, twice := owner[v.IP]
					owner[v.IP] = h.Name
					if twice {
						out = append(out, row.Fail(backends.HostRef(h.Name), "%s is also the address of %s", v.IP, other))
					} else {
						out = append(out, row.Pass(backends.HostRef(h.Name), "%s %s", v.Device, v.IP))
					}
				}
				return out
			},
		},
		{
			ID: "HOST-VMKNIC-PING-005", Scope: checks.Host, Link: checks.InHost, Modes: row.PVRDMA, Fix: checks.Manual, Source: row.BitfusionGuide,
			Criteria: "the vmknics reach each other without loss / < 5 % / more",
			Remedy:   "Fix VLAN and switch between the vmknics.",
			Run: row.EachPeer(func(_ *checks.Facts, t backends.Ref, peer string, p backends.Peer) checks.Answer {
				switch {
				case p.Loss == 0:
					return row.Pass(t, "no ping to %s was lost", peer)
				case p.Loss < 5:
					return row.Warn(t, "%.1f %% of the pings to %s were lost", p.Loss, peer)
				}
				return row.Fail(t, "%.1f %% of the pings to %s were lost", p.Loss, peer)
			}),
		},
		{
			ID: "HOST-VMKNIC-MTU-006", Scope: checks.Host, Link: checks.InHost, Modes: row.PVRDMA, Quick: true, Fix: checks.Manual,
			Source:   "Broadcom KB 419088",
			Criteria: "MTU of the DVS, or the vmknic is on another switch / lower than the DVS / higher",
			Remedy:   "Set the MTU of the vmknic to that of the DVS.",
			Run: row.EachHost(func(f *checks.Facts, t backends.Ref, h *backends.Host) checks.Answer {
				v := h.VMK(f.VMKNIC(h))
				sw := f.Inventory.Switch(f.Answers.Switch.Name)
				switch {
				case v == nil:
					return checks.Answer{}
				case sw == nil || v.Switch != sw.Name:
					return row.Pass(t, "%s has MTU %d on %s, which does not carry RDMA", v.Device, v.MTU, cmp.Or(v.Switch, "none"))
				case v.MTU > sw.MTU:
					return row.Fail(t, "%s has MTU %d, %s only %d", v.Device, v.MTU, sw.Name, sw.MTU)
				}
				return row.WarnIf(v.MTU < sw.MTU, t, "%s has MTU %d, %s has %d", v.Device, v.MTU, sw.Name, sw.MTU)
			}),
		},
		{
			ID: "HOST-FW-PVRDMA-007", Scope: checks.Host, Link: checks.InHost, Modes: row.PVRDMA, Quick: true,
			Fixes:    []backends.Kind{backends.KindFirewall},
			Source:   row.BitfusionGuide + ", section 4",
			Criteria: "ruleset pvrdma on / - / off",
			Remedy:   "Enable the firewall ruleset pvrdma.",
			Run: row.EachHost(func(_ *checks.Facts, t backends.Ref, h *backends.Host) checks.Answer {
				r, known := h.Firewall[checks.PVRDMARuleset]
				if !known {
					return row.Unknown(t, "the firewall was not read, or this ESXi has no ruleset pvrdma")
				}
				old := ""
				if h.Stale != "" {
					old = " (in vCenter's copy, which may be minutes old: " + h.Stale + ")"
				}
				return row.PassIf(r.Enabled, t, "ruleset pvrdma is %s%s", row.OnOff(r.Enabled), old)
			}),
		},
		{
			ID: "HOST-FW-ALLOW-008", Scope: checks.Host, Link: checks.InHost, Modes: row.PVRDMA, Quick: true, Fix: checks.Manual, Unverified: true,
			Source:   "unverified",
			Criteria: "all addresses are allowed, or the peers are listed / - / peers are blocked",
			Remedy:   "Add the peers' subnets to the ruleset.",
			Run:      firewallAllows,
		},
	}
}

func vmknicSubnets(f *checks.Facts) []checks.Answer {
	subnets, all := map[netip.Prefix]int{}, 0
	prefix := func(h *backends.Host) (netip.Prefix, bool) {
		v := h.VMK(f.VMKNIC(h))
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
	for _, h := range f.Connected() {
		if p, ok := prefix(h); ok {
			subnets[p]++
			all++
		}
	}
	var out []checks.Answer
	for _, h := range f.Connected() {
		if p, ok := prefix(h); ok {
			out = append(out, row.WarnIf(2*subnets[p] <= all, backends.HostRef(h.Name), "vmknic in %s, as on %d of %d hosts", p, subnets[p], all))
		}
	}
	return out
}

func firewallAllows(f *checks.Facts) []checks.Answer {
	return row.EachHost(func(f *checks.Facts, t backends.Ref, h *backends.Host) checks.Answer {
		r, known := h.Firewall[checks.PVRDMARuleset]
		switch {
		case !known:
			return row.Unknown(t, "the firewall was not read")
		case !r.Enabled:
			return checks.Answer{} // HOST-FW-PVRDMA-007 reports it
		case r.AllIP:
			return row.Pass(t, "ruleset pvrdma allows all addresses")
		}
		for _, peer := range f.Connected() {
			v := peer.VMK(f.VMKNIC(peer))
			if peer.Name == h.Name || v == nil || v.IP == "" {
				continue
			}
			if !covers(r.Networks, v.IP) {
				return row.Fail(t, "ruleset pvrdma allows %s, but not %s of %s", cmp.Or(strings.Join(r.Networks, ", "), "none"), v.IP, peer.Name)
			}
		}
		return row.Pass(t, "ruleset pvrdma allows %s, which covers all peers", strings.Join(r.Networks, ", "))
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
