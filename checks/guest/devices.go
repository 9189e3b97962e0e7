package guest

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/row"
)

// guestDeviceChecks examine GPUs, the kernel log, containers and modules built in the guest.
func guestDeviceChecks() []checks.Check {
	return []checks.Check{
		{
			ID: "GST-VGPULIC-038", Scope: checks.Guest, Link: checks.InGuest, Modes: row.GPUDirect, Fix: checks.Manual,
			Source: "NVIDIA AI Enterprise User Guide, Configuring a Licensed Client of NVIDIA License System",
			Criteria: "each vGPU is licensed / the license status is not reported, or the initial unlicensed period has not ended / a vGPU has no " +
				"license, and is slowed down",
			Remedy: "Put the client configuration token (client_configuration_token_*.tok) into /etc/nvidia/ClientConfigToken, set FeatureType=1 " +
				"in /etc/nvidia/gridd.conf, " +
				"allow the guest to reach the license server (TCP 443 and 80; firewalls, DNS, routes), and restart nvidia-gridd.",
			Run: eachGuest(smi(func(_ *checks.Facts, t backends.Ref, g *backends.Guest) checks.Answer {
				for _, d := range g.NVIDIA.Devices {
					switch {
					case !d.VGPU:
					case d.License == "":
						return row.Warn(t, "%s: nvidia-smi -q reports no license status: the driver may not be the vGPU guest driver", d.Name)
					case d.Unlicensed():
						return row.Fail(t, "%s: license status %s; %s", d.Name, d.License, licenseServers(g.NVIDIA))
					case !strings.HasPrefix(d.License, "Licensed"):
						return row.Warn(t, "%s: license status %s: the initial unlicensed period has not ended; %s", d.Name, d.License,
							licenseServers(g.NVIDIA))
					}
				}
				return row.Pass(t, "%d GPUs, no vGPU without a license", len(g.NVIDIA.Devices))
			})),
		},
		{
			ID: "GST-PERSIST-039", Scope: checks.Guest, Link: checks.InGuest, Modes: row.GPUDirect,
			Fixes:    []backends.Kind{backends.KindGPUPersist},
			Source:   "NVIDIA, Driver Persistence, Persistence Daemon",
			Criteria: "persistence mode is on for each GPU / off / -",
			Remedy: "Name the driver's packages or .run file in gpudirect.driver, so that the run sets the mode, also at boot; " +
				"or start nvidia-persistenced at boot without the option --no-persistence-mode.",
			Run: eachGuest(smi(func(_ *checks.Facts, t backends.Ref, g *backends.Guest) checks.Answer {
				told := 0
				for _, d := range g.NVIDIA.Devices {
					if d.Persistent != nil && !*d.Persistent {
						return row.Warn(t, "%s: persistence mode is off: the driver initializes the GPU anew for each first client", d.Name)
					}
					if d.Persistent != nil {
						told++
					}
				}
				if told == 0 {
					return row.Waiting(t, "nvidia-smi -q does not report persistence mode")
				}
				return row.Pass(t, "persistence mode is on")
			})),
		},
		{
			ID: "GST-GPUP2P-040", Scope: checks.Guest, Link: checks.InGuest, Modes: row.GPUDirect, Fix: checks.Manual,
			Source:   "NVIDIA AI Enterprise, Peer-To-Peer (P2P) CUDA Transfers",
			Criteria: "nvidia-smi topo -p2p r says OK for each pair of GPUs / another status / -",
			Remedy: "For whole GPUs, set pciPassthru.allowP2P and pciPassthru.RelaxACSforP2P, and use GPUs below one PCIe switch; vGPUs reach " +
				"each other over NVLink only, " +
				"if they are time-sliced, have the whole memory of a GPU and are in one vendor device group.",
			Run: eachGuest(smi(func(_ *checks.Facts, t backends.Ref, g *backends.Guest) checks.Answer {
				n := len(g.NVIDIA.Devices)
				if n < 2 {
					return row.Pass(t, "%d GPUs: there is no pair", n)
				}
				if len(g.NVIDIA.P2P) == 0 {
					return row.Waiting(t, "nvidia-smi topo -p2p r reports nothing")
				}
				for _, pair := range slices.Sorted(maps.Keys(g.NVIDIA.P2P)) {
					if status := g.NVIDIA.P2P[pair]; status != "OK" {
						return row.Warn(t, "%s: %s: data between these GPUs goes through the guest's memory", pair, cmp.Or(p2pStatus[status], status))
					}
				}
				return row.Pass(t, "%d pairs of GPUs can read each other's memory", len(g.NVIDIA.P2P))
			})),
		},
		{
			ID: "GST-VGPUDRV-041", Scope: checks.Guest, Link: checks.InGuest, Modes: row.GPUDirect, Fix: checks.Manual,
			Source: "NVIDIA, Virtual GPU Software R580 for VMware vSphere Release Notes, Compatibility Requirements for the NVIDIA vGPU Manager " +
				"and Guest VM Driver; " +
				"NVIDIA GPU Operator: NVIDIA AI Enterprise",
			Criteria: "the guest has the vGPU guest driver of the branch of the host's vGPU Manager, or no vGPU / of an older branch / of a newer " +
				"one, or a driver for whole GPUs: " +
				"these cannot use the vGPU",
			Remedy: "Install the vGPU guest driver of the release of the host's vGPU Manager: the driver of the previous branch works too, a " +
				"newer one does not.",
			Run: eachGuest(nvidia(vgpuDriver)),
		},
		{
			ID: "GST-PEERMEM-028", Scope: checks.Guest, Link: checks.InGuest, Modes: row.GPUDirect, Except: row.PVRDMA, Fix: checks.Manual,
			Source:   row.ScalingGuide + "; NVIDIA GPU Operator: GPUDirect RDMA",
			Criteria: "nvidia_peermem, nv_peer_mem or DMA-BUF / both modules / none",
			Remedy:   "Load nvidia-peermem; MLNX_OFED must be installed before the NVIDIA driver.",
			Run: eachGuest(nvidia(func(_ *checks.Facts, t backends.Ref, g *backends.Guest) checks.Answer {
				if slices.Contains(g.Loaded, "nvidia_peermem") && slices.Contains(g.Loaded, "nv_peer_mem") {
					return row.Warn(t, "nvidia_peermem and nv_peer_mem are both loaded; remove nvidia-peer-memory-dkms")
				}
				return row.PassIf(g.NVIDIA.Peermem != "" || g.NVIDIA.DMABuf, t, "peer memory module %s, DMA-BUF %t", cmp.Or(g.NVIDIA.Peermem, "none"),
					g.NVIDIA.DMABuf)
			})),
		},
		{
			ID: "GST-PVLSPCI-050", Scope: checks.Guest, Link: checks.InGuest, Modes: row.PVRDMA, Fixes: []backends.Kind{backends.KindAdapter},
			Source:   "ESX-LISA (rdma_boot_check)",
			Criteria: "lspci names the VMware Paravirtual RDMA controller / - / no",
			Remedy:   "Attach the PVRDMA adapter, or check that the hardware version is 13 or later.",
			Run: eachGuest(listed(func(t backends.Ref, g *backends.Guest) checks.Answer {
				for _, d := range g.PCI {
					if strings.Contains(d.Name, "Paravirtual RDMA") || d.Vendor == "15ad" && d.Device == "0820" {
						return row.Pass(t, "%s at %s", d.Name, d.Address)
					}
				}
				return row.Fail(t, "lspci names no Paravirtual RDMA controller")
			})),
		},
		{
			ID: "GST-DMESG-051", Scope: checks.Guest, Link: checks.InGuest, Fix: checks.Manual, Source: "ESX-LISA (rdma_reload_vmx_pvrdma)",
			Criteria: "no Call Trace and no driver that failed since boot / - / some",
			Remedy:   "Collect the kernel log and stop; do not reload modules again.",
			Run: eachGuest(func(_ *checks.Facts, t backends.Ref, g *backends.Guest) checks.Answer {
				if g.KernelLog == nil {
					return row.Waiting(t, "the kernel log could not be read: sudo for %s: %s", g.User, cmp.Or(g.Sudo, "none"))
				}
				for _, line := range g.KernelLog {
					if !rejected(line) {
						return row.Fail(t, "kernel log: %s", line)
					}
				}
				return row.Pass(t, "no such message since boot")
			}),
		},
		{
			ID: "GST-TOPO-029", Scope: checks.Guest, Link: checks.InGuest, Modes: row.GPUDirect, Except: row.PVRDMA, Fix: checks.Manual,
			Source:   "NCCL documentation, Environment Variables, NCCL_NET_GDR_LEVEL",
			Criteria: "NIC and GPU at PIX or PXB, or at PHB and below one root port of the host / PHB / NODE or SYS",
			Remedy:   "Place NIC and GPU below one PCIe switch.",
			Run: eachGuest(nvidia(func(f *checks.Facts, t backends.Ref, g *backends.Guest) checks.Answer {
				order := []string{"PIX", "PXB", "PHB", "NODE", "SYS"}
				best := len(order)
				for _, c := range g.NVIDIA.Topology {
					if i := slices.Index(order, c); i >= 0 {
						best = min(best, i)
					}
				}
				if best == len(order) {
					return row.Waiting(t, "nvidia-smi topo -m was not read, or has no NIC")
				}
				// A VM's own PCI tree hardly ever shows a closer path than PHB; the host's tree shows the real one.
				if shared := f.SharedBridge(g.VM); order[best] == "PHB" && shared != "" {
					return row.Pass(t, "the nearest NIC and GPU are at PHB, which is all that a VM sees; on the host both are below %s", shared)
				}
				if v := f.Inventory.VM(g.VM); order[best] == "PHB" && v != nil && len(v.VGPUProfiles()) > 0 {
					return row.Waiting(t, "the nearest NIC and vGPU are at PHB, which is all that a VM sees; vCenter does not report which GPU "+
						"the vGPU uses")
				}
				return row.Grade(float64(best), 1, 2, t, "the nearest NIC and GPU are at %s", order[best])
			})),
		},
		{
			ID: "GST-CONTAINER-030", Scope: checks.Guest, Link: checks.InGuest, Modes: row.PVRDMA, Fixes: []backends.Kind{backends.KindImage},
			Source: row.BitfusionGuide + ", NGC container",
			Criteria: "the image in the answers exists and supports PVRDMA, and no container has MLNX_OFED's libraries / - / missing, or without " +
				"the PVRDMA provider",
			Remedy: "Build the image with the distribution's libraries (container.base, or rdma-setup generate dockerfile).",
			Run: eachGuest(func(f *checks.Facts, t backends.Ref, g *backends.Guest) checks.Answer {
				if a := answerImage(f, t, g); a != nil {
					return *a
				}
				return containers(func(t backends.Ref, list []backends.Container) checks.Answer {
					for _, c := range list {
						if c.MOFED && !c.PVRDMA {
							return row.Fail(t, "container %s has MLNX_OFED's libraries, which do not support PVRDMA, and sees %d RDMA devices", c.Name, c.Verbs)
						}
					}
					return row.Pass(t, "%d containers, none with MLNX_OFED", len(list))
				})(f, t, g)
			}),
		},
		{
			ID: "GST-CTRFLAGS-031", Scope: checks.Guest, Link: checks.InGuest, Fix: checks.Manual, Source: row.BitfusionGuide + ", NGC container",
			Criteria: "containers have /dev/infiniband, IPC_LOCK and the host's network / - / a container lacks one of them",
			Remedy:   "Add --device=/dev/infiniband --cap-add=IPC_LOCK --net=host to the command that starts the container.",
			Run: eachGuest(containers(func(t backends.Ref, list []backends.Container) checks.Answer {
				for _, c := range list {
					if !c.Devices || !c.IPCLock || !c.HostNet {
						return row.Fail(t, "container %s: /dev/infiniband %t, IPC_LOCK %t, host network %t", c.Name, c.Devices, c.IPCLock, c.HostNet)
					}
				}
				return row.Pass(t, "%d containers, all with what RDMA needs", len(list))
			})),
		},
		{
			ID: "GST-FWD-032", Scope: checks.Guest, Link: checks.InGuest, Fix: checks.Manual, Source: row.GPUDirectGuide,
			Criteria: "no Kubernetes node, or it forwards packets / - / blocked",
			Remedy:   "Set net.ipv4.ip_forward to 1 and the policy of the chain FORWARD to ACCEPT.",
			Run: eachGuest(func(_ *checks.Facts, t backends.Ref, g *backends.Guest) checks.Answer {
				w := g.Forwarding
				switch {
				case w == nil:
					return row.Waiting(t, "forwarding was not read")
				case !w.Kubernetes:
					return row.Pass(t, "the guest runs no kubelet")
				}
				return row.PassIf(w.IPForward && w.Policy != "DROP", t, "a kubelet runs; ip_forward %t, policy %s", w.IPForward,
					cmp.Or(w.Policy, "none"))
			}),
		},
		{
			ID: "GST-SECBOOT-033", Scope: checks.Guest, Link: checks.InGuest, Modes: row.GPUDirect, Fix: checks.Manual, Unverified: true,
			Source:   "unverified",
			Criteria: "secure boot off, or no module was rejected / - / a module was", Remedy: "Sign the modules, or disable secure boot of the VM.",
			Run: eachGuest(func(_ *checks.Facts, t backends.Ref, g *backends.Guest) checks.Answer {
				switch {
				case g.SecureBoot == nil:
					return row.Waiting(t, "mokutil is missing in the guest, or does not report secure boot")
				case !*g.SecureBoot:
					return row.Pass(t, "secure boot is off")
				}
				for _, line := range g.KernelLog {
					if rejected(line) {
						return row.Fail(t, "secure boot is on: %s", line)
					}
				}
				return row.Pass(t, "secure boot is on, and no module is known to be rejected")
			}),
		},
		{
			ID: "GST-KHDR-034", Scope: checks.Guest, Link: checks.InGuest, Modes: row.SRIOV, Fix: checks.Manual, Source: row.SRIOVStudy,
			Criteria: "headers of the running kernel, or no MLNX_OFED to build / - / missing", Remedy: "Install the kernel's headers.",
			Run: eachGuest(func(_ *checks.Facts, t backends.Ref, g *backends.Guest) checks.Answer {
				if g.Headers == nil {
					return row.Waiting(t, "the kernel headers were not looked for")
				}
				return row.PassIf(*g.Headers || g.MOFED == "", t, "headers for %s installed: %t; MLNX_OFED %s", g.Kernel, *g.Headers,
					cmp.Or(g.MOFED, "none"))
			}),
		},
	}
}

