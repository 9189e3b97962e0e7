package checks

import (
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// pvrdmaOnly marks rows of mode pvrdma.
var pvrdmaOnly = []answers.Mode{answers.PVRDMA}

// hostChecks look at the platform of each host.
func hostChecks() []Check {
	return []Check{
		{
			ID: "HOST-CONN-001", Scope: Host, Quick: true, Preflight: true, Fix: Manual, Source: "vhpc-toolkit",
			Criteria: "connected / - / not",
			Remedy:   "Reconnect the host.",
			Run: func(f *Facts) []Answer {
				var out []Answer
				for _, h := range f.hosts() {
					out = append(out, passIf(h.State == "connected", backends.HostRef(h.Name), "the host is %s", h.State))
				}
				return out
			},
		},
		{
			ID: "HOST-MAINT-002", Scope: Host, Quick: true, Preflight: true, Fix: Automatic, Source: "-",
			Criteria: "not in maintenance mode / in maintenance mode / -",
			Remedy:   "Exit maintenance mode.",
			Run: eachHost(func(_ *Facts, h *backends.Host) Answer {
				return warnIf(h.InMaintenance, backends.HostRef(h.Name), "maintenance mode is %s", onOff(h.InMaintenance))
			}),
		},
		{
			ID: "HOST-REBOOT-003", Scope: Host, Quick: true, Fix: Reboot, Source: "vSphere API",
			Criteria: "no reboot required / required / -",
			Remedy:   "Reboot to activate pending changes.",
			Run: eachHost(func(_ *Facts, h *backends.Host) Answer {
				return warnIf(h.RebootRequired, backends.HostRef(h.Name), "summary.rebootRequired is %t", h.RebootRequired)
			}),
		},
		{
			ID: "HOST-NTP-004", Scope: Host, Quick: true, Fix: Automatic, Source: "seed 003, Host Configuration",
			Criteria: "server set and service running / configured but not running / none",
			Remedy:   "Configure and start NTP.",
			Run: eachHost(func(_ *Facts, h *backends.Host) Answer {
				t := backends.HostRef(h.Name)
				switch {
				case len(h.NTP) == 0:
					return fail(t, "no NTP server is configured")
				case !h.NTPActive:
					return warn(t, "NTP servers %s, but the service is not running", strings.Join(h.NTP, ", "))
				}
				return pass(t, "NTP servers %s, running", strings.Join(h.NTP, ", "))
			}),
		},
		{
			ID: "HOST-BIOSPOWER-008", Scope: Host, Quick: true, Fix: Manual, Source: "seed 002, section 2.1",
			Criteria: "the BIOS leaves the power policy to ESXi / - / it does not",
			Remedy:   "Set the BIOS profile Performance Per Watt (OS).",
			Run: eachHost(func(_ *Facts, h *backends.Host) Answer {
				t := backends.HostRef(h.Name)
				if h.PowerPolicy == "" && len(h.PowerPolicies) == 0 {
					return unknown(t, "the host tells nothing of power policies")
				}
				return passIf(len(h.PowerPolicies) > 0, t, "policies offered: %s", orNone(strings.Join(h.PowerPolicies, ", ")))
			}),
		},
		{
			ID: "HOST-POWER-009", Scope: Host, Quick: true, Fix: Automatic, Source: "seed 002, Fig. 14",
			Criteria: "High Performance (static) / other / -",
			Remedy:   "Select High Performance.",
			Run: eachHost(func(_ *Facts, h *backends.Host) Answer {
				t := backends.HostRef(h.Name)
				if h.PowerPolicy == "" {
					return unknown(t, "the host tells nothing of its power policy")
				}
				return warnIf(h.PowerPolicy != "static", t, "power policy %s", h.PowerPolicy)
			}),
		},
		{
			ID: "HOST-HT-010", Scope: Host, Quick: true, Fix: Manual, Source: "seed 002, Table 1",
			Criteria: "hyper-threading on / off / -",
			Remedy:   "Enable hyper-threading (testbed setting).",
			Run: eachHost(func(_ *Facts, h *backends.Host) Answer {
				return warnIf(!h.Hyperthreads, backends.HostRef(h.Name), "hyper-threading is %s", onOff(h.Hyperthreads))
			}),
		},
	}
}

// nicChecks look at the RDMA pNIC of each host.
func nicChecks() []Check {
	return []Check{
		{
			ID: "HOST-PNIC-RDMA-001", Scope: Host, Modes: pvrdmaOnly, Quick: true, Preflight: true, Fix: Reboot, Source: "vSphere API, HostRdmaDevice",
			Criteria: "an RDMA device is paired with the pNIC / - / none",
			Remedy:   "Load the RDMA driver (nmlx5_rdma, irdman, bnxtroce, qedrntv) or choose another NIC.",
			Run: eachNIC(func(_ *Facts, h *backends.Host, n *backends.NIC) Answer {
				return passIf(n.RDMADevice != "", backends.HostRef(h.Name), "%s (%s): RDMA device %s", n.Device, n.Driver, orNone(n.RDMADevice))
			}),
		},
		{
			ID: "HOST-PNIC-ROCEV2-002", Scope: Host, Modes: pvrdmaOnly, Quick: true, Preflight: true, Fix: Reboot, Source: "vSphere API; irdman release notes",
			Criteria: "RoCE v2 / v1 only / none (iWARP)",
			Remedy:   "Switch an Intel NIC to RoCE v2, or use pvrdma.protocol rocev1.",
			Run:      eachNIC(rocev2),
		},
		{
			ID: "HOST-PNIC-STATE-003", Scope: Host, Quick: true, Preflight: true, Fix: Manual, Source: "vSphere API",
			Criteria: "link up / - / down",
			Remedy:   "Check cable, optics and switch port.",
			Run: eachNIC(func(_ *Facts, h *backends.Host, n *backends.NIC) Answer {
				if n.SpeedMbps == 0 {
					return fail(backends.HostRef(h.Name), "%s has no link", n.Device)
				}
				return pass(backends.HostRef(h.Name), "%s is up at %d Mbps, RDMA device %s", n.Device, n.SpeedMbps, orNone(n.RDMAState))
			}),
		},
		{
			ID: "HOST-PNIC-SPEED-004", Scope: Host, Quick: true, Fix: Manual, Source: "seed 000, section 2",
			Criteria: "as fast as the pNIC can, full duplex / slower / below 10 Gbps",
			Remedy:   "Fix negotiation, cable or FEC.",
			Run: eachNIC(func(_ *Facts, h *backends.Host, n *backends.NIC) Answer {
				t := backends.HostRef(h.Name)
				switch {
				case n.SpeedMbps == 0:
					return unknown(t, "%s has no link", n.Device)
				case n.SpeedMbps < 10000:
					return fail(t, "%s runs at %d Mbps", n.Device, n.SpeedMbps)
				}
				return warnIf(n.MaxSpeedMbps > n.SpeedMbps || !n.FullDuplex, t, "%s runs at %d Mbps of %d, full duplex %t", n.Device, n.SpeedMbps, n.MaxSpeedMbps, n.FullDuplex)
			}),
		},
		{
			ID: "HOST-PNIC-USED-012", Scope: Host, Quick: true, Preflight: true, Fix: Manual, Source: "seed 000, section 3",
			Criteria: "free / uplink of the target DVS / in use",
			Remedy:   "Choose another NIC or migrate its traffic first.",
			Run: eachNIC(func(f *Facts, h *backends.Host, n *backends.NIC) Answer {
				t := backends.HostRef(h.Name)
				switch {
				case len(n.Roles) > 0:
					return fail(t, "%s carries %s", n.Device, strings.Join(n.Roles, ", "))
				case n.Switch != "" && n.Switch != f.Answers.Switch.Name:
					return fail(t, "%s is an uplink of %s", n.Device, n.Switch)
				case n.Switch != "":
					return pass(t, "%s is an uplink of the target DVS %s", n.Device, n.Switch)
				}
				return pass(t, "%s is free", n.Device)
			}),
		},
		{
			ID: "HOST-PNIC-ONLYUPLINK-013", Scope: Host, Modes: pvrdmaOnly, Quick: true, Fix: Automatic, Source: "VMware: PVRDMA support",
			Criteria: "exactly one pNIC on the DVS / - / none or several",
			Remedy:   "Leave the HCA as the only uplink (no teaming).",
			Run: onSwitch(func(f *Facts, h *backends.Host, m backends.Member) Answer {
				return passIf(len(m.PNICs) == 1, backends.HostRef(h.Name), "uplinks on %s: %s", f.Answers.Switch.Name, orNone(strings.Join(m.PNICs, ", ")))
			}),
		},
		{
			ID: "HOST-ENS-017", Scope: Host, Modes: pvrdmaOnly, Quick: true, Fix: Manual, Source: "irdman release notes",
			Criteria: "ENS off on the DVS / - / on",
			Remedy:   "Disable ENS: RDMA is unavailable with it.",
			Run: onSwitch(func(f *Facts, h *backends.Host, m backends.Member) Answer {
				return passIf(!m.ENS, backends.HostRef(h.Name), "ENS on %s is %s", f.Answers.Switch.Name, onOff(m.ENS))
			}),
		},
	}
}

func rocev2(f *Facts, h *backends.Host, n *backends.NIC) Answer {
	t := backends.HostRef(h.Name)
	switch {
	case n.RoCEv2:
		return pass(t, "%s is capable of RoCE v2", n.Device)
	case n.RoCEv1 && f.Answers.PVRDMA.Protocol == "rocev1":
		return warn(t, "%s is capable of RoCE v1 only, which is what the answers ask for", n.Device)
	case n.RoCEv1:
		return fail(t, "%s is capable of RoCE v1 only", n.Device)
	case n.IWARP:
		return fail(t, "%s speaks iWARP, not RoCE", n.Device)
	}
	return fail(t, "%s has no RoCE", n.Device)
}

// onSwitch asks about a host's share in the target DVS; a host that is no member has its own row (DVS-MEMBER-003).
func onSwitch(ask func(f *Facts, h *backends.Host, m backends.Member) Answer) func(*Facts) []Answer {
	return func(f *Facts) []Answer {
		sw := f.Inventory.Switch(f.Answers.Switch.Name)
		var out []Answer
		for _, h := range f.hosts() {
			if sw == nil || h.State != "connected" {
				continue
			}
			if m, member := sw.Members[h.Name]; member {
				out = append(out, ask(f, h, m))
			}
		}
		return out
	}
}

func onOff(b bool) string {
	if b {
		return "on"
	}
	return "off"
}
