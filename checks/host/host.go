// Package host contains the rows about one ESXi host: its settings, its RDMA pNIC, the VFs and devices that it provides to VMs,
// and its part of PVRDMA's control plane.
package host

import (
	"cmp"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/row"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// Checks returns the rows of hosts.
func Checks() []checks.Check {
	return slices.Concat(hostChecks(), directHostChecks(), nicChecks(), nicLinkChecks(), qosChecks(), sriovChecks(), passthroughChecks(),
		controlPlaneChecks())
}

// hostChecks examine the platform of each host: its state in vCenter and its BIOS settings.
func hostChecks() []checks.Check {
	return []checks.Check{
		{
			ID: "HOST-CONN-001", Scope: checks.Host, Link: checks.InHost, Quick: true, Preflight: true, Fix: checks.Manual, Source: "vhpc-toolkit",
			Criteria: "connected / - / not",
			Remedy:   "Reconnect the host.",
			Run: func(f *checks.Facts) []checks.Answer {
				var out []checks.Answer
				for _, h := range f.Hosts() {
					out = append(out, row.PassIf(h.State == "connected", backends.HostRef(h.Name), "the host is %s", h.State))
				}
				for _, name := range f.Answers.Hosts.Names {
					if f.Inventory.Host(name) == nil {
						out = append(out, row.Fail(backends.HostRef(name), "vCenter has no host of this name"))
					}
				}
				return out
			},
		},
		{
			ID: "HOST-MAINT-002", Scope: checks.Host, Link: checks.InHost, Quick: true, Preflight: true, Fix: checks.Manual, Source: "vSphere API",
			Criteria: "not in maintenance mode / in maintenance mode / -",
			Remedy:   "Exit maintenance mode.",
			Run: row.EachHost(func(_ *checks.Facts, t backends.Ref, h *backends.Host) checks.Answer {
				return row.WarnIf(h.InMaintenance, t, "maintenance mode is %s", row.OnOff(h.InMaintenance))
			}),
		},
		{
			ID: "HOST-REBOOT-003", Scope: checks.Host, Link: checks.InHost, Quick: true, Fix: checks.Reboot, Source: "vSphere API",
			Criteria: "no reboot required / required / -",
			Remedy:   "Reboot to activate pending changes.",
			Run: row.EachHost(func(_ *checks.Facts, t backends.Ref, h *backends.Host) checks.Answer {
				return row.WarnIf(h.RebootRequired, t, "summary.rebootRequired is %t", h.RebootRequired)
			}),
		},
		{
			ID: "HOST-NTP-004", Scope: checks.Host, Link: checks.InHost, Quick: true, Fix: checks.Manual,
			Source:   row.KubernetesGuide + ", Host Configuration",
			Criteria: "server set and service running / configured but not running / none",
			Remedy:   "Configure and start NTP.",
			Run: row.EachHost(func(_ *checks.Facts, t backends.Ref, h *backends.Host) checks.Answer {
				switch {
				case len(h.NTP)+len(h.Services) == 0: // a host has services
					return row.Unknown(t, "the NTP servers could not be read")
				case len(h.NTP) == 0:
					return row.Fail(t, "no NTP server is configured")
				case !h.NTPActive:
					return row.Warn(t, "NTP servers %s, but the service is not running", strings.Join(h.NTP, ", "))
				}
				return row.Pass(t, "NTP servers %s, running", strings.Join(h.NTP, ", "))
			}),
		},
		{
			ID: "HOST-IOMMU-005", Scope: checks.Host, Link: checks.InBIOS, Modes: row.Direct, Quick: true, Preflight: true, Fix: checks.Manual,
			Source:   row.GPUDirectGuide + ", " + row.SRIOVStudy,
			Criteria: "a device can be passed through / - / none can",
			Remedy:   "Enable VT-d or AMD IOMMU in the BIOS.",
			Run:      row.EachHost(iommu),
		},
		{
			ID: "HOST-SRIOVBIOS-006", Scope: checks.Host, Link: checks.InBIOS, Modes: row.SRIOV, Quick: true, Fix: checks.Manual,
			Fixes:    []backends.Kind{backends.KindFirmware},
			Source:   row.SRIOVStudy + ", section 2.1; vSphere API",
			Criteria: "the PF supports VFs / supports SR-IOV, but allows no VFs / does not support SR-IOV",
			Remedy:   "Enable SR-IOV Global in the BIOS and SRIOV_EN in the NIC's firmware.",
			Run: eachNIC("HOST-SRIOVBIOS-006", func(_ *checks.Facts, t backends.Ref, h *backends.Host, n *backends.NIC) checks.Answer {
				if n.SRIOV == nil || !n.SRIOV.Capable {
					return row.Fail(t, "%s does not support SR-IOV at present", n.Device)
				}
				return row.WarnIf(n.SRIOV.Max == 0, t, "%s supports up to %d VFs", n.Device, n.SRIOV.Max)
			}),
		},
		{
			ID: "HOST-ABOVE4G-007", Scope: checks.Host, Link: checks.InBIOS, Modes: row.GPUDirect, Fix: checks.Manual,
			Source:   row.GPUDirectGuide + ", section 1",
			Criteria: "confirmed, or a VM runs with a large-BAR GPU / - / -; else unknown",
			Remedy:   "Enable Above 4G decoding in the BIOS, then confirm it in the answers (confirmed.above_4g).",
			Run:      row.EachHost(above4G),
		},
		{
			ID: "HOST-BIOSPOWER-008", Scope: checks.Host, Link: checks.InBIOS, Quick: true, Fix: checks.Manual,
			Source:   row.SRIOVStudy + ", section 2.1",
			Criteria: "the BIOS leaves the power policy to ESXi / - / it does not",
			Remedy:   "Set the BIOS profile Performance Per Watt (OS).",
			Run: row.EachHost(func(_ *checks.Facts, t backends.Ref, h *backends.Host) checks.Answer {
				if h.PowerPolicy == "" && len(h.PowerPolicies) == 0 {
					return row.Unknown(t, "the host reports no power policies")
				}
				return row.PassIf(len(h.PowerPolicies) > 0, t, "policies offered: %s", cmp.Or(strings.Join(h.PowerPolicies, ", "), "none"))
			}),
		},
		{
			ID: "HOST-POWER-009", Scope: checks.Host, Link: checks.InHost, Quick: true, Fixes: []backends.Kind{backends.KindPower},
			Source:   row.SRIOVStudy + ", Fig. 14",
			Criteria: "High Performance (static) / other / -",
			Remedy: "Select High Performance (host > Configure > Hardware > Overview > Power Management > Edit Power Policy), as the plans of " +
				"sriov and gpudirect do.",
			Run: row.EachHost(func(f *checks.Facts, t backends.Ref, h *backends.Host) checks.Answer {
				if h.PowerPolicy == "" {
					return row.Unknown(t, "the host does not report its power policy")
				}
				a := row.WarnIf(h.PowerPolicy != "static", t, "power policy %s", h.PowerPolicy)
				a.Quiet = f.Answers.Mode == answers.PVRDMA // no step of this mode sets it, so it is reported without lowering the status
				return a
			}),
		},
		{
			ID: "HOST-HT-010", Scope: checks.Host, Link: checks.InBIOS, Quick: true, Fix: checks.Manual, Source: row.SRIOVStudy + ", Table 1",
			Criteria: "hyper-threading on / off / -",
			Remedy:   "Enable hyper-threading (testbed setting).",
			Run: row.EachHost(func(_ *checks.Facts, t backends.Ref, h *backends.Host) checks.Answer {
				return row.WarnIf(!h.Hyperthreads, t, "hyper-threading is %s", row.OnOff(h.Hyperthreads))
			}),
		},
	}
}

// iommu takes any device that supports passthrough as proof that the IOMMU is enabled.
func iommu(_ *checks.Facts, t backends.Ref, h *backends.Host) checks.Answer {
	if len(h.PCI)+len(h.GPUs) == 0 {
		return row.Unknown(t, "the host lists no PCI device")
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
	return row.PassIf(n > 0, t, "%d of the listed PCI devices can be passed through", n)
}

// above4G looks for a running VM with a GPU whose BAR does not fit below 4 GB; otherwise the operator must confirm the setting.
func above4G(f *checks.Facts, t backends.Ref, h *backends.Host) checks.Answer {
	if f.Answers.Confirmed.Above4G {
		return row.Pass(t, "confirmed by the operator")
	}
	for i := range f.Inventory.VMs {
		v := &f.Inventory.VMs[i]
		if v.Host != h.Name || v.Power != "poweredOn" {
			continue
		}
		if w, err := f.Window(v); err == nil && w.Needed {
			return row.Pass(t, "%s runs with %g GB of BARs", v.Name, w.SumBARGB)
		}
	}
	return row.Waiting(t, "this BIOS setting cannot be detected; confirmed.above_4g is false and no VM with a large GPU runs")
}
