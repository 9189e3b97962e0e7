package guest

import (
	"cmp"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
	"github.com/rdma-setup/rdma-setup/wizard/plan/current"
)

const (
	setNVIDIA = "nvidia" // the set of packages with the driver

	peermem    = "nvidia_peermem" // part of the driver since release 470
	oldPeermem = "nv_peer_mem"    // deprecated since CUDA 11.5

	checkDriver, checkPeer, checkSecure = "GST-NVSMI-027", "GST-PEERMEM-028", "GST-SECBOOT-033"
	checkVGPUDriver, checkLicense       = "GST-VGPUDRV-041", "GST-VGPULIC-038"
)

// gpu plans the NVIDIA driver of a guest, if the answers name one, and the NIC's access to GPU memory: DMA-BUF if the driver
// supports it, else nvidia-peermem, else nv_peer_mem of old drivers. Both modules register with ib_core, so anything that replaces
// ib_core (MLNX_OFED) comes first (NVIDIA GPUDirect RDMA guide; nv_peer_memory issue 84).
func (g *guestPart) gpu() {
	g.vgpu()
	if !g.servesVGPU() {
		return
	}
	if g.Answers.Mode != answers.GPUDirect {
		switch {
		case len(g.v.GPUs) == 0 && g.v.VGPUs == 0:
		case g.asked && (g.v.Guest.NVIDIA == nil || g.unfinished(backends.BuildDriver)):
			if id := g.driver(); id != "" {
				g.persistence(id)
			}
		default:
			g.persistence("")
		}
		return
	}
	if !g.asked {
		g.modulesFor(g.until, "how the NIC accesses GPU memory depends on the guest's driver")
		g.persistence("")
		return
	}
	f := g.v.Guest
	if g.coming && !g.afterOFED() {
		return
	}
	if f.NVIDIA == nil || g.unfinished(backends.BuildDriver) {
		id := g.driver()
		g.cudaPerftest(id)
		if id != "" {
			g.modulesFor(backends.Unknown(id), "how the NIC accesses GPU memory depends on the driver that is installed")
			g.persistence(id)
		}
		return
	}
	g.cudaPerftest("")
	if f.NVIDIA.Driver == "" {
		g.Object(g.ref, checkDriver,
			"install the headers of the kernel and build the driver's modules again (dkms autoinstall), or reboot the guest into the kernel that "+
				"they were built for",
			"has nvidia-smi, but kernel %s has no module of the NVIDIA driver: %s", f.Kernel, cmp.Or(f.NVIDIA.Error, "it reports no version"))
		return
	}
	g.persistence("")
	module, why, no := peerWay(f)
	if no != nil {
		g.Object(g.ref, checkPeer, no.Remedy, "%s", no.Why)
		return
	}
	if module == "" {
		g.Note("%s: %s", g.v.Name, why)
		return
	}
	g.modulesFor(backends.ValueOf([]string{module}), why)
}

// persistence plans that the driver keeps unused GPUs initialized, if the answers leave the driver to the run. driver is the id of
// the change that installs it, "" if it is installed (NVIDIA, Driver Persistence; NVML supports the mode on all products).
func (g *guestPart) persistence(driver string) {
	if len(g.Answers.GPUDirect.Driver) == 0 {
		return
	}
	from, to := g.until, backends.ValueOf(true)
	switch {
	case driver != "":
		from = backends.Unknown(driver)
	case !g.asked:
		to = g.until // the driver may have to be installed first
	case !g.cycled || g.v.Guest.GPUUnit == backends.GPUUnitEnabled: // the unit sets it after a power cycle too
		from = g.Now(g.set(backends.KindGPUPersist, ""))
	}
	g.change(backends.KindGPUPersist, "", from, to, "without it the driver initializes a GPU anew for each first program that uses it",
		func(c *plan.Change) {
			c.After = append(c.After, g.id(backends.KindPackages, setNVIDIA), g.id(backends.KindBuild, backends.BuildDriver))
		})
}

