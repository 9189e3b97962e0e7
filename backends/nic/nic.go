// Package nic contains the differences between the families of RDMA NICs on ESXi: names of drivers, module parameters, firmware
// tools. Each family is a package below; other packages find a family by the driver of a pNIC. The package does no I/O.
package nic

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/nic/bnxt"
	"github.com/rdma-setup/rdma-setup/backends/nic/e810"
	"github.com/rdma-setup/rdma-setup/backends/nic/mlx5"
)

// A Family is a family of NICs with one native driver. Methods return nil or "" for what the family lacks.
type Family interface {
	Vendor() string // PCI vendor id of its cards
	Name() string   // short name of the driver: nmlx5
	Cards() string  // name of the cards: ConnectX
	Driver() string // the module that drives the ports
	RDMA() string   // the module that creates their RDMA devices
	VIBs() []string // packages of the driver

	// Functions returns the PCI device ids of the physical functions that the driver supports.
	Functions() []string

	RoCE() backends.RoCERules
	VFs() backends.VFRules
	Lossless() *backends.LosslessParams
	Firmware() *backends.FirmwareRules
	Tools(backends.HostShell) backends.FirmwareTools // nil if Firmware is nil

	// LeastFirmware returns the oldest documented firmware for a card by its PCI device id, and the first driver version that
	// requires it; both "" if nothing is documented.
	LeastFirmware(pciDevice string) (driver, firmware string)

	// Advisories returns the maker's security bulletins about firmware vulnerabilities that a user of a VF can exploit; nil if
	// none are embedded.
	Advisories() []backends.Advisory
}

// Families are all families, in the order in which messages name them.
func Families() []Family { return []Family{mlx5.Family{}, e810.Family{}, bnxt.Family{}} }

// others are drivers that support RoCE but do not have a family here: ConnectX-3 and Marvell FastLinQ (VMware
// Compatibility Guide, feature RDMA RoCE v2; vSphere 7.0 "PVRDMA Support"). ESXi 8 dropped nmlx4.
var others = []struct {
	driver, rdma string
	cards        string // of a driver that was dropped with ESXi 8
}{
	{driver: "nmlx4_core", cards: "ConnectX-3"},
	{driver: "nmlx4_en", cards: "ConnectX-3"},
	{driver: "qedentv", rdma: "qedrntv"},
}

// Of returns the family of a driver, nil for any other.
func Of(driver string) Family {
	for _, f := range Families() {
		if f.Driver() == driver {
			return f
		}
	}
	return nil
}

// OfCard returns the family of a card by its PCI vendor id, nil for any other.
func OfCard(vendor string) Family {
	for _, f := range Families() {
		if f.Vendor() == vendor {
			return f
		}
	}
	return nil
}

// Dropped returns the cards whose driver ESXi 8 dropped; "" for any other driver.
func Dropped(driver string) string {
	for _, o := range others {
		if o.driver == driver {
			return o.cards
		}
	}
	return ""
}

// Modules returns the modules of a host's drivers whose parameters matter, in the order of the families.
func Modules(h *backends.Host) []string {
	var out []string
	for _, f := range Families() {
		if len(Ports(h, f)) > 0 {
			out = append(out, f.Driver(), f.RDMA())
		}
	}
	return out
}

// WithLossless returns the drivers whose parameters can enable PFC for a class.
func WithLossless() string {
	return named(func(f Family) bool { return f.Lossless() != nil }, Family.Driver)
}

// RDMAModules returns the modules that create RDMA devices, for messages that say which one to load.
func RDMAModules() []string {
	var out []string
	for _, f := range Families() {
		out = append(out, f.RDMA())
	}
	for _, o := range others {
		if o.rdma != "" {
			out = append(out, o.rdma)
		}
	}
	return out
}

func named(which func(Family) bool, name func(Family) string) string {
	var out []string
	for _, f := range Families() {
		if which(f) {
			out = append(out, name(f))
		}
	}
	return strings.Join(out, ", ")
}

// Known implements backends.Drivers for the families of this package.
type Known struct{}

