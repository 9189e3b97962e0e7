package nvidia

import (
	"errors"
	"sync"

	"github.com/rdma-setup/rdma-setup/backends/lab/linux/kernel"
)

// The modules that allow network cards to access GPU memory: the driver's own module and, for drivers before R470, one that is
// built separately.
const (
	Peermem = "nvidia_peermem"
	Legacy  = "nv_peer_mem"
)

// An API is the origin of ib_core's interface for peer memory.
type API string

// The origins of the interface.
const (
	NoAPI  API = ""
	Inbox  API = "inbox" // the distribution's kernel; only Ubuntu's has it
	OFED   API = "ofed"
	peerFn     = "ib_register_peer_memory_client"
)

// Errors of loading a module.
var (
	ErrNoDevice = errors.New("no such device")
	ErrInvalid  = errors.New("invalid argument")
)

// A Driver is NVIDIA's driver in a guest. Its fields must not change after creation. It is safe for concurrent use.
type Driver struct {
	GPUs   func() []GPU
	Kernel *kernel.Kernel
	API    func() API                       // current origin of ib_core's interface
	Logf   func(format string, args ...any) // the kernel log
	NICs   func() []NIC
	Token  func() bool // reports whether the guest has a client configuration token, which a vGPU requires for its license

	mu      sync.Mutex
	version string // installed version, "" if none
	open    bool
	grid    bool            // it is the vGPU guest driver
	legacy  bool            // nv_peer_mem is installed
	built   API             // origin of the interface when the modules were built
	persist map[string]bool // persistence mode, by the address of the GPU
}

// A NIC is an RDMA device in the output of nvidia-smi.
type NIC struct {
	Name   string // mlx5_0
	Remote func(GPU) string
}

// Install builds the modules of a driver version for the running kernel and the current interface of ib_core; grid is true for the
// vGPU guest driver.
func (d *Driver) Install(version string, open, grid bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.version, d.open, d.grid, d.built = version, open, grid, d.API()
}

// InstallLegacy builds nv_peer_mem, or removes it if on is false.
func (d *Driver) InstallLegacy(on bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.legacy = on
	if on {
		d.built = d.API()
	}
}

// Rebuild builds the modules again, as dkms does.
func (d *Driver) Rebuild() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.built = d.API()
}

// Remove removes the modules. Loaded modules stay until the next boot.
func (d *Driver) Remove() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.version = ""
}

// Boot resets persistence mode: it does not outlast a reboot (NVML API Reference, nvmlDeviceSetPersistenceMode).
func (d *Driver) Boot() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.persist = nil
}

// Version returns the installed version, or "" if there is none, and whether the open modules are installed.
func (d *Driver) Version() (version string, open bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.version, d.open
}

// guest reports whether the vGPU guest driver is installed.
func (d *Driver) guest() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.grid
}

// Modules returns the modules in the driver's package.
func (d *Driver) Modules() []kernel.Module {
	version, open := d.Version()
	d.mu.Lock()
	legacy := d.legacy
	d.mu.Unlock()
	var list []kernel.Module
	if legacy {
		list = append(list, kernel.Module{Name: Legacy, Size: 16384, Needs: []string{"ib_core", "nvidia"}, Text: "NVIDIA GPU memory plug-in",
			Path:    "../updates/dkms",
			License: "Dual BSD/GPL", Version: "1.3"})
	}
	if version == "" {
		return list
	}
	license := "NVIDIA"
	if open {
		license = "Dual MIT/GPL"
	}
	for _, m := range []kernel.Module{
		{Name: "nvidia", Size: 9732096, Alias: "pci:v000010DEd*sv*sd*bc03sc02i00*"},
		{Name: "nvidia_uvm", Size: 1961984, Needs: []string{"nvidia"}},
		{Name: "nvidia_modeset", Size: 1724416, Needs: []string{"nvidia"}},
		{Name: "nvidia_drm", Size: 122880, Needs: []string{"nvidia_modeset"}},
		{Name: Peermem, Size: 16384, Needs: []string{"nvidia", "ib_core"}, Text: "NVIDIA GPU memory plug-in"},
	} {
		m.Path, m.License, m.Version = "../updates/dkms", license, version
		if m.Name == Peermem {
			m.License = "Dual BSD/GPL"
		}
		list = append(list, m)
	}
	return list
}

// Init initialises a module. It returns the kernel's error.
func (d *Driver) Init(module string) error {
	switch module {
	case "nvidia":
		if d.Kernel.Loaded("nouveau") { // NVIDIA's README, chapter "Common Problems": another driver has claimed the devices
			d.Logf("NVRM: The NVIDIA probe routine was not called for %d device(s).", len(d.GPUs()))
			d.Logf("NVRM: No NVIDIA devices probed.")
			return ErrNoDevice
		}
		version, open := d.Version()
		for _, g := range d.GPUs() {
			if g.Profile != "" && !d.guest() { // flatcar/Flatcar issue 1283
				d.Logf("NVRM: The NVIDIA GPU %s (PCI ID: 10de:%04x)", g.Address, g.Device)
				d.Logf("NVRM: installed in this system is not supported by the")
				d.Logf("NVRM: NVIDIA %s driver release.", version)
				continue
			}
			if !open || g.Open {
				d.Logf("nvidia-nvlink: Nvlink Core is being initialized, major device number 235")
				d.Logf("NVRM: loading %s", banner(version, open))
				return nil
			}
			d.Logf("NVRM: The NVIDIA GPU %s (PCI ID: 10de:%04x) installed in this system is not supported by open nvidia.ko", g.Address, g.Device)
			d.Logf("NVRM: because it does not include the required GPU System Processor (GSP).")
		}
		d.Logf("NVRM: No NVIDIA GPU found.")
		return ErrNoDevice
	case Peermem, Legacy:
		d.mu.Lock()
		built := d.built
		d.mu.Unlock()
		switch now := d.API(); {
		case built == NoAPI:
			return ErrInvalid // it was built without the interface and has no function
		case now != built:
			for _, fn := range []string{peerFn, "ib_unregister_peer_memory_client"} {
				d.Logf("%s: disagrees about version of symbol %s", module, fn)
				d.Logf("%s: Unknown symbol %s (err -22)", module, fn)
			}
			return ErrInvalid
		}
	}
	return nil
}

// PeerMemory reports whether a network card can register GPU memory: by a peer memory module or, if dmabuf is true, by DMA-BUF,
// which requires the open modules and kernel 5.12 or later.
func (d *Driver) PeerMemory(dmabuf bool) bool {
	if dmabuf {
		_, open := d.Version()
		return open && d.Kernel.AtLeast(5, 12)
	}
	return d.Kernel.Loaded(Peermem) || d.Kernel.Loaded(Legacy)
}

// Ready reports whether the driver can be used. It loads the driver if necessary, as programs do.
func (d *Driver) Ready() bool {
	return d.Kernel.Loaded("nvidia") || d.Kernel.Load("nvidia") == nil
}

func banner(version string, open bool) string {
	if open {
		return "NVIDIA UNIX Open Kernel Module for x86_64  " + version + "  Release Build  (dvs-builder@lab)  "
	}
	return "NVIDIA UNIX x86_64 Kernel Module  " + version + "  Sun Mar 30 07:41:53 UTC 2025"
}

// Proc returns the content of /proc/driver/nvidia/version, or "" if the driver is not loaded.
func (d *Driver) Proc() string {
	version, open := d.Version()
	if version == "" || !d.Kernel.Loaded("nvidia") {
		return ""
	}
	return "NVRM version: " + banner(version, open) + "\n"
}