// vgpu notes what a vGPU does not support (RDG: RoCE accelerated ML and HPC on Kubernetes with vGPU and PVRDMA, NVIDIA/Mellanox,
// 2019: NCCL_IB_GDR_LEVEL=0).
func (g *guestPart) vgpu() {
	i := slices.IndexFunc(g.v.Passthrough, func(p string) bool { return strings.HasPrefix(p, "vgpu") })
	if i < 0 || g.Answers.Mode == answers.GPUDirect {
		return // the VM's part of the plan decides
	}
	profile := strings.TrimSpace(strings.TrimPrefix(g.v.Passthrough[i], "vgpu"))
	g.NoteEach(g.v.Name, "vGPU %s: a PVRDMA adapter cannot access GPU memory; data goes through host memory "+
		"(NCCL_NET_GDR_LEVEL=LOC, before NCCL 2.4 NCCL_IB_GDR_LEVEL=0)",
		cmp.Or(profile, "with an unknown name"))
}

const nameVGPUDriver = "in gpudirect.driver the vGPU guest driver of the release of the host's vGPU Manager (its package " +
	"nvidia-linux-grid-*, or the path of " +
	"NVIDIA-Linux-*-grid.run)"

// wholeGPU matches the names of packages and files with drivers for whole GPUs.
var wholeGPU = regexp.MustCompile(
	`^(nvidia-(headless|driver|open|dkms|utils)|kmod-nvidia|cuda-drivers|linux-modules-nvidia)|^NVIDIA-Linux-[^-]+-[0-9.]+\.run$`)

// servesVGPU refuses a guest whose driver or license does not serve the vGPUs that the answers give it, before anything is changed. It
// needs the vGPU guest driver (NVIDIA GPU Operator, "NVIDIA AI Enterprise"; with the other one the module does not load:
// flatcar/Flatcar, issue 1283) and a client configuration token for its license (NVIDIA, Virtual GPU Client Licensing User Guide).
func (g *guestPart) servesVGPU() bool {
	if !g.asked {
		return true
	}
	n, before := g.v.Guest.NVIDIA, len(g.Refusals)
	isVGPU := func(d backends.GuestGPU) bool { return d.VGPU }
	switch {
	case g.v.VGPUs == 0:
		if len(g.v.GPUs) > 0 && n != nil && n.VGPUDriver != nil && *n.VGPUDriver {
			g.NoteEach(g.v.Name, "[has|have] the vGPU guest driver for whole GPUs: without a license it may be slow there (unverified)")
		}
	case n == nil:
		if i := slices.IndexFunc(g.Answers.GPUDirect.Driver, func(d string) bool { return wholeGPU.MatchString(path.Base(d)) }); i >= 0 {
			g.Object(g.ref, checkVGPUDriver, "name "+nameVGPUDriver, "is to have a vGPU, and %s is a driver for whole GPUs",
				g.Answers.GPUDirect.Driver[i])
		} else if len(g.Answers.GPUDirect.Driver) > 0 {
			g.NoteEach(g.v.Name,
				"[its|their] vGPU [needs|need] a client configuration token in /etc/nvidia/ClientConfigToken: the run does not install one "+
					"(GST-VGPULIC-038)")
		}
	case n.VGPUDriver != nil && !*n.VGPUDriver:
		g.Object(g.ref, checkVGPUDriver, "remove that driver, and name "+nameVGPUDriver,
			"is to have a vGPU, and its driver %s is the one for whole GPUs (there is no nvidia-gridd)", n.Driver)
	case slices.ContainsFunc(n.Devices, backends.GuestGPU.Unlicensed), n.NoToken && !slices.ContainsFunc(n.Devices, isVGPU):
		g.Object(g.ref, checkLicense,
			"put the client configuration token of your license server (client_configuration_token_*.tok) into /etc/nvidia/ClientConfigToken "+
				"in the guest, and restart nvidia-gridd",
			"is to have a vGPU, and has no license for it, so that it would be slowed down (NVIDIA, Virtual GPU Client Licensing User Guide)")
	}
	return len(g.Refusals) == before
}