// rejected returns a kernel module that secure boot rejected.
func rejected(line string) bool {
	l := strings.ToLower(line)
	return strings.Contains(l, "unsigned module") || strings.Contains(l, "key was rejected")
}

func nvidia(ask func(f *checks.Facts, t backends.Ref, g *backends.Guest) checks.Answer) func(*checks.Facts, backends.Ref,
	*backends.Guest) checks.Answer {
	return func(f *checks.Facts, t backends.Ref, g *backends.Guest) checks.Answer {
		if g.NVIDIA == nil {
			return noDriver(t, g)
		}
		return ask(f, t, g)
	}
}

func noDriver(t backends.Ref, g *backends.Guest) checks.Answer {
	if g.PCI == nil {
		return row.Waiting(t, "the NVIDIA driver was not queried")
	}
	return row.Waiting(t, "the guest has no NVIDIA driver")
}

// smi evaluates the GPUs that nvidia-smi -q describes. A guest without any tells nothing about them.
func smi(ask func(f *checks.Facts, t backends.Ref, g *backends.Guest) checks.Answer) func(*checks.Facts, backends.Ref,
	*backends.Guest) checks.Answer {
	return nvidia(func(f *checks.Facts, t backends.Ref, g *backends.Guest) checks.Answer {
		if len(g.NVIDIA.Devices) == 0 {
			return row.Waiting(t, "nvidia-smi -q describes no GPU")
		}
		return ask(f, t, g)
	})
}

