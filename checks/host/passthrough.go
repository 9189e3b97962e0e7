package host

import (
	"cmp"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/nic"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/row"
)

// passthroughChecks examine the devices that hosts pass through for GPUDirect.
func passthroughChecks() []checks.Check {
	return []checks.Check{
		{
			ID: "HOST-PT-ACTIVE-013", Scope: checks.Host, Link: checks.InHost, Modes: row.GPUDirect, Quick: true,
			Fixes:    []backends.Kind{backends.KindPassthrough, backends.KindActivePassthrough},
			Source:   "vSphere API, HostPciPassthruInfo",
			Criteria: "enabled and active / enabled, waits for a reboot / not enabled",
			Remedy:   "Enable passthrough, and reboot the host if it does not become active immediately.",
			Run: eachGPU(func(_ *checks.Facts, t backends.Ref, h *backends.Host, g *backends.GPU) checks.Answer {
				if !g.Enabled {
					return row.Fail(t, "GPU %s: passthrough is not enabled", g.PCI)
				}
				return row.WarnIf(!g.Active, t, "GPU %s: passthrough enabled %t, active %t", g.PCI, g.Enabled, g.Active)
			}),
		},
		{
			ID: "HOST-PT-FREE-014", Scope: checks.Host, Link: checks.InHost, Modes: row.GPUDirect, Quick: true, Fix: checks.Manual,
			Source:   "Broadcom KB 309986",
			Criteria: "free, or assigned to a selected VM / assigned to another VM that is off / assigned to another VM that runs",
			Remedy:   "Detach the device from the other VM.",
			Run: eachGPU(func(f *checks.Facts, t backends.Ref, h *backends.Host, g *backends.GPU) checks.Answer {
				v := f.Inventory.VM(g.UsedBy)
				found, _ := f.VMs()
				if g.UsedBy == "" || slices.Contains(found, v) {
					return row.Pass(t, "GPU %s is used by: %s", g.PCI, cmp.Or(g.UsedBy, "none"))
				}
				if v != nil && v.Power == "poweredOn" {
					return row.Fail(t, "GPU %s is used by %s, which runs", g.PCI, g.UsedBy)
				}
				return row.Warn(t, "GPU %s belongs to %s, which is off", g.PCI, g.UsedBy)
			}),
		},
		{
			ID: "HOST-PT-DEPEND-015", Scope: checks.Host, Link: checks.InBIOS, Modes: row.GPUDirect, Quick: true, Fix: checks.Manual,
			Source:   "vSphere API, HostPciPassthruInfo",
			Criteria: "the host does not use the other devices of the group / - / one of them carries the host's traffic",
			Remedy:   "Pass the whole dependency group through, or choose another slot.",
			Run: eachGPU(func(f *checks.Facts, t backends.Ref, h *backends.Host, g *backends.GPU) checks.Answer {
				i := slices.IndexFunc(h.PCI, func(d backends.PCIDevice) bool { return d.Address == g.PCI })
				if i < 0 {
					return row.Waiting(t, "GPU %s: its dependent devices were not read", g.PCI)
				}
				for _, other := range h.PCI[i].Dependents {
					for _, n := range h.NICs {
						if why := n.Usage(backends.PNICWish{Purpose: backends.WholeCard}); n.PCI == other && why != "" {
							return row.Fail(t, "GPU %s can only be passed through together with %s (%s), which %s", g.PCI, n.Device, other, why)
						}
					}
				}
				return row.Pass(t, "GPU %s can only be passed through together with: %s", g.PCI,
					cmp.Or(strings.Join(h.PCI[i].Dependents, ", "), "none"))
			}),
		},
		{
			ID: "HOST-GPU-ROOT-016", Scope: checks.Host, Link: checks.InBIOS, Modes: row.GPUDirect, Except: row.PVRDMA, Quick: true,
			Fix:      checks.Manual,
			Source:   "NVIDIA GPU Operator: GPUDirect RDMA",
			Criteria: "GPU and NIC under one switch or root port / one root complex, or only some of the GPUs / different ones",
			Remedy:   "Move the card to another slot: peer-to-peer does not work across root complexes, whatever the settings.",
			Run:      row.EachHost(topology),
		},
		{
			ID: "HOST-GPU-ATS-017", Scope: checks.Host, Link: checks.InFirmware, Modes: row.GPUDirect, Except: row.PVRDMA, Fix: checks.Reboot,
			Source:   "NVIDIA AI Enterprise, Optimizing VM Configuration for AI Inference, Appendix, ATS and ACS configuration",
			Criteria: "ATS_ENABLED is on, or the card has no such key / off / -",
			Remedy:   "Set ATS_ENABLED and reboot the host.",
			Run: row.HostCall(func(f *checks.Facts, t backends.Ref, h *backends.Host, sys *backends.HostSystem) checks.Answer {
				at := f.HCA(h)
				card, read := sys.Firmware[nic.CardAddress(at)]
				if !read {
					return row.Waiting(t, "the firmware of NIC %s was not read: this needs the ESXi shell and MFT (check --esxi-shell)",
						cmp.Or(at, "none"))
				}
				key := nic.ATSKey()
				v, has := card.Current[key]
				return row.WarnIf(has && !row.IsTrue(v), t, "NIC %s: %s is %s", at, key, cmp.Or(v, "none"))
			}),
		},
		{
			ID: "HOST-GPU-GFX-018", Scope: checks.Host, Link: checks.InHost, Modes: row.GPUDirect, Quick: true, Fix: checks.Reboot, Unverified: true,
			Source: "NVIDIA AI Enterprise User Guide, Changing the Default Graphics Type in VMware vSphere; that whole GPUs need another type " +
				"is unverified",
			Criteria: "default graphics type shared, as needed for passthrough, or sharedDirect and active, as needed for vGPUs / - / the other one",
			Remedy:   "Set the default graphics type of the host to Shared for whole GPUs, to Shared Direct for vGPUs, and reboot the host.",
			Run: row.EachHost(func(f *checks.Facts, t backends.Ref, h *backends.Host) checks.Answer {
				if h.GraphicsType == "" {
					return row.Waiting(t, "the default graphics type was not read")
				}
				if f.VGPUHost(h) {
					return row.PassIf(h.GraphicsType == backends.SharedDirect && h.ServesVGPUs(), t, "default graphics type %s, serves vGPUs now: %t",
						h.GraphicsType, h.ServesVGPUs())
				}
				return row.PassIf(h.GraphicsType != backends.SharedDirect, t, "default graphics type %s", h.GraphicsType)
			}),
		},
		{
			ID: "HOST-VGPUMGR-019", Scope: checks.Host, Link: checks.InHost, Modes: row.GPUDirect, Fix: checks.Manual,
			Source:   "NVIDIA AI Enterprise User Guide, Installing and Configuring the NVIDIA Virtual GPU Manager for VMware vSphere",
			Criteria: "the NVIDIA vGPU Manager is installed and offers profiles, or no VM has vGPUs / installed without profiles / not installed",
			Remedy: "Install the NVIDIA vGPU Manager (gpudirect.manager, an image or a component of vSphere Lifecycle Manager, or esxcli software " +
				"component apply), " +
				"enable SR-IOV and VT-d or IOMMU in the BIOS, and reboot the host.",
			Run: row.HostCall(func(f *checks.Facts, t backends.Ref, h *backends.Host, sys *backends.HostSystem) checks.Answer {
				name, v := backends.VGPUManager(sys.VIBs.Value)
				switch {
				case !f.VGPUHost(h):
					return row.Pass(t, "no selected VM has a vGPU")
				case !sys.VIBs.Known():
					return row.Unread(t, "the list of VIBs", sys.VIBs)
				case name == "":
					return row.Fail(t, "no VIB NVD-* or NVIDIA-* is installed")
				}
				return row.WarnIf(len(h.Profiles) == 0, t, "%s %s is installed; the host offers %d profiles", name, v.Version, len(h.Profiles))
			}),
		},
	}
}

