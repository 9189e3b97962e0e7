package guest

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
	"github.com/rdma-setup/rdma-setup/wizard/plan/current"
	"github.com/rdma-setup/rdma-setup/wizard/plan/draft"
	"github.com/rdma-setup/rdma-setup/wizard/sizing"
)

const checkPerftest = "GST-PERFTEST-023"

// driver plans NVIDIA's driver if the guest has none, and returns the change's id; "" if nothing may be done.
func (g *guestPart) driver() string {
	f := g.v.Guest
	switch {
	case len(g.Answers.GPUDirect.Driver) == 0:
		name := "in gpudirect.driver its packages, as [nvidia-headless-570-server-open, nvidia-utils-570-server], or the path of its .run " +
			"file there"
		if g.v.VGPUs > 0 {
			name = nameVGPUDriver
		}
		g.Object(g.ref, checkDriver, "install the NVIDIA driver in the guest, or name "+name,
			"has no NVIDIA driver, and the answers name none to install")
		return ""
	case slices.Contains(f.Loaded, "nouveau") && !g.freed:
		g.Object(g.ref, checkDriver,
			"write \"blacklist nouveau\" and \"options nouveau modeset=0\" into a file of /etc/modprobe.d, renew the initial RAM disk and "+
				"reboot the guest",
			"the GPU is used by the module nouveau, so the NVIDIA driver cannot use it")
		return ""
	case f.SecureBoot != nil && *f.SecureBoot:
		g.Object(g.ref, checkSecure,
			"choose packages with signed modules (Ubuntu: linux-modules-nvidia-..), enroll the signing key (mokutil --import), or switch Secure "+
				"Boot of the VM off",
			"Secure Boot is on: modules that are built in the guest are not loaded")
		if !slices.Contains(g.Options.Skip, checkSecure) {
			return ""
		}
	}
	g.bootUnread()
	if file, is := g.Answers.GPUDirect.DriverFile(); is {
		return g.driverFile(file)
	}
	want := slices.Sorted(slices.Values(g.Answers.GPUDirect.Driver))
	g.change(backends.KindPackages, setNVIDIA, current.Members(f, backends.KindPackages, want),
		backends.ValueOf(backends.PackageSpec{Installed: want}),
		"the NVIDIA driver, as named in gpudirect.driver", g.afterStack)
	return g.id(backends.KindPackages, setNVIDIA)
}

// bootUnread says before modules are built in a guest that nobody knows whether it loads them: mokutil is missing there, or the user may
// not read the EFI variables. A VM with BIOS firmware has none (vSphere Virtual Machine Administration 8.0, "Activate or Deactivate UEFI
// Secure Boot for a Virtual Machine": "EFI firmware").
func (g *guestPart) bootUnread() {
	if g.asked && g.v.Guest.SecureBoot == nil && g.v.VM.Firmware != "bios" {
		g.NoteEach(g.v.Name, "[did|did] not tell whether Secure Boot is on (mokutil --sb-state): if it is, modules without a signature that "+
			"[it trusts|they trust] are installed and not loaded (GST-SECBOOT-033)")
	}
}

// nouveau plans that the kernel's own driver releases the GPU before NVIDIA's is installed: blacklisted, also in the initial RAM
// disk, and the guest rebooted (NVIDIA Driver Installation Guide, "Disabling Nouveau").
func (g *guestPart) nouveau() {
	f := g.v.Guest
	switch {
	case !g.asked, f.NVIDIA != nil && !g.unfinished(backends.BuildDriver), f.Nouveau == nil, !f.Nouveau.Loaded, !f.Nouveau.Renewable:
		return
	case len(g.Answers.GPUDirect.Driver) == 0, g.Answers.Mode != answers.GPUDirect && len(g.v.GPUs) == 0 && g.v.VGPUs == 0:
		return
	case slices.ContainsFunc(g.v.VM.IPs, func(ip string) bool { return slices.Contains(g.Options.Ourselves, ip) }):
		return // this program runs in it
	}
	g.freed = true
	g.change(backends.KindNouveau, "", f.Nouveau.Value(), backends.ValueOf(true),
		"the GPU is used by the module nouveau, so NVIDIA's driver cannot use it", func(c *plan.Change) {
			c.Disrupts = []plan.Disruption{plan.GuestReboot}
		})
	id := g.id(backends.KindNouveau, "")
	g.cycled, g.until, g.after = true, backends.Unknown(id), append(slices.Clone(g.after), id)
	g.NoteEach(g.v.Name, "[is rebooted inside the run, because nouveau uses its GPU: programs in it|"+
		"are rebooted inside the run, because nouveau uses their GPUs: programs in them] are stopped; "+
		"a rollback removes the blacklist and does not reboot [it|them] again")
}

// afterStack makes what builds on the guest's RDMA stack wait for it.
func (g *guestPart) afterStack(c *plan.Change) {
	c.After = append(c.After, g.id(backends.KindPackages, setRDMA))
	c.After = append(c.After, g.before()...)
}

