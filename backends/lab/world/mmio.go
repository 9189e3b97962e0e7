package world

import (
	"fmt"
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
