package world

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// smallWindow is the number of 4 KiB pages that devices may map below 4 GB: 3.5 GiB (Dell KB 000199172).
const smallWindow = 917504

// defaultWindowGB is the default size of the MMIO window above 4 GB (frankdenneman.nl, 2023-05-30).
const defaultWindowGB = 32

// Window is the address space that a VM's firmware reserves for device memory.
type Window struct {
	Pages  int64 // number of 4 KiB pages that the devices map
	Limit  int64 // maximum of Pages, 0 if there is a window above 4 GB
	WideKB int64 // size of the regions that may be mapped above 4 GB
	HighKB int64 // size of the window above 4 GB; 0: none
}

// MMIO computes the address space for a VM and its devices. A window above 4 GB requires EFI and the key with the value
// TRUE; its size is a power of two in GB. An invalid value, such as one in quotes, has no effect.
func (s *State) MMIO(v *VM) Window {
	var w Window
	var all [][]BAR
	for _, d := range s.Given(v) {
		all = append(all, d.BARs)
	}
	for _, d := range v.Devices {
		if d.Profile != "" {
			all = append(all, d.BARs())
		}
	}
	for _, bars := range all {
		if len(bars) == 0 {
			continue
		}
		for _, b := range bars {
			w.Pages += b.MB << 20 >> 12
			if b.Wide {
				w.WideKB += b.MB << 10
			}
		}
		w.Pages += 2 // two extra pages, as in the log of Dell KB 000199172: 16 GiB + 48 MiB and two pages
	}
	if !strings.EqualFold(v.Setting("pciPassthru.use64bitMMIO"), "TRUE") || v.Firmware != "efi" {
		w.Limit = smallWindow
		return w
	}
	gb, err := strconv.ParseInt(v.Setting("pciPassthru.64bitMMIOSizeGB"), 10, 32)
	if err != nil || gb <= 0 || gb&(gb-1) != 0 {
		gb = defaultWindowGB
	}
	w.HighKB = gb << 20
	return w
}

// TooSmall reports whether power-on fails: the devices do not fit below 4 GB, and there is no window above 4 GB.
func (w Window) TooSmall() bool { return w.Limit > 0 && w.Pages > w.Limit }

// short returns the firmware's error if the window above 4 GB is too small for the devices, otherwise "". After this error the
// VM powers off immediately (KB 323402). An L4, with 32 GiB and 32 MiB, requires 33587200 KB.
func (w Window) short() string {
	if w.HighKB == 0 || w.WideKB <= w.HighKB {
		return ""
	}
	return fmt.Sprintf("The firmware could not allocate %d KB of PCI MMIO. Increase the size of PCI MMIO and try again.", w.WideKB)
}

// Setting returns the value of a VMX key. Keys are case-insensitive.
func (v *VM) Setting(key string) string {
	for k, value := range v.Extra {
		if strings.EqualFold(k, key) {
			return value
		}
	}
	return ""
}

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
			if c := h.PCIDevice(p.PCI); d.GPU != nil && c != nil && c.Vendor == 0x15b3 &&
				(h.Distance(d.Address, p.PCI) == OneSwitch || h.Distance(d.Address, p.PCI) == SwitchTree) {
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

// Icen is Intel's driver for E810 cards. Its list parameter RDMA contains one number per port, which enables the port's RDMA
// device at boot (irdman 1.4.4.0 release notes: RDMA is turned on in the LAN driver by parameter RDMA, after a reboot; the
// format is that of configure_icen.sh in public repositories).
const Icen = "icen"

// rdmaByIcen adds or removes the RDMA devices of icen's ports according to the module parameter.
func (h *Host) rdmaByIcen() {
	m := h.Module(Icen)
	if m == nil || m.Parameter("RDMA") == nil {
		return
	}
	list := strings.Split(m.Parameter("RDMA").Active, ",")
	for at, p := range h.Ports(Icen) {
		switch on := at < len(list) && strings.TrimSpace(list[at]) == "1"; {
		case !on:
			p.RDMA = nil
		case p.RDMA == nil:
			p.RDMA = &RDMA{Name: h.freeRDMA(), Driver: "irdman", RoCEv2: true}
		}
	}
}

// freeRDMA returns the first unused RDMA device name of the host.
func (h *Host) freeRDMA() string {
	for n := 0; ; n++ {
		name := fmt.Sprintf("vmrdma%d", n)
		if !slices.ContainsFunc(h.PNICs, func(p *PNIC) bool { return p.RDMA != nil && p.RDMA.Name == name }) {
			return name
		}
	}
}