// licenseServers says what is known about the way to the license servers; the form of a token is not published [U], so it judges
// nothing.
func licenseServers(n *backends.NVIDIA) string {
	var closed []string
	for _, s := range n.LicenseServers {
		if !s.Open {
			closed = append(closed, s.String())
		}
	}
	switch {
	case n.LicenseUnknown == "proxy":
		return "the guest reaches its license server through a proxy (/etc/nvidia/gridd.conf)"
	case n.LicenseUnknown != "":
		return "a client configuration token has another form than expected: its license server is not known"
	case len(closed) > 0:
		return "the guest cannot connect to " + strings.Join(closed, ", ") + " within 3 s"
	case len(n.LicenseServers) > 0:
		return "the guest reaches the license servers in its client configuration token"
	}
	return fmt.Sprintf("a client configuration token is there: %t", n.Token)
}

// vgpuDriver compares the branches of a guest's driver and of the vGPU Manager of its host: 570 in 570.133.20.
func vgpuDriver(f *checks.Facts, t backends.Ref, g *backends.Guest) checks.Answer {
	var h *backends.Host
	has := slices.ContainsFunc(g.NVIDIA.Devices, func(d backends.GuestGPU) bool { return d.VGPU })
	if v := f.Inventory.VM(g.VM); v != nil {
		h, has = f.Inventory.Host(v.Host), has || len(v.VGPUProfiles()) > 0
	}
	guestDriver := g.NVIDIA.VGPUDriver
	switch {
	case !has && guestDriver != nil && *guestDriver:
		return row.Pass(t, "the guest has no vGPU; its driver is the one for vGPUs, and may be slow without a license (unverified)")
	case !has:
		return row.Pass(t, "the guest has no vGPU")
	case guestDriver != nil && !*guestDriver:
		return row.Fail(t, "driver %s is the one for whole GPUs: nvidia-gridd, which the vGPU guest driver brings, is missing", g.NVIDIA.Driver)
	}
	if h == nil || h.System == nil || !h.System.VIBs.Known() {
		return row.Waiting(t, "the VIBs of the host were not read")
	}
	name, vib := backends.VGPUManager(h.System.VIBs.Value)
	branch := func(version string) int {
		major, _, _ := strings.Cut(version, ".")
		n, _ := strconv.Atoi(major)
		return n
	}
	guest, host := branch(g.NVIDIA.Driver), branch(vib.Version)
	if guest == 0 || host == 0 {
		return row.Waiting(t, "the versions of the guest's driver (%s) and of the host's vGPU Manager (%s) are not known",
			cmp.Or(g.NVIDIA.Driver, "none"), cmp.Or(vib.Version, "none"))
	}
	if guest > host {
		return row.Fail(t, "driver %s is of a newer branch than %s %s of the host", g.NVIDIA.Driver, name, vib.Version)
	}
	return row.WarnIf(guest < host, t, "driver %s; the host has %s %s", g.NVIDIA.Driver, name, vib.Version)
}

