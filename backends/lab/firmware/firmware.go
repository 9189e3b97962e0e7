// Package firmware models the adapter cards of the lab's hosts: their identity and their persistent configuration. Each
// parameter has a default value, a current value and a value for the next boot.
package firmware

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Kind is the format of the values of a setting.
type Kind int

// The kinds of settings.
const (
	Number  Kind = iota
	Bool         // False(0), True(1)
	Link         // IB(1), ETH(2)
	Engine       // ENABLED(0), DISABLED(1)
	Control      // DEVICE_DEFAULT(0), ROCE_DISABLE(1), ROCE_ENABLE(2)
)

var names = map[Kind][]string{
	Bool:    {"False", "True"},
	Link:    {"", "IB", "ETH", "VPI"},
	Engine:  {"ENABLED", "DISABLED"},
	Control: {"DEVICE_DEFAULT", "ROCE_DISABLE", "ROCE_ENABLE"},
}

// A Setting is one firmware parameter.
type Setting struct {
	Name                   string
	Kind                   Kind
	Max                    int // upper limit of a Number
	Default, Current, Next int
}

// Text formats a value as mlxconfig does: "16", "True(1)", "ETH(2)".
func (s *Setting) Text(value int) string {
	if list := names[s.Kind]; value >= 0 && value < len(list) {
		return fmt.Sprintf("%s(%d)", list[value], value)
	}
	return strconv.Itoa(value)
}

// ErrRange reports a value that is invalid for the setting.
var ErrRange = errors.New("out of range")

// Parse parses a value: a number, or a name in upper or lower case.
func (s *Setting) Parse(text string) (int, error) {
	list, most := names[s.Kind], s.Max
	if list != nil {
		most = len(list) - 1
	}
	least := 0
	if s.Kind == Link {
		least = 1
	}
	n, err := strconv.ParseInt(text, 0, 32)
	if err != nil {
		n = int64(slices.IndexFunc(list, func(name string) bool { return name != "" && strings.EqualFold(name, text) }))
	}
	if int(n) < least || int(n) > most {
		return 0, fmt.Errorf("%s=%s: %w", s.Name, text, ErrRange)
	}
	return int(n), nil
}

// A Card is one adapter card. Its ports are the functions of one PCI device.
type Card struct {
	PCI         string // address of its first function, 0000:3b:00.0
	Ports       int
	Type        string // ConnectX5
	ID          int    // 4119, the decimal device id in its mst name
	Part        string
	Description string
	PSID        string // MT_..., or another prefix on an OEM card
	Version     string // running version, 16.35.4030
	Flash       string // version that the next boot loads; "" for the same
	Burning     bool   // flint is burning the flash
	Cold        bool   // keeps its power, and so its running firmware, during a reboot of the host
	PXE, UEFI   string
	MAC         string // MAC address of the first port, without colons
	Gen, Lanes  int    // current PCIe generation and width
	Settings    []*Setting
}

// MaxVFs is the maximum number of VFs per port in any firmware (MFT documentation, NUM_OF_VFS).
const MaxVFs = 127

// Function returns the PCI address of a port, counted from 0.
func (c *Card) Function(port int) string { return c.PCI[:len(c.PCI)-1] + strconv.Itoa(port) }

// Has reports whether a PCI address is one of the card's ports.
func (c *Card) Has(address string) bool {
	for port := range c.Ports {
		if c.Function(port) == address {
			return true
		}
	}
	return false
}

// InfiniBand reports whether the port at a PCI address is currently an InfiniBand port. Cards without LINK_TYPE support only
// Ethernet.
func (c *Card) InfiniBand(address string) bool {
	for port := range c.Ports {
		if s := c.Setting("LINK_TYPE_P" + strconv.Itoa(port+1)); s != nil && c.Function(port) == address {
			return s.Current == 1
		}
	}
	return false
}

// Setting returns a parameter, or nil if the card does not have it.
func (c *Card) Setting(name string) *Setting {
	if i := slices.IndexFunc(c.Settings, func(s *Setting) bool { return s.Name == name }); i >= 0 {
		return c.Settings[i]
	}
	return nil
}

// Set sets the current and the next value of a parameter, like a factory setting.
func (c *Card) Set(name string, value int) {
	if s := c.Setting(name); s != nil {
		s.Current, s.Next = value, value
	}
}

// Held returns the firmware version in the card's flash.
func (c *Card) Held() string { return cmp.Or(c.Flash, c.Version) }

// An Image is a file with firmware for boards with one PSID.
type Image struct {
	Path, PSID, Version string
}

// Boot loads the firmware from the flash and applies the settings for the next boot. A burn that the reboot interrupts is
// discarded, and the flash keeps its content. A card that keeps its power during a reboot loads new firmware only if cut is
// true, after a loss of power.
func (c *Card) Boot(cut bool) {
	c.Burning = false
	if cut || !c.Cold {
		c.Version, c.Flash = c.Held(), ""
	}
	if e := c.Setting("INTERNAL_CPU_OFFLOAD_ENGINE"); e != nil && e.Current == 0 && !cut {
		return // in DPU mode the Arm cores continue to run during a host reboot, so settings take effect only after a power cycle
	}
	for _, s := range c.Settings {
		s.Current = s.Next
	}
}

// VFs returns the number of VFs that a port can currently have; 0 while SR-IOV is disabled.
func (c *Card) VFs() int {
	on, n := c.Setting("SRIOV_EN"), c.Setting("NUM_OF_VFS")
	if on == nil || n == nil || on.Current == 0 {
		return 0
	}
	return n.Current
}
