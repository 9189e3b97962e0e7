package world

import "fmt"

// A BAR is one memory region of a PCI function.
type BAR struct {
	Index int
	MB    int64
	Wide  bool // 64-bit and prefetchable: it may be above 4 GB
}

// A GPU contains the data that NVIDIA's driver shows about a GPU.
type GPU struct {
	Name         string // as nvidia-smi prints it
	Architecture string
	MemoryMiB    int64 // framebuffer that the driver shows: less than MemoryMB if ECC uses a part
	VBIOS        string
	Watts        int
	Gen          int  // of PCIe
	Open         bool // supported by the open kernel modules: Turing and later
}

// Above returns the bridges above a device, the nearest first.
func (h *Host) Above(address string) []string {
	var list []string
	for d := h.PCIDevice(address); d != nil && d.Parent != ""; d = h.PCIDevice(d.Parent) {
		list = append(list, d.Parent)
	}
	return list
}

// A Distance is how far two devices of a host are from each other, in the terms of nvidia-smi.
type Distance string

// The distances, the nearest first.
const (
	OneSwitch  Distance = "PIX"  // one bridge at most
	SwitchTree Distance = "PXB"  // several bridges, below one root port
	RootPorts  Distance = "NODE" // different root ports of one socket
	Sockets    Distance = "SYS"
)

// Distance returns how far two PCI functions are from each other.
func (h *Host) Distance(a, b string) Distance {
	up, other := h.Above(a), h.Above(b)
	if len(up) == 0 || len(other) == 0 || up[len(up)-1] != other[len(other)-1] {
		x, y := h.PCIDevice(a), h.PCIDevice(b)
		if x != nil && y != nil && x.NUMA == y.NUMA {
			return RootPorts
		}
		return Sockets
	}
	// A switch has an upstream port and a downstream port for each slot.
	if len(up) > 1 && len(other) > 1 && up[1] == other[1] || up[0] == other[0] {
		return OneSwitch
	}
	return SwitchTree
}

// nearGPU is the first GPU that is below the same root port as a port of a Mellanox card, "" if there is none.
func (h *Host) nearGPU() string {
	for _, d := range h.PCI {
		for _, p := range h.PNICs {
			if c := h.PCIDevice(p.PCI); d.GPU != nil && c != nil && c.Vendor == 0x15b3 && (h.Distance(d.Address, p.PCI) == OneSwitch || h.Distance(d.Address, p.PCI) == SwitchTree) {
				return d.Address
			}
		}
	}
	return ""
}

// ShortPCI writes 0000:3b:00.2 as 59:0.2, as the VMX process names devices.
func ShortPCI(address string) string {
	var segment, bus, slot, function int
	_, _ = fmt.Sscanf(address, "%04x:%02x:%02x.%x", &segment, &bus, &slot, &function)
	return fmt.Sprintf("%d:%d.%d", bus, slot, function)
}

// ShareMB returns the GPU memory of a VM's vGPUs: a profile names it in GB, as grid_a100d-40c does.
func (v *VM) ShareMB() int64 {
	total := int64(0)
	for _, d := range v.Devices {
		total += d.shareMB()
	}
	return total
}
