package vcenter

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/nic"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/row"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// clusterChecks compare the hosts with each other.
func clusterChecks() []checks.Check {
	return []checks.Check{
		{
			ID: "CL-HOSTS-001", Scope: checks.Cluster, Link: checks.InHost, Quick: true, Preflight: true, Fix: checks.Manual,
			Source:   row.BitfusionGuide,
			Criteria: ">= 2 connected hosts that are not in maintenance / 1 / 0",
			Remedy:   "Select at least two hosts: a test needs a pair.",
			Run: func(f *checks.Facts) []checks.Answer {
				n := 0
				for _, h := range f.Connected() {
					if !h.InMaintenance {
						n++
					}
				}
				switch n {
				case 0:
					return []checks.Answer{row.Fail(f.ClusterRef(), "no selected host is connected and out of maintenance")}
				case 1:
					return []checks.Answer{row.Warn(f.ClusterRef(), "only one usable host: nothing can be measured over the fabric")}
				}
				return []checks.Answer{row.Pass(f.ClusterRef(), "%d usable hosts", n)}
			},
		},
		compare("CL-VER-002", checks.InHost, "same ESXi version and build", "Install the same ESXi build on all hosts.",
			row.KubernetesGuide, checks.Manual, "ESXi", func(_ *checks.Facts, h *backends.Host) string {
				return h.Version + " build " + h.Build
			}),
		compare("CL-CPU-003", checks.InBIOS, "same CPU model, sockets, cores",
			"Use hosts with the same CPUs, or expect results that differ between pairs.",
			row.KubernetesGuide, checks.NoFix, "CPU", func(_ *checks.Facts, h *backends.Host) string {
				return fmt.Sprintf("%s, %d sockets, %d cores", h.CPUModel, h.Sockets, h.Cores)
			}),
		compareNIC("CL-NIC-004", checks.InBIOS, "same RDMA NIC model", "Use identical adapters.", row.KubernetesGuide, checks.Manual, "NIC",
			func(n *backends.NIC) string {
				return n.Vendor + ":" + n.PCIDeviceID
			}),
		compareNIC("CL-FW-005", checks.InFirmware, "same NIC firmware", "Update the NICs to the same firmware version.",
			row.SRIOVStudy+", "+row.KubernetesGuide, checks.Manual,
			"firmware", func(n *backends.NIC) string { return n.Firmware }),
		compareNIC("CL-DRV-006", checks.InDriver, "same NIC driver and version", "Install the same driver component.", row.KubernetesGuide,
			checks.Reboot, "driver", func(n *backends.NIC) string {
				return strings.TrimSpace(n.Driver + " " + n.DriverVersion)
			}),
		compare("CL-SLOT-007", checks.InBIOS, "same PCI address and NUMA node of the NIC and, for GPUDirect, of the GPUs",
			"Move cards to the same slots.",
			row.KubernetesGuide+", Host Configuration", checks.Manual, "slot", slots),
		{
			ID: "CL-GPU-008", Scope: checks.Cluster, Link: checks.InBIOS, Modes: row.GPUDirect, Quick: true, Fix: checks.Manual,
			Source:   row.KubernetesGuide,
			Criteria: "same GPU models and number / differs / -", Remedy: "Use identical GPUs.",
			Run: func(f *checks.Facts) []checks.Answer {
				return same(f, "GPUs", func(h *backends.Host) string {
					models := backends.Each(h.GPUs, func(g backends.GPU) string { return g.Model })
					slices.Sort(models)
					return cmp.Or(strings.Join(models, ", "), "none")
				})
			},
		},
		{
			ID: "CL-PARAM-009", Scope: checks.Cluster, Link: checks.InDriver, Modes: row.OnDVS, Quick: true, HostCall: true, Fix: checks.Reboot,
			Source:   row.SRIOVStudy + "; Mellanox DOC-2581",
			Criteria: "same driver parameters / max_vfs differs / PFC, trust or ECN differ", Remedy: "Apply the same parameters on all hosts.",
			Run: sameParameters,
		},
		compare("CL-POWER-010", checks.InHost, "same power policy", "Set High Performance everywhere.", row.SRIOVStudy, checks.Manual,
			"power policy",
			func(_ *checks.Facts, h *backends.Host) string { return h.PowerPolicy }),
		{
			ID: "CL-PCIE-016", Scope: checks.Cluster, Link: checks.InBIOS, Quick: true, HostCall: true, Fix: checks.Manual,
			Source:   row.KubernetesGuide + ", Host Configuration; NVIDIA, MFT documentation: mlxlink",
			Criteria: "same PCIe generation and lanes of the NIC / differs / -",
			Remedy:   "Move the card to the same slot as on the other hosts, or reseat it.",
			Run: func(f *checks.Facts) []checks.Answer {
				out := same(f, "PCIe link", func(h *backends.Host) string { return pcieLink(f, h) })
				if out == nil && slices.ContainsFunc(f.Connected(), func(h *backends.Host) bool { return f.NIC(h) != nil }) {
					return []checks.Answer{row.Waiting(f.ClusterRef(), "the PCIe links were not read: this needs the ESXi shell and MFT (check "+
						"--esxi-shell)")}
				}
				return out
			},
		},
	}
}