// driverFile plans NVIDIA's own installer, which builds the driver's modules for the running kernel.
func (g *guestPart) driverFile(file answers.DriverFile) string {
	f := g.v.Guest
	lacks := g.lacking("gcc", "make")
	if f.Headers != nil && !*f.Headers {
		lacks = append(lacks, "headers of kernel "+f.Kernel)
	}
	switch {
	case !g.sees(file.Path, checkDriver):
		return ""
	case f.Arch != "" && f.Arch != file.Arch:
		g.Object(g.ref, checkDriver, "name the installer for "+f.Arch, "%s is for %s machines, the guest is %s", path.Base(file.Path), file.Arch,
			f.Arch)
		return ""
	case len(lacks) > 0:
		g.Object(g.ref, checkDriver, "in the guest: "+g.installs("gcc", "make", "dkms", "linux-headers-"+f.Kernel, "kernel-devel-"+f.Kernel),
			"NVIDIA's installer builds the driver's modules in the guest, which has no %s", strings.Join(lacks, ", no "))
		return ""
	}
	if len(g.lacking("dkms")) > 0 {
		g.NoteEach(g.v.Name,
			"[has|have] no dkms: the NVIDIA driver's modules are built for the running kernel; rebuild them yourself after a kernel update")
	}
	g.change(backends.KindBuild, backends.BuildDriver, g.Now(g.set(backends.KindBuild, backends.BuildDriver)),
		backends.ValueOf(file.Path),
		fmt.Sprintf("the NVIDIA driver %s by its own installer (--silent, with dkms if it is installed); nvidia-uninstall removes it",
			file.Version), g.afterStack)
	return g.id(backends.KindBuild, backends.BuildDriver)
}

// cudaPerftest plans a perftest with CUDA if there is none and the answers name its source; without either it notes that GPU
// memory is not measured. driver is the id of the change that installs the driver, "" if it is installed.
func (g *guestPart) cudaPerftest(driver string) {
	f, file := g.v.Guest, g.Answers.GPUDirect.Perftest
	switch {
	case f.CUDATests != nil && !g.unfinished(backends.BuildPerftest):
		return
	case file == "":
		g.NoteEach(g.v.Name,
			"no perftest built with CUDA was found: host memory alone is measured, GPU memory is not (gpudirect.perftest names a source to "+
				"build it from)")
		return
	case !g.sees(file, checkPerftest):
		return
	case f.CUDAHeader == "":
		g.Object(g.ref, checkPerftest,
			"install CUDA's headers in the guest (of NVIDIA's repository cuda-driver-dev and cuda-cudart-dev, of the distribution "+
				"nvidia-cuda-toolkit), or take gpudirect.perftest out: then host memory alone is measured",
			"perftest cannot be built with CUDA: cuda.h is not there")
		return
	}
	if !g.builds() {
		return
	}
	g.change(backends.KindBuild, backends.BuildPerftest, g.Now(g.set(backends.KindBuild, backends.BuildPerftest)),
		backends.ValueOf(file),
		"to measure GPU memory: built with "+f.CUDAHeader+" into /opt/perftest, beside the distribution's, which does not support --use_cuda",
		func(c *plan.Change) {
			g.afterStack(c)
			c.After = append(c.After, draft.IDs(driver)...)
		})
}

// builds refuses a guest without the build dependencies of perftest.
func (g *guestPart) builds() bool {
	lacks := g.lacking("gcc", "make", "infiniband/verbs.h", "rdma/rdma_cma.h", "infiniband/umad.h", "pci/pci.h")
	if len(lacks) > 0 {
		g.Object(g.ref, checkPerftest,
			"in the guest: "+g.installs("gcc", "make", "libibverbs-dev", "librdmacm-dev", "libibumad-dev", "libpci-dev", "rdma-core-devel",
				"pciutils-devel"),
			"perftest cannot be built in the guest, which has no %s", strings.Join(lacks, ", no "))
	}
	return len(lacks) == 0
}

// samePerftest plans one release of perftest for all guests, if the answers name its source and their own are not known to be
// equal: different releases may refuse each other, or measure differently.
func (g *guestPart) samePerftest() {
	source := g.Answers.Measure.Source()
	if !g.Answers.Measure.Bandwidth && !g.Answers.Measure.Latency {
		return
	}
	if source == "" {
		g.refusing()
		return
	}
	if version := g.oneRelease(); version != "" {
		g.Note("All guests have perftest %s of their own: none is built from measure.perftest.", version)
		return
	}
	from := g.until
	if g.asked {
		if strings.HasPrefix(source, "/") && !g.sees(source, checkPerftest) || !g.builds() {
			return
		}
		from = g.Now(g.set(backends.KindBuild, backends.BuildSamePerftest))
	}
	g.change(backends.KindBuild, backends.BuildSamePerftest, from, backends.ValueOf(source),
		"all guests measure with one release, whose ends understand each other: built into "+backends.PerftestPrefix(backends.BuildSamePerftest)+
			", beside the distribution's", func(c *plan.Change) {
			g.afterStack(c)
			c.After = append(c.After, g.id(backends.KindBuild, backends.BuildPerftest))
		})
}

