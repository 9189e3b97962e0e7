// Package guest contains the rows about guests and about the path between two of them.
package guest

import (
	"cmp"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/assets"
	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/nic"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/row"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// Checks returns the rows of guests.
func Checks() []checks.Check {
	return slices.Concat(guestChecks(), guestNetChecks(), guestTestChecks(), guestDeviceChecks())
}

// guestChecks examine the system in the guests: driver, rights, packages, modules.
func guestChecks() []checks.Check {
	return []checks.Check{
		{
			ID: "GST-OS-001", Scope: checks.Guest, Link: checks.InGuest, Preflight: true, Fix: checks.Manual,
			Source:   "vSphere Virtual Machine Administration 6.5, p. 110",
			Criteria: "the kernel has the driver / - / no driver",
			Remedy:   "Install a kernel that has the driver; the kernel version alone does not matter.",
			Run: eachGuest(func(f *checks.Facts, t backends.Ref, g *backends.Guest) checks.Answer {
				module := "mlx5_core"
				if f.Answers.Mode == answers.PVRDMA {
					module = backends.PVRDMAModule
				}
				ok := slices.Contains(g.Available, module) || slices.Contains(g.Loaded, module)
				if !ok && g.Available == nil {
					return row.Waiting(t, "%s, kernel %s: whether it has the module %s was not read (modinfo is not in the PATH)", g.Pretty,
						g.Kernel, module)
				}
				a := row.PassIf(ok, t, "%s, kernel %s: module %s %s", g.Pretty, g.Kernel, module,
					map[bool]string{true: "there", false: "not found"}[ok])
				if module == backends.PVRDMAModule {
					remedy := assets.DriverRemedy(module, g.Kernel, g.OS, g.Version, g.Like)
					a.Remedy = strings.ToUpper(remedy[:1]) + remedy[1:] + "."
				}
				return a
			}),
		},
		{
			ID: "GST-SUDO-002", Scope: checks.Guest, Link: checks.InGuest, Preflight: true, Fix: checks.Manual, Source: "ours",
			Criteria: "root, or sudo / - / no", Remedy: "Provide sudo rights, or give the sudo password (RDMA_SETUP_SUDO_PASSWORD).",
			Run: eachGuest(func(_ *checks.Facts, t backends.Ref, g *backends.Guest) checks.Answer {
				return row.PassIf(g.Sudo != "none" && g.Sudo != "", t, "sudo for %s: %s", g.User, cmp.Or(g.Sudo, "none"))
			}),
		},
		{
			ID: "GST-LSPCI-003", Scope: checks.Guest, Link: checks.InGuest, Modes: row.PVRDMA, Fixes: []backends.Kind{backends.KindAdapter},
			Source:   "vmw_pvrdma driver; ansible-vsphere-gos-validation issue 115",
			Criteria: "an RDMA controller (15ad:0820) next to its vmxnet3 function / - / missing", Remedy: "Add the adapter, or power-cycle the VM.",
			Run: eachGuest(listed(func(t backends.Ref, g *backends.Guest) checks.Answer {
				for _, d := range g.PCI {
					vmxnet3 := nic.CardAddress(d.Address)
					if d.Vendor == "15ad" && d.Device == "0820" {
						ok := slices.ContainsFunc(g.PCI, func(o backends.GuestDevice) bool { return o.Address == vmxnet3 && o.Device == "07b0" })
						return row.PassIf(ok, t, "RDMA controller at %s, vmxnet3 at %s: %t", d.Address, vmxnet3, ok)
					}
				}
				return row.Fail(t, "lspci lists no device 15ad:0820")
			})),
		},
		{
			ID: "GST-LSPCI-VF-004", Scope: checks.Guest, Link: checks.InGuest, Modes: row.SRIOV, Fixes: []backends.Kind{backends.KindAdapter},
			Source:   row.SRIOVStudy,
			Criteria: "a Mellanox virtual function / - / none", Remedy: "Check that the VF was assigned.",
			Run: eachGuest(listed(func(t backends.Ref, g *backends.Guest) checks.Answer {
				for _, d := range g.PCI {
					if d.Vendor == "15b3" && strings.Contains(d.Name, "Virtual Function") {
						return row.Pass(t, "%s at %s", d.Name, d.Address)
					}
				}
				return row.Fail(t, "lspci lists no virtual function of vendor 15b3")
			})),
		},
		{
			ID: "GST-NVSMI-027", Scope: checks.Guest, Link: checks.InGuest, Modes: row.GPUDirect, Fix: checks.Manual, Source: row.GPUDirectGuide,
			Criteria: "nvidia-smi lists every GPU of the VM / - / some are missing", Remedy: "Install the driver, or fix the MMIO keys.",
			Run: eachGuest(func(f *checks.Facts, t backends.Ref, g *backends.Guest) checks.Answer {
				want := 0
				if g.NVIDIA == nil {
					if i := slices.IndexFunc(g.PCI, func(d backends.GuestDevice) bool { return d.Vendor == "10de" }); i >= 0 {
						if slices.Contains(g.Loaded, "nouveau") {
							return row.Fail(t, "nouveau drives %s at %s, and there is no NVIDIA driver", g.PCI[i].Name, g.PCI[i].Address)
						}
						return row.Fail(t, "lspci lists %s at %s, and there is no NVIDIA driver", g.PCI[i].Name, g.PCI[i].Address)
					}
					return noDriver(t, g)
				}
				if v := f.Inventory.VM(g.VM); v != nil {
					want = len(f.GPUsOf(v)) + len(v.VGPUProfiles())
				}
				if g.NVIDIA.Error != "" {
					return row.Fail(t, "nvidia-smi: %s", g.NVIDIA.Error)
				}
				return row.PassIf(len(g.NVIDIA.GPUs) >= max(1, want), t, "nvidia-smi lists %d GPUs, the VM has %d", len(g.NVIDIA.GPUs), want)
			}),
		},
		{
			ID: "GST-PKG-005", Scope: checks.Guest, Link: checks.InGuest, Modes: row.PVRDMA, Fixes: []backends.Kind{backends.KindPackages},
			Source:   row.BitfusionGuide + ", Create a Bitfusion client",
			Criteria: "all packages / an optional one missing / a required one missing", Remedy: "Install the packages.",
			Run: eachGuest(packages),
		},
		{
			ID: "GST-MOFED-006", Scope: checks.Guest, Link: checks.InGuest, Modes: row.PVRDMA, Preflight: true, Fix: checks.Manual,
			Source:   row.BitfusionGuide + ", NGC container",
			Criteria: "no MLNX_OFED / - / present",
			Remedy:   "Remove MLNX_OFED, which has no PVRDMA provider, and install the distribution's rdma-core.",
			Run: eachGuest(func(_ *checks.Facts, t backends.Ref, g *backends.Guest) checks.Answer {
				return row.PassIf(g.MOFED == "", t, "MLNX_OFED %s", cmp.Or(g.MOFED, "none"))
			}),
		},
		{
			ID: "GST-MOD-007", Scope: checks.Guest, Link: checks.InGuest, Modes: row.PVRDMA, Fixes: []backends.Kind{backends.KindModules},
			Source:   row.BitfusionGuide,
			Criteria: "ib_umad rdma_cm rdma_ucm vmw_pvrdma loaded / an optional one missing / vmw_pvrdma missing",
			Remedy:   "Load the modules in order, vmw_pvrdma last.",
			Run: eachGuest(func(_ *checks.Facts, t backends.Ref, g *backends.Guest) checks.Answer {
				missing := notLoaded(g, "ib_umad", "rdma_cm", "rdma_ucm", "vmw_pvrdma")
				if slices.Contains(missing, "vmw_pvrdma") {
					return row.Fail(t, "not loaded: %s", strings.Join(missing, ", "))
				}
				return row.WarnIf(len(missing) > 0, t, "not loaded: %s", cmp.Or(strings.Join(missing, ", "), "none"))
			}),
		},
		{
			ID: "GST-MOD-S-008", Scope: checks.Guest, Link: checks.InGuest, Modes: row.Direct, Except: row.PVRDMA,
			Fixes:    []backends.Kind{backends.KindModules},
			Source:   row.SRIOVStudy,
			Criteria: "mlx5_core mlx5_ib ib_uverbs rdma_cm loaded / - / one missing", Remedy: "Install or load the driver.",
			Run: eachGuest(func(_ *checks.Facts, t backends.Ref, g *backends.Guest) checks.Answer {
				missing := notLoaded(g, "mlx5_core", "mlx5_ib", "ib_uverbs", "rdma_cm")
				return row.PassIf(len(missing) == 0, t, "not loaded: %s", cmp.Or(strings.Join(missing, ", "), "none"))
			}),
		},
		{
			ID: "GST-PERSIST-009", Scope: checks.Guest, Link: checks.InGuest, Modes: row.PVRDMA, Fixes: []backends.Kind{backends.KindPersist},
			Source:   row.BitfusionGuide + ", known issue of Ubuntu",
			Criteria: "modules are loaded at boot, and a unit reloads vmw_pvrdma if the distribution needs it; or guest.persist is off / - / no",
			Remedy:   "Enable the unit that loads the driver again.",
			Run: eachGuest(func(f *checks.Facts, t backends.Ref, g *backends.Guest) checks.Answer {
				d, known := assets.DistroFor(g.OS, g.Version, g.Like)
				ok := !known || !d.Reload || g.Persist.Reload == "vmw_pvrdma"
				persist := f.GuestOf(g.VM).Persist
				return row.PassIf(ok || !persist, t, "modules-load.d has %s, reloaded at boot: %s; guest.persist is %t",
					cmp.Or(strings.Join(g.Persist.Modules, " "), "none"), cmp.Or(g.Persist.Reload, "none"), persist)
			}),
		},
	}
}

// listed answers for guests whose lspci was read.
func listed(ask func(t backends.Ref, g *backends.Guest) checks.Answer) func(*checks.Facts, backends.Ref, *backends.Guest) checks.Answer {
	return func(_ *checks.Facts, t backends.Ref, g *backends.Guest) checks.Answer {
		if g.PCI == nil {
			return row.Waiting(t, "lspci was not read")
		}
		return ask(t, g)
	}
}

func notLoaded(g *backends.Guest, modules ...string) []string {
	return slices.DeleteFunc(modules, func(m string) bool { return slices.Contains(g.Loaded, m) })
}

// packages compares the installed packages with the list for the distribution. Interactive tools are optional.
func packages(f *checks.Facts, t backends.Ref, g *backends.Guest) checks.Answer {
	d, known := assets.DistroFor(g.OS, g.Version, g.Like)
	if known && g.Packages == nil {
		return row.Unknown(t, "its packages cannot be read: the package manager does not answer")
	}
	if !known {
		return row.Waiting(t, "no list of packages is known for %s %s", cmp.Or(g.OS, "none"), g.Version)
	}
	var missing, tools []string
	for _, p := range d.Packages {
		if _, has := g.Packages[p]; has {
			continue
		}
		if strings.HasSuffix(p, "-utils") || strings.HasSuffix(p, "-diags") {
			tools = append(tools, p)
		} else {
			missing = append(missing, p)
		}
	}
	if len(missing) > 0 {
		return row.Fail(t, "not installed: %s", strings.Join(append(missing, tools...), ", "))
	}
	return row.WarnIf(len(tools) > 0, t, "not installed: %s", cmp.Or(strings.Join(tools, ", "), "none"))
}