// before returns the ids of changes that replace the guest's RDMA stack: GPU drivers build on it.
func (g *guestPart) before() []string {
	var ids []string
	for _, c := range g.Plan.Changes {
		if c.Target == g.ref && c.Kind == backends.KindPackages && c.Name != setNVIDIA {
			ids = append(ids, c.ID())
		}
	}
	return ids
}

// modulesFor plans the peer memory module and its loading at boot.
func (g *guestPart) modulesFor(to backends.Value, why string) {
	g.peer = to
	from := g.until
	var want []string
	if g.asked && !g.cycled {
		if from = g.until; to.Known() && to.Decode(&want) == nil {
			from = current.Members(g.v.Guest, backends.KindModules, want)
		}
	}
	g.change(backends.KindModules, plan.PeerModules, from, to, why, func(c *plan.Change) {
		c.After = append(c.After, g.id(backends.KindModules, setRDMA), g.id(backends.KindPackages, setNVIDIA),
			g.id(backends.KindBuild, backends.BuildDriver))
		c.After = append(c.After, g.before()...)
	})
}

// peerWay returns how the NIC accesses the memory of a guest's GPUs: a kernel module, or "" for DMA-BUF, which needs none. A
// module that is already loaded stays.
func peerWay(f *backends.Guest) (module, why string, no *plan.Refusal) {
	n := f.NVIDIA
	there := func(m string) bool { return slices.Contains(f.Available, m) || slices.Contains(f.Loaded, m) }
	denied := f.PeerAPI != nil && !*f.PeerAPI && f.MOFED == ""
	switch {
	case slices.Contains(f.Loaded, peermem) && slices.Contains(f.Loaded, oldPeermem):
		return "", "", &plan.Refusal{Why: oldPeermem + " and " + peermem + " are both loaded and replace each other",
			Remedy: "remove the package of " + oldPeermem + " (nvidia-peer-memory-dkms), which the driver's own module replaces"}
	case slices.Contains(f.Loaded, peermem):
		return peermem, "nvidia-peermem is loaded already and stays", nil
	case n.DMABuf && (f.CUDATests == nil || f.CUDATests.DMABuf || denied || !there(peermem)):
		return "", fmt.Sprintf("the NIC reaches GPU memory by DMA-BUF (open kernel modules %s, kernel %s): no peer memory module is needed",
			n.Driver, f.Kernel), nil
	case there(peermem) && denied:
		return "", "", &plan.Refusal{Why: "ib_core lets no peer memory register, so nvidia-peermem would not load",
			Remedy: "install MLNX_OFED or DOCA first and the NVIDIA driver after it, or the driver's open kernel modules, which need no peer " +
				"memory (DMA-BUF)"}
	case there(peermem):
		return peermem, "the NIC reaches GPU memory by nvidia-peermem, which comes with the driver", nil
	case there(oldPeermem) && major(n.Driver) < 470:
		return oldPeermem, fmt.Sprintf("driver %s is older than nvidia-peermem (470): nv_peer_mem gives access to GPU memory", n.Driver), nil
	}
	return "", "", &plan.Refusal{
		Why: fmt.Sprintf(
			"nothing lets the NIC reach GPU memory: driver %s has neither DMA-BUF (open kernel modules, kernel 5.12) nor nvidia-peermem",
			cmp.Or(n.Driver, "of an unknown release")),
		Remedy: "install a driver from release 470 on after MLNX_OFED or DOCA, better its open kernel modules",
	}
}

// major returns the release of a driver: 570 for 570.86.15; 0 if it cannot be parsed.
func major(version string) int {
	head, _, _ := strings.Cut(version, ".")
	n, err := strconv.Atoi(head)
	if err != nil {
		return 0
	}
	return n
}