// refusing notes that the perftest of two guests refuse each other: their pair cannot be measured.
func (g *guestPart) refusing() {
	for i, v := range g.VMs {
		for _, w := range g.VMs[:i] {
			if v.Guest != nil && w.Guest != nil && sizing.PerftestRefuses(v.Guest.Tests(), w.Guest.Tests()) {
				g.Note(
					"%s and %s are not measured together: perftest %s and %s refuse each other. Name a source of perftest for all guests in "+
						"measure.perftest.",
					w.Name, v.Name, w.Guest.Tests(), v.Guest.Tests())
				return
			}
		}
	}
}

// oneRelease returns the protocol version of perftest that all guests have already; "" if they differ, if one is unknown, or if
// this program has started to build one.
func (g *guestPart) oneRelease() string {
	version := ""
	for _, v := range g.VMs {
		f := v.Guest
		if !v.Wish.Guest.Managed() {
			continue
		}
		if f == nil || f.Error != "" || f.Perftest == "" || version != "" && f.Perftest != version ||
			!f.Built[backends.BuildSamePerftest].IsAbsent() {
			return ""
		}
		version = f.Perftest
	}
	return version
}

// unfinished reports whether a build of this program was interrupted.
func (g *guestPart) unfinished(name string) bool {
	return g.v.Guest.Built[name].IsPartial()
}

// sees refuses a file that does not exist in the guest.
func (g *guestPart) sees(file, check string) bool {
	there, asked := g.v.Guest.Archives[file]
	if asked && !there {
		g.Object(g.ref, check, "put the file there, or mount the share that has it", "%s is not in the guest, or cannot be read", file)
	}
	return there || !asked
}

// lacking returns those tools that the guest lacks; none if that was not read.
func (g *guestPart) lacking(tools ...string) []string {
	if g.v.Guest.BuildTools == nil {
		return nil
	}
	return slices.DeleteFunc(tools, func(t string) bool { return slices.Contains(g.v.Guest.BuildTools, t) })
}

// installs returns the command that installs those packages that belong to the guest's distribution.
func (g *guestPart) installs(packages ...string) string {
	debian := g.v.Guest.PackageManager == "apt"
	packages = slices.DeleteFunc(packages, func(p string) bool {
		rpm := strings.HasSuffix(p, "-devel") || strings.HasPrefix(p, "kernel-devel")
		deb := strings.HasSuffix(p, "-dev") || strings.HasPrefix(p, "linux-headers")
		return rpm && debian || deb && !debian
	})
	if debian {
		return "apt-get install " + strings.Join(packages, " ")
	}
	return cmp.Or(g.v.Guest.PackageManager, "dnf") + " install " + strings.Join(packages, " ")
}

const checkContainer = "GST-CONTAINER-030"

// image plans the container image of the answers if it is to be built: MLNX_OFED's libraries in NGC images do not support PVRDMA
// (PVRDMA and vSphere Bitfusion, VMware, 2021, Using PVRDMA in an NGC container).
func (g *guestPart) image() {
	want := g.Answers.Container
	if want.Image == "" {
		return
	}
	if !g.asked {
		if want.Base != "" {
			g.change(backends.KindImage, want.Image, g.until, g.until, "it depends on the container engine of the guest", nil)
		}
		return
	}
	e := g.v.Guest.Engine
	if e == nil {
		g.Object(g.ref, checkContainer, "install one (rdma-setup generate docker-setup prints how), or leave container.image empty",
			"no container engine "+
				"answers: neither docker, podman nor nerdctl")
		return
	}
	made, there := e.Images[want.Image]
	switch {
	case want.Base == "" && !there:
		g.Object(g.ref, checkContainer, "pull it ("+e.Name+" pull), or name in container.base what to build it from", "%s has no image %s",
			e.Name, want.Image)
	case want.Base == "":
		// Reported before anything is measured with it. If the image could not be inspected, the measurement shows it.
		if inside, looked := g.v.Guest.Inside(want.Image); looked && !inside.PVRDMA && g.Answers.Mode == answers.PVRDMA {
			g.Object(g.ref, checkContainer,
				"name it in container.base and another in container.image, which is built then; or build one: rdma-setup generate "+
					"dockerfile --base "+want.Image, "image %s has %s", want.Image, inside)
		}
	case there && made == "":
		g.Object(g.ref, checkContainer, "choose another name in container.image, or remove container.base to use it as it is",
			"the image %s exists and was not built by rdma-setup", want.Image)
	default:
		text, err := g.Options.Dockerfile(want.Base)
		if err != nil {
			g.Refuse(g.ref, checkContainer, "name another image in container.base", "%v", err)
			return
		}
		if tc := g.appClass(); tc != 0 {
			text += "\n" + "ENV " + strings.Join(backends.ClassVariables(tc, -1), " ") + "\n"
		}
		g.change(backends.KindImage, want.Image, current.Image(g.v.Guest, want.Image), backends.ValueOf(text),
			"MLNX_OFED's libraries in "+want.Base+" do not know PVRDMA; the image is some GB, and building it downloads them", func(c *plan.Change) {
				c.After = append(c.After, g.id(backends.KindPackages, setRDMA))
			})
	}
}
