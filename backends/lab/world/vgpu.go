package world

import (
	"fmt"
	"strings"
)

// shareMB is the framebuffer of a vGPU by its profile, 0 of what is none.
func (d *Passthrough) shareMB() int64 {
	gb := int64(0)
	if i := strings.LastIndexByte(d.Profile, '-'); i >= 0 {
		_, _ = fmt.Sscanf(d.Profile[i+1:], "%d", &gb)
	}
	return gb << 10
}

// BARs are the regions of a vGPU: one with 16 GB of framebuffer or more maps it, like a GPU does (stephenwagner.com 2022/09,
// frankdenneman.nl 2023/05: larger profiles need a window above 4 GB, smaller ones do not).
func (d *Passthrough) BARs() []BAR {
	bar1 := int64(256)
	if mb := d.shareMB(); mb >= 16<<10 {
		for bar1 = 16 << 10; bar1 < mb; bar1 *= 2 {
		}
	}
	return []BAR{{Index: 0, MB: 16}, {Index: 1, MB: bar1, Wide: true}, {Index: 3, MB: 32, Wide: true}}
}

// SharedGPU is the GPU of a host that a vGPU is of: the first that is not passed through and has the memory. ESXi chooses it at power-on;
// the lab's hosts have one that fits.
func (h *Host) SharedGPU(profile string) *PCIDevice {
	mb := (&Passthrough{Profile: profile}).shareMB()
	return find(h.PCI, func(c *PCIDevice) bool { return c.GPU != nil && !c.PassthruActive && c.MemoryMB >= mb })
}
