package checks

import (
	"cmp"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// hostRows gives the rows of hosts.
func hostRows() []Check {
	return slices.Concat(hostChecks(), directHostChecks(), nicChecks(), nicLinkChecks(), qosChecks(), sriovChecks(), passthroughChecks(), controlPlaneChecks())
}

// hostChecks look at the platform of each host: its state in vCenter and what the BIOS allows.
func hostChecks() []Check {
	return []Check{
		{
			ID: "HOST-CONN-001", Scope: Host, Link: InHost, Quick: true, Preflight: true, Fix: Manual, Source: "vhpc-toolkit",
			Criteria: "connected / - / not",
			Remedy:   "Reconnect the host.",
			Run: func(f *Facts) []Answer {
				var out []Answer
				for _, h := range f.hosts() {
					out = append(out, passIf(h.State == "connected", backends.HostRef(h.Name), "the host is %s", h.State))
				}
				for _, name := range f.Answers.Hosts.Names {
					if f.Inventory.Host(name) == nil {
						out = append(out, fail(backends.HostRef(name), "there is no host of this name"))
					}
				}
				return out
			},
		},
		{
			ID: "HOST-MAINT-002", Scope: Host, Link: InHost, Quick: true, Preflight: true, Fix: Automatic, Source: "vSphere API",
			Criteria: "not in maintenance mode / in maintenance mode / -",
			Remedy:   "Exit maintenance mode.",
			Run: eachHost(func(_ *Facts, h *backends.Host) Answer {
				return warnIf(h.InMaintenance, backends.HostRef(h.Name), "maintenance mode is %s", onOff(h.InMaintenance))
			}),
		},
		{
			ID: "HOST-REBOOT-003", Scope: Host, Link: InHost, Quick: true, Fix: Reboot, Source: "vSphere API",
			Criteria: "no reboot required / required / -",
			Remedy:   "Reboot to activate pending changes.",
			Run: eachHost(func(_ *Facts, h *backends.Host) Answer {
				return warnIf(h.RebootRequired, backends.HostRef(h.Name), "summary.rebootRequired is %t", h.RebootRequired)
			}),
		},
		{
			ID: "HOST-NTP-004", Scope: Host, Link: InHost, Quick: true, Fix: Automatic, Source: "seed 003, Host Configuration",
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
			ID: "HOST-IOMMU-005", Scope: Host, Link: InBIOS, Modes: directModes, Quick: true, Preflight: true, Fix: Manual, Source: "seed 001, seed 002",
			Criteria: "a device can be passed through / - / none can",
			Remedy:   "Enable VT-d or AMD IOMMU in the BIOS.",
			Run:      eachHost(iommu),
		},
		{
			ID: "HOST-SRIOVBIOS-006", Scope: Host, Link: InBIOS, Modes: sriovOnly, Quick: true, Fix: Manual, Source: "seed 002, section 2.1; vSphere API",
			Criteria: "the PF can give VFs / capable of none / not capable",
			Remedy:   "Enable SR-IOV Global in the BIOS and SRIOV_EN in the NIC's firmware.",
			Run: eachNIC("HOST-SRIOVBIOS-006", func(_ *Facts, h *backends.Host, n *backends.NIC) Answer {
				t := backends.HostRef(h.Name)
				if n.SRIOV == nil || !n.SRIOV.Capable {
					return fail(t, "%s is not capable of SR-IOV now", n.Device)
				}
				return warnIf(n.SRIOV.Max == 0, t, "%s is capable of %d VFs", n.Device, n.SRIOV.Max)
			}),
		},
		{
			ID: "HOST-ABOVE4G-007", Scope: Host, Link: InBIOS, Modes: gpuOnly, Fix: Manual, Source: "seed 001, section 1",
			Criteria: "confirmed, or a VM runs with a large-BAR GPU / - / -; else unknown",
			Remedy:   "Enable Above 4G decoding in the BIOS, then say so in the answers (confirmed.above_4g).",
			Run:      eachHost(above4G),
		},
		{
			ID: "HOST-BIOSPOWER-008", Scope: Host, Link: InBIOS, Quick: true, Fix: Manual, Source: "seed 002, section 2.1",
			Criteria: "the BIOS leaves the power policy to ESXi / - / it does not",
			Remedy:   "Set the BIOS profile Performance Per Watt (OS).",
			Run: eachHost(func(_ *Facts, h *backends.Host) Answer {
				t := backends.HostRef(h.Name)
				if h.PowerPolicy == "" && len(h.PowerPolicies) == 0 {
					return unknown(t, "the host tells nothing of power policies")
				}
				return passIf(len(h.PowerPolicies) > 0, t, "policies offered: %s", cmp.Or(strings.Join(h.PowerPolicies, ", "), "none"))
			}),
		},
		{
			ID: "HOST-POWER-009", Scope: Host, Link: InHost, Quick: true, Fix: Automatic, Source: "seed 002, Fig. 14",
			Criteria: "High Performance (static) / other / -",
			Remedy:   "Select High Performance.",
			Run: eachHost(func(f *Facts, h *backends.Host) Answer {
				t := backends.HostRef(h.Name)
				if h.PowerPolicy == "" {
					return unknown(t, "the host tells nothing of its power policy")
				}
				a := warnIf(h.PowerPolicy != "static", t, "power policy %s", h.PowerPolicy)
				a.Quiet = f.Answers.Mode == answers.PVRDMA // no step of this mode sets it: worth saying, no reason to worry
				return a
			}),
		},
		{
			ID: "HOST-HT-010", Scope: Host, Link: InBIOS, Quick: true, Fix: Manual, Source: "seed 002, Table 1",
			Criteria: "hyper-threading on / off / -",
			Remedy:   "Enable hyper-threading (testbed setting).",
			Run: eachHost(func(_ *Facts, h *backends.Host) Answer {
				return warnIf(!h.Hyperthreads, backends.HostRef(h.Name), "hyper-threading is %s", onOff(h.Hyperthreads))
			}),
		},
	}
}

// iommu takes any device that can be passed through as proof that the IOMMU is on.
func iommu(_ *Facts, h *backends.Host) Answer {
	t := backends.HostRef(h.Name)
	if len(h.PCI)+len(h.GPUs) == 0 {
		return unknown(t, "the host lists no PCI device")
	}
	n := 0
	for _, d := range h.PCI {
		if d.Capable {
			n++
		}
	}
	for _, g := range h.GPUs {
		if g.Capable && !slices.ContainsFunc(h.PCI, func(d backends.PCIDevice) bool { return d.Address == g.PCI }) {
			n++
		}
	}
	return passIf(n > 0, t, "%d of the listed PCI devices can be passed through", n)
}

// above4G looks for a VM that runs with a GPU whose BAR does not fit below 4 GB; else it takes the operator's word.
func above4G(f *Facts, h *backends.Host) Answer {
	t := backends.HostRef(h.Name)
	if f.Answers.Confirmed.Above4G {
		return pass(t, "confirmed by the operator")
	}
	for i := range f.Inventory.VMs {
		v := &f.Inventory.VMs[i]
		if v.Host != h.Name || v.Power != "poweredOn" {
			continue
		}
		if w, err := f.window(v); err == nil && w.Needed {
			return pass(t, "%s runs with %g GB of BARs", v.Name, w.SumBARGB)
		}
	}
	return waiting(t, "nothing can read this BIOS setting; confirmed.above_4g is false and no VM with a large GPU runs")
}
