package scenario

import (
	"fmt"
	"slices"

	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

// gpuMake is a GPU model. IDs are from pci.ids. BAR sizes are those that lspci and vmware.log show (Tesla P40: 16 MiB, 32 GiB,
// 32 MiB; H100 and H200: see regions).
type gpuMake struct {
	device, sub uint16
	name        string
	memoryGB    int64
	bar1        int64 // MB
	gpu         world.GPU
}

var gpuMakes = map[string]gpuMake{
	"k80": {0x102d, 0x106c, "GK210GL [Tesla K80]", 12, 16 << 10, gpu("Tesla K80", "Kepler", 11441, "80.21.1B.00.01", 149, 3, false)},
	"p40": {0x1b38, 0x11d9, "GP102GL [Tesla P40]", 24, 32 << 10, gpu("Tesla P40", "Pascal", 22919, "86.02.23.00.01", 250, 3, false)},
	"v100-16g": {0x1db4, 0x1214, "GV100GL [Tesla V100 PCIe 16GB]", 16, 16 << 10, gpu("Tesla V100-PCIE-16GB", "Volta", 16384, "88.00.1A.00.03",
		250, 3, false)},
	"v100-32g": {0x1db6, 0x124a, "GV100GL [Tesla V100 PCIe 32GB]", 32, 32 << 10, gpu("Tesla V100-PCIE-32GB", "Volta", 32768, "88.00.48.00.02",
		250, 3, false)},
	"t4":  {0x1eb8, 0x12a2, "TU104GL [Tesla T4]", 16, 256, gpu("Tesla T4", "Turing", 15360, "90.04.38.00.03", 70, 3, true)},
	"a30": {0x20b7, 0x1532, "GA100GL [A30 PCIe]", 24, 32 << 10, gpu("NVIDIA A30", "Ampere", 24576, "92.00.66.00.04", 165, 4, true)},
	"a40": {0x2235, 0x145a, "GA102GL [A40]", 48, 64 << 10, gpu("NVIDIA A40", "Ampere", 46068, "94.02.5C.00.03", 300, 4, true)},
	"a100-40g": {0x20f1, 0x145f, "GA100 [A100 PCIe 40GB]", 40, 64 << 10, gpu("NVIDIA A100-PCIE-40GB", "Ampere", 40960, "92.00.25.00.08", 250,
		4, true)},
	"a100-80g": {0x20b5, 0x1533, "GA100 [A100 PCIe 80GB]", 80, 128 << 10, gpu("NVIDIA A100 80GB PCIe", "Ampere", 81920, "92.00.A0.00.05", 300,
		4, true)},
	"h100-80g": {0x2331, 0x1626, "GH100 [H100 PCIe]", 80, 128 << 10, gpu("NVIDIA H100 PCIe", "Hopper", 81559, "96.00.74.00.01", 350, 5,
		true)},
	"h100-sxm": {0x2330, 0x16c1, "GH100 [H100 SXM5 80GB]", 80, 128 << 10, gpu("NVIDIA H100 80GB HBM3", "Hopper", 81559, "96.00.89.00.01", 700,
		5, true)},
	"h200": {0x2335, 0x18bf, "GH100 [H200 SXM 141GB]", 141, 256 << 10, gpu("NVIDIA H200", "Hopper", 143771, "96.00.A5.00.1A", 700, 5,
		true)},
	"b200":      {0x2901, 0x1999, "GB100 [B200]", 180, 256 << 10, gpu("NVIDIA B200", "Blackwell", 183359, "97.00.82.00.01", 1000, 5, true)},
	"l40s":      {0x26b9, 0x1851, "AD102GL [L40S]", 48, 64 << 10, gpu("NVIDIA L40S", "Ada Lovelace", 46068, "95.02.66.00.02", 350, 4, true)},
	"unknown-x": {0x2fff, 0x0001, "Device 2fff", 0, 64 << 10, gpu("NVIDIA Graphics Device", "Unknown", 49152, "99.00.00.00.01", 400, 5, true)},
}

func gpu(name, architecture string, memoryMiB int64, vbios string, watts, gen int, open bool) world.GPU {
	return world.GPU{Name: name, Architecture: architecture, MemoryMiB: memoryMiB, VBIOS: vbios, Watts: watts, Gen: gen, Open: open}
}

func bar(index int, mb int64, wide bool) world.BAR {
	return world.BAR{Index: index, MB: mb, Wide: wide}
}

// newGPU returns a GPU of a model behind a bridge.
func newGPU(kind, address, parent string, numa int) *world.PCIDevice {
	m := gpuMakes[kind]
	d := &world.PCIDevice{Address: address, Parent: parent, Class: 0x0302, Vendor: nvidia, Device: m.device, SubVendor: nvidia,
		VendorName: "NVIDIA Corporation", DeviceName: m.name, NUMA: numa, MemoryMB: m.memoryGB << 10, PassthruCapable: true}
	Know(d)
	return d
}

// regions returns the memory regions. From Hopper on the first has 64 bits too and takes two BARs, so the others are 2 and 4 (lspci
// of a real H100 SXM and a real H200, 10de:2330 and 10de:2335: Region 0 of 16 MiB, 2 of 128 or 256 GiB, 4 of 32 MiB, all 64-bit and
// prefetchable; public lspci of 10de:2bb5 and 10de:3182, Blackwell: BAR 2).
func (m gpuMake) regions() []world.BAR {
	list := []world.BAR{bar(0, 16, false), bar(1, m.bar1, true), bar(3, 32, true)}
	if m.gpu.Architecture == "Hopper" || m.gpu.Architecture == "Blackwell" {
		list[0].Wide, list[1].Index, list[2].Index = true, 2, 4
	}
	return list
}

// nvidia is NVIDIA's PCI vendor ID.
const nvidia = 0x10de

// bridgeAt returns a bridge of the PCI tree: a root port if parent is empty, otherwise a port of a switch.
func bridgeAt(address, parent string, numa int) *world.PCIDevice {
	d := &world.PCIDevice{Address: address, Parent: parent, Class: 0x0604, Vendor: 0x8086, Device: 0x2030,
		VendorName: "Intel Corporation", DeviceName: "Sky Lake-E PCI Express Root Port A", NUMA: numa, Bridge: true}
	if parent != "" {
		d.Vendor, d.Device, d.VendorName, d.DeviceName = 0x10b5, 0x9765, "PLX Technology, Inc.", "PEX9765 PCI Express Fan-out Switch"
	}
	return d
}

// gpuBroken returns variants of gpudirect-done with one fault that only a site with GPUs can have. Unless the text says
// otherwise, the fault is on the last host and in the last VM in the answers.
func gpuBroken() []brokenScenario {
	host := func(f func(*world.Host)) func(*world.State) {
		return func(s *world.State) {
			if v := lastAskedOf(s); v != nil {
				f(s.Host(v.Host))
			}
		}
	}
	defects := func(f ...world.Defect) func(*world.State) {
		return lastAsked(func(v *world.VM) { v.Guest.Defects = f })
	}
	key := func(name, value string) func(*world.State) {
		return lastAsked(func(v *world.VM) { v.Extra[name] = value })
	}
	off := func(v *world.VM) { v.On, v.Guest.Up, v.Adapters[0].Connected = false, false, false }
	return []brokenScenario{
		{name: "models", text: "a host has another model of GPU", inject: host(func(h *world.Host) {
			d := h.PCIDevice("0000:af:00.0")
			*d = *newGPU("h100-80g", d.Address, d.Parent, d.NUMA)
		})},
		{name: "persistence", text: "a guest does not keep its GPU initialized", inject: defects(world.NoPersistence)},
		{name: "inactive", text: "passthrough of a GPU is active only after a reboot; its VM is off", inject: func(s *world.State) {
			lastAsked(off)(s)
			host(func(h *world.Host) { d := h.PCIDevice("0000:3c:00.0"); d.PassthruActive, d.AtBoot = false, true })(s)
		}},
		{name: "graphics", text: "a host shares its GPUs by default", inject: host(func(h *world.Host) { h.Shared = "sharedDirect" })},
		{name: "p2p", text: "a VM has no pciPassthru.allowP2P", inject: lastAsked(func(v *world.VM) { delete(v.Extra, "pciPassthru.allowP2P") })},
		{name: "acs", text: "a VM has no pciPassthru.RelaxACSforP2P",
			inject: lastAsked(func(v *world.VM) { delete(v.Extra, "pciPassthru.RelaxACSforP2P") })},
		{name: "quotes", text: "pciPassthru.RelaxACSforP2P of a VM has quotes in it", inject: key("pciPassthru.RelaxACSforP2P", `"TRUE"`)},
		{name: "window-off", text: "a VM has no MMIO window above 4 GB, and is off", inject: lastAsked(func(v *world.VM) {
			off(v)
			delete(v.Extra, "pciPassthru.use64bitMMIO")
		})},
		{name: "window-small", text: "the MMIO window of a VM has the size in the guide, which is too small; the VM is off",
			inject: lastAsked(func(v *world.VM) {
				off(v)
				v.Extra["pciPassthru.64bitMMIOSizeGB"] = "128"
			})},
		{name: "memory", text: "a VM has less memory than its GPU",
			inject: lastAsked(func(v *world.VM) { v.MemoryMB, v.Reserved = 64<<10, 64<<10 })},
		{name: "reservation", text: "the memory of a VM is not reserved, and the VM is off", inject: lastAsked(func(v *world.VM) {
			off(v)
			v.Locked, v.Reserved = false, 0
		})},
		{name: "driver", text: "a guest has no NVIDIA driver", inject: defects(world.NoGPUDriver)},
		{name: "peermem", text: "a guest with the proprietary driver does not load nvidia_peermem",
			inject: defects(world.ClosedDriver, world.NoPeermem)},
		{name: "order", text: "MLNX_OFED was installed in a guest after the NVIDIA driver", inject: defects(world.ClosedDriver, world.OFEDLater)},
	}
}

// a100Profiles are vGPU profiles of an A100 with 80 GB: time-sliced C-series profiles, MIG-backed profiles, and one Q-series
// profile.
var a100Profiles = []string{"grid_a100d-8c", "grid_a100d-10c", "grid_a100d-20c", "grid_a100d-40c", "grid_a100d-80c", "grid_a100d-3-40c",
	"grid_a100d-7-80c", "grid_a100d-4q"}

// vgpuManager is the VIB of NVIDIA's vGPU Manager (NVIDIA AI Enterprise, Deployment Guide for VMware vSphere:
// NVD-AIE_ESXi_8.0.0_Driver).
var vgpuManager = world.VIB{Name: "NVD-AIE_ESXi_8.0.0_Driver", Version: "570.133.10-1OEM.800.1.0.20613240", Vendor: "NVIDIA",
	Acceptance: "VMwareAccepted"}

// manager installs the vGPU Manager, which offers profiles.
func manager(h *world.Host, profiles []string) {
	h.VGPUs, h.VIBs = profiles, append(h.VIBs, vgpuManager)
}

// vgpuGDR removes all GPUs except the A100 on the switch of the HCA, and requests a vGPU that uses the complete A100.
func vgpuGDR(s *world.State) {
	for _, h := range s.Hosts {
		drop(h, "0000:af:00.0")
		manager(h, a100Profiles)
	}
	s.VGPU, s.GPUs = "grid_a100d-80c", nil
	for _, v := range s.Asked() {
		v.Guest.Preset = "vgpu"
	}
}

// vgpuGuests is like vgpuGDR with two guests that cannot use their vGPU.
func vgpuGuests(s *world.State) {
	vgpuGDR(s)
	asked := s.Asked()
	asked[0].Guest.Preset, asked[len(asked)-1].Guest.Defects = "gpudirect", []world.Defect{world.NoLicense}
	s.Refused = map[string]string{"gpudirect": "3 (a guest has the driver for whole GPUs, another no license for its vGPU)"}
}

// vgpuBare is like vgpuGDR without the vGPU Manager. NVIDIA's offline bundle with it is on the datastore.
func vgpuBare(s *world.State) {
	vgpuGDR(s)
	for _, h := range s.Hosts {
		h.VGPUs, h.Shares, h.VIBs = nil, h.VGPUs, h.VIBs[:len(h.VIBs)-1]
	}
	s.Manager = "/vmfs/volumes/shared-01/rdma/" + vgpuBundle
	s.Depot = append(s.Depot, &world.Package{Path: s.Manager, VIBs: []world.VIB{vgpuManager}})
}

// vgpuBundle is the file name of NVIDIA's download.
const vgpuBundle = "NVD-AIE-800_570.133.10-1OEM.800.1.0.20613240_24624534.zip"

// vgpuImage is like vgpuBare in a cluster that is managed by an image. The bundle is on a web server.
func vgpuImage(s *world.State) {
	vgpuBare(s)
	s.Depot, s.Manager = nil, ImageDepot+vgpuBundle
	s.Services.Image = &world.Image{Base: "8.0.3-0.35.24022510", Components: map[string]string{}, Commits: 1}
	s.Lifecycle.Bundles = []world.Bundle{
		{Location: s.Manager, Name: "NVD-AIE-800", Version: vgpuManager.Version, Vendor: "NVIDIA", VIBs: []world.VIB{vgpuManager}}}
}

// board replaces the GPUs of each host with the eight GPUs of an HGX board, each below its own root port. The first one is on
// the switch of the RDMA card.
func board(s *world.State, kind string, profiles []string, rest func(h *world.Host)) {
	for _, h := range s.Hosts {
		drop(h, "0000:3c:00.0", "0000:af:00.0")
		h.PCI = append(h.PCI, newGPU(kind, "0000:3c:00.0", "0000:39:01.0", 0))
		for n := 1; n < 8; n++ {
			root := fmt.Sprintf("0000:%02x:00.0", 0x40+0x10*n)
			h.PCI = append(h.PCI, bridgeAt(root, "", n/4), newGPU(kind, fmt.Sprintf("0000:%02x:00.0", 0x41+0x10*n), root, n/4))
		}
		manager(h, profiles)
		for _, n := range []int{2, 4, 8} { // groups of GPUs, each vGPU being a complete GPU
			whole := profiles[len(profiles)-1]
			h.Groups = append(h.Groups, world.DeviceGroup{Name: fmt.Sprintf("Nvidia:%d@%s%%NVLink", n, whole),
				VGPUs: slices.Repeat([]string{whole}, n)})
		}
		rest(h)
	}
	for _, v := range s.Asked() {
		v.Guest.Preset = "vgpu"
	}
	s.Refused = map[string]string{"gpudirect": "3 (NVIDIA does not support GPU passthrough on boards with NVSwitches under vSphere)"}
}

// hgxH100 adds the NVSwitches of an HGX H100 as lspci shows them: 10de:22a3, class 0680.
func hgxH100(s *world.State) {
	board(s, "h100-sxm", []string{"grid_h100xm-10c", "grid_h100xm-20c", "grid_h100xm-40c", "grid_h100xm-80c"}, func(h *world.Host) {
		h.PCI = append(h.PCI, bridgeAt("0000:c8:00.0", "", 1))
		for n := range 4 {
			h.PCI = append(h.PCI, &world.PCIDevice{Address: fmt.Sprintf("0000:%02x:00.0", 0xc9+n), Parent: "0000:c8:00.0", Class: 0x0680,
				Vendor: nvidia, Device: 0x22a3,
				SubVendor: nvidia, SubDevice: 0x1796, VendorName: "NVIDIA Corporation", DeviceName: "GH100 [H100 NVSwitch]", NUMA: 1,
				PassthruCapable: true,
				BARs:            []world.BAR{bar(0, 32, true)}})
		}
	})
}

// hgxNoManager is hgxH100 with a vGPU that the answers ask for, on hosts whose vGPU Manager was removed.
func hgxNoManager(s *world.State) {
	hgxH100(s)
	for _, h := range s.Hosts {
		h.VGPUs, h.VIBs = nil, slices.DeleteFunc(h.VIBs, func(v world.VIB) bool { return v.Name == vgpuManager.Name })
	}
	s.VGPU, s.GPUs = "grid_h100xm-80c", nil
	s.Refused = map[string]string{"gpudirect": "3 (the NVIDIA vGPU Manager is not installed)"}
}

// hgxB200 adds functions of the ConnectX-7 chips in front of its NVSwitches. Their PCI headers do not show that purpose.
func hgxB200(s *world.State) {
	board(s, "b200", []string{"grid_b200x-45c", "grid_b200x-90c", "grid_b200x-180c"}, func(h *world.Host) {
		h.PCI = append(h.PCI, bridgeAt("0000:c8:00.0", "", 1))
		for n := range 4 {
			h.PCI = append(h.PCI, &world.PCIDevice{Address: fmt.Sprintf("0000:%02x:00.%d", 0xc9+n/2, n%2), Parent: "0000:c8:00.0", Class: 0x0207,
				Vendor: 0x15b3, Device: 0x1021,
				SubVendor: 0x15b3, SubDevice: 0x0023, VendorName: mellanox, DeviceName: "MT2910 Family [ConnectX-7]", NUMA: 1, PassthruCapable: true,
				BARs: []world.BAR{bar(0, 32, true)}})
		}
	})
}