// eachGPU evaluates the GPUs that selected VMs have or should have; if none are named, the best answer of a host counts, because
// one good GPU is enough.
func eachGPU(ask func(f *checks.Facts, t backends.Ref, h *backends.Host,
	g *backends.GPU) checks.Answer) func(*checks.Facts) []checks.Answer {
	return func(f *checks.Facts) []checks.Answer {
		var out []checks.Answer
		for _, h := range f.Connected() {
			list, chosen := f.GPUs(h)
			if !chosen && f.VGPUHost(h) {
				continue
			}
			all := backends.Each(list, func(g *backends.GPU) checks.Answer { return ask(f, backends.HostRef(h.Name), h, g) })
			switch {
			case len(all) == 0:
				out = append(out, row.Fail(backends.HostRef(h.Name), "the host has no GPU that can be passed through"))
			case chosen:
				out = append(out, all...)
			default:
				out = append(out, best(all))
			}
		}
		return out
	}
}

func best(all []checks.Answer) checks.Answer {
	order := []checks.Status{checks.Pass, checks.Warn, checks.Unknown, checks.Fail}
	return slices.MinFunc(all, func(a, b checks.Answer) int { return slices.Index(order, a.Status) - slices.Index(order, b.Status) })
}

func topology(f *checks.Facts, t backends.Ref, h *backends.Host) checks.Answer {
	nic := f.HCA(h)
	path := h.Bridges(nic)
	switch {
	case nic == "":
		return row.Waiting(t, "the host has no RDMA card to be near to")
	case len(path) == 0:
		return row.Waiting(t, "vCenter reports no PCI path of NIC %s", nic)
	}
	list, chosen := f.NearGPUs(h)
	var all []checks.Answer
	for _, g := range list {
		switch near, shared := backends.Near(g.Path(), path); near.PeerToPeer() {
		case "yes":
			all = append(all, row.Pass(t, "GPU %s and NIC %s are both below %s (%s)", g.PCI, nic, shared, near))
		case "unknown":
			all = append(all, row.Waiting(t, "the PCI path of GPU %s is not known", g.PCI))
		case "doubtful":
			all = append(all, row.Warn(t, "GPU %s is below %s, NIC %s below %s of the same root complex", g.PCI, g.RootPort, nic, path[len(path)-1]))
		default:
			all = append(all, row.Fail(t, "GPU %s is below %s, NIC %s below %s", g.PCI, g.RootPort, nic, path[len(path)-1]))
		}
	}
	switch {
	case len(all) == 0:
		return checks.Answer{}
	case !chosen:
		return best(all)
	}
	worst := slices.MaxFunc(all, func(a, b checks.Answer) int { return a.Status.Weight() - b.Status.Weight() })
	if worst.Status == checks.Fail && slices.ContainsFunc(all, func(a checks.Answer) bool { return a.Status == checks.Pass }) {
		worst.Status = checks.Warn // another GPU of the host is near
	}
	return worst
}
