package world

import "fmt"

// A BAR is one memory region of a PCI function.
type BAR struct {
	Index int
	MB    int64
	Wide  bool // 64-bit and prefetchable: it may be mapped above 4 GB
}

// A GPU contains the properties that NVIDIA's driver reports for a GPU.
type GPU struct {
	Name         string // name that nvidia-smi prints
	Architecture string
	MemoryMiB    int64 // framebuffer that the driver reports: less than MemoryMB if ECC uses a part of it
	VBIOS        string
	Watts        int
	Gen          int  // PCIe generation
	Open         bool // supported by the open kernel modules: Turing and later
}

// Above returns the bridges above a device, starting with the nearest.
func (h *Host) Above(address string) []string {
	var list []string
	for d := h.PCIDevice(address); d != nil && d.Parent != ""; d = h.PCIDevice(d.Parent) {
		list = append(list, d.Parent)
	}
	return list
}

// A Distance is the topological distance of two devices of a host, in the terms of nvidia-smi.
type Distance string

// Distances, in increasing order.
const (
	OneSwitch  Distance = "PIX"  // at most one bridge
	SwitchTree Distance = "PXB"  // several bridges, below one root port
	RootPorts  Distance = "NODE" // different root ports of the same socket
	Sockets    Distance = "SYS"
)

// Distance returns the distance of two PCI functions.
func (h *Host) Distance(a, b string) Distance {
	up, other := h.Above(a), h.Above(b)
	if len(up) == 0 || len(other) == 0 || up[len(up)-1] != other[len(other)-1] {
		x, y := h.PCIDevice(a), h.PCIDevice(b)
		if x != nil && y != nil && x.NUMA == y.NUMA {
			return RootPorts
		}
		return Sockets
	}
	// A PCIe switch has one upstream port, and one downstream port for each slot.
	if len(up) > 1 && len(other) > 1 && up[1] == other[1] || up[0] == other[0] {
		return OneSwitch
	}
	return SwitchTree
}

// nearGPU returns the first GPU below the same root port as a port of a Mellanox card, or "" if there is none.
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

// ShortPCI converts 0000:3b:00.2 to 59:0.2, the format in which the VMX process names devices.
func ShortPCI(address string) string {
	var segment, bus, slot, function int
	_, _ = fmt.Sscanf(address, "%04x:%02x:%02x.%x", &segment, &bus, &slot, &function)
	return fmt.Sprintf("%d:%d.%d", bus, slot, function)
}

// ShareMB returns the total GPU memory of a VM's vGPUs. A profile contains its size in GB, for example grid_a100d-40c.
func (v *VM) ShareMB() int64 {
	total := int64(0)
	for _, d := range v.Devices {
		total += d.shareMB()
	}
	return total
}
