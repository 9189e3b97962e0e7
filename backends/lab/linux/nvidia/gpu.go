// Package nvidia implements NVIDIA's driver in the lab's guests: its modules, nvidia-smi, and the access of network cards to
// GPU memory.
package nvidia

import (
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/lab/shell/sh"
	"github.com/rdma-setup/rdma-setup/backends/lab/shell/vfs"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

// A GPU is a GPU or vGPU that is assigned to the VM.
type GPU struct {
	world.GPU
	Address string // guest address: 0000:13:00.0
	Slot    int
	Class   uint16
	Device  uint16
	Sub     uint16
	Text    string // name in lspci, without the vendor: GA100 [A100 PCIe 80GB]
	BARs    []world.BAR
	NUMA    int    // NUMA node of the host
	Host    string // host address: 0000:3c:00.0; for a vGPU, that of its GPU
	Profile string // vGPU profile
	Group   string // vendor device group of a vGPU, if NVLink connects the group's members
	Root    string // root port of the host, if the VM's keys allow peer-to-peer access between its devices
}

// UUID returns the UUID of the GPU: GPU-12345678-...
func (g GPU) UUID() string {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s/%s/%s", g.Name, g.Host, g.Profile)
	a := h.Sum64()
	fmt.Fprint(h, "2")
	b := h.Sum64()
	return fmt.Sprintf("GPU-%08x-%04x-%04x-%04x-%012x", uint32(a>>32), uint16(a>>16), uint16(a), uint16(b>>48), b&0xffffffffffff)
}

// busID returns the address in NVIDIA's format, with a domain of eight digits.
func (g GPU) busID() string { return "0000" + strings.ToUpper(g.Address) }

// bar1 returns the size in MiB of the memory region that maps the GPU's memory, the second: nvidia-smi calls it BAR1, although it is
// BAR 2 of GPUs whose first region has 64 bits.
func (g GPU) bar1() int64 {
	if len(g.BARs) < 2 {
		return 0
	}
	return g.BARs[1].MB
}

// reserved returns the memory that the driver reserves, in MiB.
func (g GPU) reserved() int64 { return g.MemoryMiB/160 + 1 }

// dkms rebuilds the modules for the running kernel.
func (d *Driver) dkms(_ context.Context, p *sh.Proc) int {
	version, _ := d.Version()
	if len(p.Args) < 2 || p.Args[1] == "status" {
		if version != "" {
			p.Printf("nvidia/%s, %s, x86_64: installed\n", version, d.Kernel.Release)
		}
		return 0
	}
	switch verb := p.Args[1]; {
	case !slices.Contains([]string{"autoinstall", "build", "install", "remove"}, verb):
		return p.Fail(1, "Error! Unknown action specified: \"%s\"", verb)
	case !p.Root():
		return p.Fail(1, "Error! You must be root to use this command.")
	case verb == "install":
		d.Rebuild()
		p.Printf("\nnvidia.ko:\nRunning module version sanity check.\n - Installing to /lib/modules/%s/updates/dkms/\n\ndepmod...\n",
			d.Kernel.Release)
	}
	return 0
}

// peerTest implements p2pBandwidthLatencyTest of the CUDA samples. GPUs without peer access copy through the VM's memory even
// if P2P is enabled, as a note in its output says. The results are fractions of a PCIe link's bandwidth and are chosen by the
// lab.
func (d *Driver) peerTest(_ context.Context, p *sh.Proc) int {
	gpus := d.GPUs()
	if !d.Ready() || len(gpus) == 0 {
		p.Printf("Cuda failure p2pBandwidthLatencyTest.cu:599: 'no CUDA-capable device is detected'\n")
		return 1
	}
	access := func(a, b int) bool { return a != b && peers(gpus[a], gpus[b]) == "OK" }
	p.Printf("[P2P (Peer-to-Peer) GPU Bandwidth Latency Test]\n")
	for n, g := range gpus {
		p.Printf("Device: %d, %s, pciBusID: %s, pciDeviceID: 0, pciDomainID:0\n", n, g.Name, strings.TrimPrefix(g.Address[5:7], "0"))
	}
	for a := range gpus {
		for b := range gpus {
			if a != b {
				p.Printf("Device=%d %s Access Peer Device=%d\n", a, map[bool]string{true: "CAN", false: "CANNOT"}[access(a, b)], b)
			}
		}
	}
	p.Printf("\n***NOTE: In case a device doesn't have P2P access to other one, it falls back to normal memcopy procedure.\n" +
		"So you can see lesser Bandwidth (GB/s) and unstable Latency (us) in those cases.\n\n")
	matrix := func(title, corner, column, cell string, figure func(a, b int) any) {
		p.Printf("%s%s", title, corner)
		for n := range gpus {
			p.Printf(column, n)
		}
		for a := range gpus {
			p.Printf("\n%6d%s", a, map[bool]string{true: "\t", false: " "}[cell == "%6d"])
			for b := range gpus {
				p.Printf(cell, figure(a, b))
			}
		}
		p.Printf("\n")
	}
	matrix("P2P Connectivity Matrix\n", `     D\D`, "%6d", "%6d", func(a, b int) any { return map[bool]int{true: 1}[a == b || access(a, b)] })
	for _, m := range []struct {
		title      string
		enabled    bool
		directions float64
	}{
		{"Unidirectional P2P=Disabled Bandwidth Matrix (GB/s)\n", false, 1}, {"Unidirectional P2P=Enabled Bandwidth (P2P Writes) Matrix (GB/s)\n",
			true, 1},
		{"Bidirectional P2P=Disabled Bandwidth Matrix (GB/s)\n", false, 1.4}, {"Bidirectional P2P=Enabled Bandwidth Matrix (GB/s)\n", true, 1.4},
	} {
		matrix(m.title, `   D\D`, "%6d ", "%6.02f ", func(a, b int) any {
			link := float64(int(1)<<min(gpus[a].Gen, gpus[b].Gen)) * 1.97 // GB/s with 16 lanes
			switch {
			case a == b:
				return 1300.0
			case m.enabled && access(a, b):
				return link * 0.8 * m.directions
			}
			return link * 0.35 * m.directions
		})
	}
	for _, enabled := range []bool{false, true} {
		title := map[bool]string{false: "P2P=Disabled Latency Matrix (us)\n", true: "P2P=Enabled Latency (P2P Writes) Matrix (us)\n"}[enabled]
		for _, side := range []string{"   GPU", "\n   CPU"} {
			matrix(title, side, "%6d ", "%6.02f ", func(a, b int) any {
				if a == b || enabled && access(a, b) {
					return 2.1
				}
				return 12.6
			})
			title = ""
		}
	}
	p.Printf("\nNOTE: The CUDA Samples are not meant for performance measurements. Results may vary when GPU Boost is enabled.\n")
	return 0
}

// peers returns the status of a pair of GPUs as in nvidia-smi topo -p2p r. Passed-through GPUs can access each other below the
// same root port of the host, if the VM allows it. vGPUs in the same vendor device group can access each other over NVLink.
func peers(g, other GPU) string {
	switch {
	case g.Group != "" && g.Group == other.Group:
		return "OK"
	case g.Profile != "" || other.Profile != "":
		return "NS"
	case g.Root != "" && g.Root == other.Root:
		return "OK"
	}
	return "CNS"
}

const installerLog = "/var/log/nvidia-installer.log"

// A Toolchain describes the build tools of a guest.
type Toolchain struct {
	Tool    func(name string) bool // reports whether gcc, make or dkms is installed
	Headers func() bool            // reports whether the headers of the running kernel are installed
}

// Installer returns NVIDIA's installer, which a .run file unpacks and starts. Its first argument is the version to install.
func (d *Driver) Installer(t Toolchain) sh.Program {
	return func(_ context.Context, p *sh.Proc) int {
		fail := func(text string) int {
			text = "ERROR: " + text
			d.installed(p, text)
			return p.Fail(1, "\n%s\n\nERROR: Installation has failed.  Please see the file '%s' for details.", text, installerLog)
		}
		if len(p.Args) < 2 {
			return p.Fail(1, "ERROR: Unable to open the driver package.")
		}
		version, options := p.Args[1], p.Args[2:]
		for _, o := range options {
			if !slices.Contains([]string{"--silent", "-s", "--dkms", "--no-questions", "-q", "--ui=none"}, o) {
				return p.Fail(1,
					"nvidia-installer: unrecognized option: %q\n\nERROR: Invalid commandline, please run `nvidia-installer --help` for usage information.",
					o)
			}
		}
		dkms := slices.Contains(options, "--dkms")
		switch {
		case !p.Root():
			return p.Fail(1, "\nERROR: nvidia-installer must be run as root.\n")
		case !slices.Contains(options, "--silent") && !slices.Contains(options, "-s"):
			return fail("Unable to initialize the user interface: there is no terminal.") // the real installer would prompt
		case d.Kernel.Loaded("nouveau"):
			return fail(
				"The Nouveau kernel driver is currently in use by your system.  This driver is incompatible with the NVIDIA driver, and must be " +
					"disabled before proceeding.")
		case d.Kernel.Loaded("nvidia"):
			return fail("An NVIDIA kernel module 'nvidia' appears to be already loaded in your kernel.")
		case !t.Tool("gcc"):
			return fail("Unable to find the development tool `cc` in your path; please make sure that you have the package 'gcc' installed.")
		case !t.Tool("make"):
			return fail("Unable to find the development tool `make` in your path; please make sure that you have the package 'make' installed.")
		case !t.Headers():
			return fail(
				"Unable to find the kernel source tree for the currently running kernel.  Please make sure you have installed the kernel " +
					"source files " +
					"for your kernel and that they are properly configured.")
		case dkms && !t.Tool("dkms"):
			return fail("Failed to find dkms on the system!")
		}
		open := !slices.ContainsFunc(d.GPUs(), func(g GPU) bool { return !g.Open })
		for program, file := range installerPrograms {
			if err := p.Sys.Install(program, file); err != nil {
				return fail("Unable to create '" + file + "'.")
			}
		}
		d.Install(version, open, false)
		d.installed(p, "Installation of the NVIDIA Accelerated Graphics Driver for Linux-x86_64 (version: "+version+") is now complete.")
		return 0
	}
}

var installerPrograms = map[string]string{"nvidia-smi": "/usr/bin/nvidia-smi", "nvidia-uninstall": "/usr/bin/nvidia-uninstall"}

func (d *Driver) installed(p *sh.Proc, text string) {
	// errors are ignored
	_ = p.Sys.FS.WriteFile(vfs.Root(), installerLog, []byte("nvidia-installer log file '"+installerLog+"'\n"+text+"\n"), 0o644)
}

// Uninstall removes the files that the installer installed.
func (d *Driver) Uninstall(_ context.Context, p *sh.Proc) int {
	switch {
	case !p.Root():
		return p.Fail(1, "\nERROR: nvidia-installer must be run as root.\n")
	case !slices.Contains(p.Args, "--silent") && !slices.Contains(p.Args, "-s"):
		return p.Fail(1, "ERROR: Unable to initialize the user interface: there is no terminal.")
	}
	for _, file := range installerPrograms {
		if err := p.Sys.FS.Remove(vfs.Root(), file); err != nil {
			return p.Fail(1, "ERROR: Unable to remove '%s'.", file)
		}
	}
	d.Remove()
	d.installed(p, strings.TrimSpace("Uninstallation of existing driver: NVIDIA Accelerated Graphics Driver for Linux-x86_64 is complete."))
	return 0
}
