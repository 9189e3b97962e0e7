// Package firmware models the adapter cards of the lab's hosts: their identity and the configuration that they keep
// across reboots, with the default value, the current value and that of the next boot.
package firmware

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Kind is how the values of a setting are written.
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

// A Setting is one parameter of the firmware.
type Setting struct {
	Name                   string
	Kind                   Kind
	Max                    int // of a Number
	Default, Current, Next int
}

// Text writes a value as mlxconfig does: "16", "True(1)", "ETH(2)".
func (s *Setting) Text(value int) string {
	if list := names[s.Kind]; value >= 0 && value < len(list) {
		return fmt.Sprintf("%s(%d)", list[value], value)
	}
	return strconv.Itoa(value)
}

// ErrRange reports a value that the setting does not have.
var ErrRange = errors.New("out of range")

// Parse reads a value: a number, or a name in any case.
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
	PCI         string // of its first function, 0000:3b:00.0
	Ports       int
	Type        string // ConnectX5
	ID          int    // 4119, the decimal device id in its mst name
	Part        string
	Description string
	PSID        string // MT_..., or another prefix on an OEM's card
	Version     string // that runs, 16.35.4030
	Flash       string // that the next boot loads, "" for the same
	Burning     bool   // flint writes it
	Cold        bool   // keeps its power over a reboot of the host, and so its firmware
	PXE, UEFI   string
	MAC         string // of the first port, without colons
	Gen, Lanes  int    // of its PCIe link as it runs now
	Settings    []*Setting
}

// MaxVFs is the maximum number of VFs per port in any firmware (MFT documentation, NUM_OF_VFS).
const MaxVFs = 127

// Function is the PCI address of a port, counted from 0.
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

// InfiniBand reports whether the port at a PCI address is an InfiniBand port in this boot. Cards without LINK_TYPE support
// only Ethernet.
func (c *Card) InfiniBand(address string) bool {
	for port := range c.Ports {
		if s := c.Setting("LINK_TYPE_P" + strconv.Itoa(port+1)); s != nil && c.Function(port) == address {
			return s.Current == 1
		}
	}
	return false
}

// Setting finds a parameter; nil when the card has none of that name.
func (c *Card) Setting(name string) *Setting {
	if i := slices.IndexFunc(c.Settings, func(s *Setting) bool { return s.Name == name }); i >= 0 {
		return c.Settings[i]
	}
	return nil
}

// Set sets a parameter for this boot and the next, like a factory setting.
func (c *Card) Set(name string, value int) {
	if s := c.Setting(name); s != nil {
		s.Current, s.Next = value, value
	}
}

// Held returns the firmware version on the card's flash.
func (c *Card) Held() string { return cmp.Or(c.Flash, c.Version) }

// An Image is a file with firmware for boards with one PSID.
type Image struct {
	Path, PSID, Version string
}

// Boot loads the firmware of the flash and makes the values for the next boot those of this one. Whoever wrote to the flash then
// has lost the host under it, and the flash holds what it held. A card that keeps its power over a reboot loads its firmware only
// after the power was cut.
func (c *Card) Boot(cut bool) {
	c.Burning = false
	if cut || !c.Cold {
		c.Version, c.Flash = c.Held(), ""
	}
	if e := c.Setting("INTERNAL_CPU_OFFLOAD_ENGINE"); e != nil && e.Current == 0 && !cut {
		return // in DPU mode the Arm cores stay up over a reboot of the host: its settings wait for a power cycle
	}
	for _, s := range c.Settings {
		s.Current = s.Next
	}
}

// VFs returns how many VFs a port can have in this boot: 0 while SR-IOV is off.
func (c *Card) VFs() int {
	on, n := c.Setting("SRIOV_EN"), c.Setting("NUM_OF_VFS")
	if on == nil || n == nil || on.Current == 0 {
		return 0
	}
	return n.Current
}
