package world

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// shareMB returns the framebuffer size in the name of a vGPU profile, or 0 if the device is not a vGPU.
func (d *Passthrough) shareMB() int64 {
	gb := int64(0)
	if i := strings.LastIndexByte(d.Profile, '-'); i >= 0 {
		_, _ = fmt.Sscanf(d.Profile[i+1:], "%d", &gb)
	}
	return gb << 10
}

// BARs returns the memory regions of a vGPU. A vGPU with 16 GB of framebuffer or more maps it, like a GPU (stephenwagner.com
// 2022/09, frankdenneman.nl 2023/05: larger profiles require a window above 4 GB, smaller ones do not).
func (d *Passthrough) BARs() []BAR {
	bar1 := int64(256)
	if mb := d.shareMB(); mb >= 16<<10 {
		for bar1 = 16 << 10; bar1 < mb; bar1 *= 2 {
		}
	}
	return []BAR{{Index: 0, MB: 16}, {Index: 1, MB: bar1, Wide: true}, {Index: 3, MB: 32, Wide: true}}
}

// ErrNoShare reports that a host has no GPU with free memory for a vGPU.
var ErrNoShare = errors.New("no GPU has room for a share")

// PlaceShares selects the GPUs of a VM's vGPUs, as a host does at power-on: the GPU with the fewest vGPUs first (the assignment
// policy "performance"). All vGPUs of a GPU have the same size and are either all time-sliced or all backed by MIG (VMware,
// What's New for GPUs in vSphere 8 Update 3; mixed-size mode is off on the lab's hosts).
func (s *State) PlaceShares(v *VM) (gpus []string, err error) {
	h := s.Host(v.Host)
	on := map[string][]*Passthrough{}
	for _, other := range s.VMs {
		if other.Host != v.Host || !other.On || other.Name == v.Name {
			continue
		}
		for _, d := range other.Devices {
			if d.Profile != "" && d.Source != "" {
				on[d.Source] = append(on[d.Source], d)
			}
		}
	}
	for _, d := range v.Devices {
		if d.Profile == "" {
			continue
		}
		best := ""
		for _, c := range h.PCI {
			if c.GPU != nil && !c.PassthruActive && d.joins(on[c.Address], c.MemoryMB) && (best == "" || len(on[c.Address]) < len(on[best])) {
				best = c.Address
			}
		}
		if best == "" || !slices.Contains(h.VGPUs, d.Profile) { // without the vGPU Manager a host has no profiles
			return nil, ErrNoShare
		}
		on[best], gpus = append(on[best], d), append(gpus, best)
	}
	return gpus, nil
}

// joins reports whether a GPU with that much memory and those vGPUs has room for another one.
func (d *Passthrough) joins(others []*Passthrough, memoryMB int64) bool {
	sum := d.shareMB()
	for _, o := range others {
		if d.backedByMIG() != o.backedByMIG() || !d.backedByMIG() && o.shareMB() != d.shareMB() {
			return false
		}
		sum += o.shareMB()
	}
	return sum <= memoryMB
}

// backedByMIG reports whether the profile is backed by MIG: such a profile has a number before the framebuffer size, as in
// grid_a100d-3-40c.
func (d *Passthrough) backedByMIG() bool { return strings.Count(d.Profile, "-") > 1 }

// AssignVGPUs assigns GPUs of the host to a VM's vGPUs.
func (s *State) AssignVGPUs(v *VM) error {
	gpus, err := s.PlaceShares(v)
	if err != nil {
		return err
	}
	for _, d := range v.Devices {
		if d.Profile != "" {
			d.Source, gpus = gpus[0], gpus[1:]
		}
	}
	return nil
}

// SharedGPU returns the GPU of a vGPU. Before the first run of the VM, it returns the first suitable GPU.
func (h *Host) SharedGPU(d *Passthrough) *PCIDevice {
	if c := h.PCIDevice(d.Source); c != nil {
		return c
	}
	return find(h.PCI, func(c *PCIDevice) bool { return c.GPU != nil && !c.PassthruActive && c.MemoryMB >= d.shareMB() })
}