// pcieLink returns the PCIe link of the RDMA pNIC's card, "" if the firmware tools were not queried.
func pcieLink(f *checks.Facts, h *backends.Host) string {
	n := f.NIC(h)
	if n == nil || h.System == nil {
		return ""
	}
	s := h.System.Firmware[nic.CardAddress(n.PCI)].Slot
	if s.Gen == 0 || s.Lanes == 0 {
		return ""
	}
	return fmt.Sprintf("Gen%d x%d", s.Gen, s.Lanes)
}

// compare returns a row that warns if a host differs from the majority.
func compare(id string, link checks.LinkName, criteria, remedy, source string, fix checks.Fix, what string,
	of func(*checks.Facts, *backends.Host) string) checks.Check {
	return checks.Check{
		ID: id, Scope: checks.Cluster, Link: link, Quick: true, Fix: fix, Source: source, Criteria: criteria + " / differs / -", Remedy: remedy,
		Run: func(f *checks.Facts) []checks.Answer {
			return same(f, what, func(h *backends.Host) string { return of(f, h) })
		},
	}
}

// compareNIC is the same for the RDMA pNIC; hosts without one have their own row.
func compareNIC(id string, link checks.LinkName, criteria, remedy, source string, fix checks.Fix, what string,
	of func(*backends.NIC) string) checks.Check {
	return compare(id, link, criteria, remedy, source, fix, what, func(f *checks.Facts, h *backends.Host) string {
		if n := f.NIC(h); n != nil {
			return of(n)
		}
		return ""
	})
}

func slots(f *checks.Facts, h *backends.Host) string {
	var out []string
	if n := f.NIC(h); n != nil {
		out = append(out, fmt.Sprintf("NIC %s on node %d", n.PCI, n.NUMA))
	}
	if list, _ := f.GPUs(h); f.Answers.GPUs() {
		if len(f.Rails()) > 1 { // which VMs have them differs between rails
			list = nil
			for i := range h.GPUs {
				list = append(list, &h.GPUs[i])
			}
		}
		for _, g := range list {
			out = append(out, fmt.Sprintf("GPU %s on node %d", g.PCI, g.NUMA))
		}
	}
	return strings.Join(out, ", ")
}

// same compares a value over hosts and returns which differ from the majority; hosts with unknown values are left out.
func same(f *checks.Facts, what string, of func(*backends.Host) string) []checks.Answer {
	count, all := map[string]int{}, 0
	for _, h := range f.Connected() {
		if v := of(h); v != "" {
			count[v]++
			all++
		}
	}
	most := ""
	for v, n := range count {
		if n > count[most] || n == count[most] && v < most {
			most = v
		}
	}
	who := "most"
	if 2*count[most] <= all {
		who = "others"
	}
	var out []checks.Answer
	for _, h := range f.Connected() {
		if v := of(h); v != "" {
			out = append(out, row.WarnIf(v != most, backends.HostRef(h.Name), "%s %s, %s have %s", what, v, who, most))
		}
	}
	return out
}

// sameParameters compares the parameters of the drivers' modules, except lists of VFs.
func sameParameters(f *checks.Facts) []checks.Answer {
	told := func(h *backends.Host, vfs bool) string {
		if !nic.Read(h.System) {
			return ""
		}
		var out []string
		for module, m := range h.System.Modules {
			for name, v := range m.Value.Params {
				if v = strings.ReplaceAll(strings.Trim(v, `" `), " ", ""); v != "" && nic.IsVFParam(module, name) == vfs {
					out = append(out, fmt.Sprintf("%s:%s=%s", module, name, v))
				}
			}
		}
		slices.Sort(out)
		return cmp.Or(strings.Join(out, " "), "none")
	}
	rest := same(f, "parameters", func(h *backends.Host) string { return told(h, false) })
	vfs := same(f, "list of VFs", func(h *backends.Host) string { return told(h, true) })
	if !alikePorts(f) {
		vfs = same(f, "VFs of the RDMA pNIC", func(h *backends.Host) string { return ownVFs(f, h, told(h, true)) })
	}
	if len(rest) == 0 {
		return []checks.Answer{row.Waiting(f.ClusterRef(), "the module parameters of no host were read")}
	}
	for i := range rest {
		switch {
		case rest[i].Status == checks.Warn && f.Answers.QoS.Lossless == answers.LosslessPFC:
			rest[i].Status = checks.Fail
		case rest[i].Status == checks.Pass && vfs[i].Status == checks.Warn:
			rest[i] = vfs[i]
		}
	}
	return rest
}

// alikePorts reports whether the RDMA pNIC has the same position among equally many ports of its driver on every host. If not,
// equivalent lists of VFs look different.
func alikePorts(f *checks.Facts) bool {
	layouts := map[[2]int]bool{}
	for _, h := range f.Connected() {
		if n := f.NIC(h); n != nil && nic.Of(n.Driver) != nil {
			ports := nic.Addresses(h, nic.Of(n.Driver))
			layouts[[2]int{slices.Index(ports, n.PCI), len(ports)}] = true
		}
	}
	return len(layouts) < 2
}

// ownVFs returns the list's entry for the RDMA pNIC; list is the whole list for display, "" if it was not read.
func ownVFs(f *checks.Facts, h *backends.Host, list string) string {
	n := f.NIC(h)
	if list == "" || n == nil {
		return list
	}
	family := nic.Of(n.Driver)
	if family == nil {
		return "0"
	}
	entries := strings.Split(nic.VFParam(h.System, family), ",")
	if at := slices.Index(nic.Addresses(h, family), n.PCI); at >= 0 && at < len(entries) && entries[at] != "" {
		return strings.TrimSpace(entries[at])
	}
	return "0"
}