// answerImage judges the image in the answers; nil if it is acceptable.
func answerImage(f *checks.Facts, t backends.Ref, g *backends.Guest) *checks.Answer {
	want := f.Answers.Container.Image
	if want == "" {
		return nil
	}
	var a checks.Answer
	inside, looked := g.Inside(want)
	switch {
	case !g.HasImage(want):
		a = row.Fail(t, "no container engine of the guest has the image %s", want)
	case !looked:
		a = row.Unknown(t, "the image %s could not be inspected: it cannot start /bin/sh", want)
	case !inside.PVRDMA:
		a = row.Fail(t, "image %s has %s", want, inside)
	default:
		return nil
	}
	return &a
}

func containers(ask func(t backends.Ref, list []backends.Container) checks.Answer) func(*checks.Facts, backends.Ref,
	*backends.Guest) checks.Answer {
	return func(_ *checks.Facts, t backends.Ref, g *backends.Guest) checks.Answer {
		if g.Containers == nil {
			return row.Waiting(t, "containers were not looked for")
		}
		return ask(t, g.Containers)
	}
}

// p2pStatus spells the words of nvidia-smi topo -p2p as its legend does.
var p2pStatus = map[string]string{"CNS": "chipset not supported (CNS)", "GNS": "GPU not supported (GNS)",
	"TNS": "topology not supported (TNS)",
	"NS":  "not supported (NS)", "DR": "disabled by a driver setting (DR)", "U": "unknown (U)"}
