package scenario

import "github.com/rdma-setup/rdma-setup/backends/lab/world"

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
	"k80":       {0x102d, 0x106c, "GK210GL [Tesla K80]", 12, 16 << 10, gpu("Tesla K80", "Kepler", 11441, "80.21.1B.00.01", 149, 3, false)},
	"p40":       {0x1b38, 0x11d9, "GP102GL [Tesla P40]", 24, 32 << 10, gpu("Tesla P40", "Pascal", 22919, "86.02.23.00.01", 250, 3, false)},
	"v100-16g":  {0x1db4, 0x1214, "GV100GL [Tesla V100 PCIe 16GB]", 16, 16 << 10, gpu("Tesla V100-PCIE-16GB", "Volta", 16384, "88.00.1A.00.03", 250, 3, false)},
	"v100-32g":  {0x1db6, 0x124a, "GV100GL [Tesla V100 PCIe 32GB]", 32, 32 << 10, gpu("Tesla V100-PCIE-32GB", "Volta", 32768, "88.00.48.00.02", 250, 3, false)},
	"t4":        {0x1eb8, 0x12a2, "TU104GL [Tesla T4]", 16, 256, gpu("Tesla T4", "Turing", 15360, "90.04.38.00.03", 70, 3, true)},
	"a30":       {0x20b7, 0x1532, "GA100GL [A30 PCIe]", 24, 32 << 10, gpu("NVIDIA A30", "Ampere", 24576, "92.00.66.00.04", 165, 4, true)},
	"a40":       {0x2235, 0x145a, "GA102GL [A40]", 48, 64 << 10, gpu("NVIDIA A40", "Ampere", 46068, "94.02.5C.00.03", 300, 4, true)},
	"a100-40g":  {0x20f1, 0x145f, "GA100 [A100 PCIe 40GB]", 40, 64 << 10, gpu("NVIDIA A100-PCIE-40GB", "Ampere", 40960, "92.00.25.00.08", 250, 4, true)},
	"a100-80g":  {0x20b5, 0x1533, "GA100 [A100 PCIe 80GB]", 80, 128 << 10, gpu("NVIDIA A100 80GB PCIe", "Ampere", 81920, "92.00.A0.00.05", 300, 4, true)},
	"h100-80g":  {0x2331, 0x1626, "GH100 [H100 PCIe]", 80, 128 << 10, gpu("NVIDIA H100 PCIe", "Hopper", 81559, "96.00.74.00.01", 350, 5, true)},
	"h100-sxm":  {0x2330, 0x16c1, "GH100 [H100 SXM5 80GB]", 80, 128 << 10, gpu("NVIDIA H100 80GB HBM3", "Hopper", 81559, "96.00.89.00.01", 700, 5, true)},
	"h200":      {0x2335, 0x18bf, "GH100 [H200 SXM 141GB]", 141, 256 << 10, gpu("NVIDIA H200", "Hopper", 143771, "96.00.A5.00.1A", 700, 5, true)},
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