// RoCE reports whether a driver is known to do RoCE on ESXi.
func (Known) RoCE(driver string) bool {
	if Of(driver) != nil {
		return true
	}
	for _, o := range others {
		if o.driver == driver {
			return true
		}
	}
	return false
}

// NoVFs returns why this program does not set up VFs on the ports of a driver, as a predicate, and what to do; "" if it does.
func (Known) NoVFs(driver string) (why, remedy string) {
	if f := Of(driver); f != nil {
		return f.VFs().Refused, f.VFs().Remedy
	}
	can := func(f Family) bool { return f.VFs().Refused == "" }
	cards := named(can, Family.Cards)
	return "has driver " + driver + ", and VFs are set up on " + cards + " cards (" + named(can, Family.Driver) + ") only",
		"choose a port of a " + cards + " card, or mode pvrdma"
}

// NoDevice says what to do if a port has no RDMA device, "" if no remedy is known.
func (Known) NoDevice(h *backends.Host, n *backends.NIC) string {
	f := Of(n.Driver)
	switch {
	case f == nil:
		return ""
	case f.RoCE().Enable == "":
		return f.RoCE().NoDevice
	}
	on := strings.TrimSuffix(strings.Repeat("1,", len(Ports(h, f))), ",")
	return "enable RDMA on each of its ports and reboot the host: esxcli system module parameters set -a -m " + f.Driver() + " -p " +
		f.RoCE().Enable + "=" + on +
		" (" + f.RoCE().Source + ")"
}

// RDMAOff reports whether a port has no RDMA device because RDMA is not enabled in its driver.
func (Known) RDMAOff(h *backends.Host, n *backends.NIC) bool { return RDMAOff(h, n) }

// NoENS names the source that excludes RDMA with a driver on a switch in enhanced data path mode, "" if none is known.
func (Known) NoENS(driver string) string {
	if f := Of(driver); f != nil {
		return f.RoCE().NoENS
	}
	return ""
}

// IWARP says what to do if a port uses iWARP, "" if no remedy is known.
func (Known) IWARP(n *backends.NIC) string {
	f := Of(n.Driver)
	if f == nil || f.RoCE().Mode == "" {
		return ""
	}
	return "set the protocol of module " + f.RoCE().Mode + " back to RoCE v2, its default (esxcli system module parameters list -m " +
		f.RoCE().Mode + " names the parameter), and reboot the host (" +
		f.RoCE().Source + ")"
}

// TooOld returns the oldest driver version that supports RDMA if this driver is older; "" otherwise.
func TooOld(n *backends.NIC) string {
	if f := Of(n.Driver); f != nil && f.RoCE().Least != "" && Older(n.DriverVersion, f.RoCE().Least) {
		return f.RoCE().Least
	}
	return ""
}

// RDMAModules returns the result of the package's RDMAModules.
func (Known) RDMAModules() []string { return RDMAModules() }

// firmwareRules returns the rules of the family whose firmware tools have a key, nil if there is none.
func firmwareRules(keys map[string]string) *backends.FirmwareRules {
	for _, f := range Families() {
		r := f.Firmware()
		if r == nil {
			continue
		}
		for key := range keys {
			if slices.Contains(r.Keys, key) {
				return r
			}
		}
	}
	return nil
}

// ENS returns the documentation of a driver on a switch in enhanced data path mode, for VFs or for shared RDMA. excluded is true if
// the driver's vendor excludes it. Statements of other vendors are ignored.
func ENS(driver string, vfs bool) (says string, excluded bool) {
	f := Of(driver)
	switch {
	case !vfs && f != nil && f.RoCE().NoENS != "":
		return fmt.Sprintf("RDMA of %s is not available in it (%s)", driver, f.RoCE().NoENS), true
	case vfs && f != nil && f.VFs().ENS != "":
		return f.VFs().ENS, false
	case vfs:
		return fmt.Sprintf("whether %s creates VFs in it is not documented (unverified)", driver), false
	}
	return fmt.Sprintf("whether RDMA of %s works in it is not documented (unverified)", driver), false
}
