package backends

import (
	"fmt"
	"slices"
	"strings"
)

// A Baseboard is an HGX board: GPUs connected by NVSwitches. On boards up to Hopper the NVSwitches are PCI devices of the host
// (class 0680, vendor 10de). On Blackwell boards they are reached through functions of ConnectX-7 chips, which have the PCI ids
// and the InfiniBand class of an adapter; only their VPD identifies them (SMDL=SW_MNG), and vSphere does not show VPD (NVIDIA,
// Fabric Manager User Guide, "Systems Using Fourth Generation NVSwitches").
type Baseboard struct {
	Name       string   `json:"name"`                 // HGX H100
	Generation string   `json:"generation"`           // Ampere, Hopper, Blackwell
	GPUs       int      `json:"gpus"`                 // number of GPUs on the board
	NVSwitches []string `json:"nvswitches,omitempty"` // PCI addresses
	Management []string `json:"management,omitempty"` // PCI addresses of ConnectX-7 functions that lead, or may lead, to NVSwitches
}

const (
	nvidiaVendor    = "10de"
	classBridge     = "0680" // other bridges
	classInfiniBand = "0207"
	connectX7       = "1021"
)

// sxm maps the PCI device ids of the GPUs of HGX boards to their names (README of NVIDIA/open-gpu-kernel-modules;
// pci-ids.ucw.cz).
var sxm = map[string][2]string{
	"20b0": {"HGX A100", "Ampere"}, "20b2": {"HGX A100", "Ampere"}, "20f3": {"HGX A800", "Ampere"}, "20bd": {"HGX A800", "Ampere"},
	"2330": {"HGX H100", "Hopper"}, "2324": {"HGX H800", "Hopper"}, "2335": {"HGX H200", "Hopper"}, "2329": {"HGX H20", "Hopper"}, "232c": {"HGX H20", "Hopper"},
	"2901": {"HGX B200", "Blackwell"}, "3182": {"HGX B300", "Blackwell"},
}

// FindBaseboard returns the HGX board of a host, identified by its PCI devices; nil if there is none. Boards up to Hopper are
// recognized by their NVSwitches, because boards with four SXM GPUs have none; Blackwell boards are recognized by their GPUs.
func (h *Host) FindBaseboard() *Baseboard {
	b := Baseboard{}
	for _, g := range h.GPUs {
		if is, ok := sxm[g.Device]; ok && g.Vendor == nvidiaVendor {
			b.Name, b.Generation = is[0], is[1]
			b.GPUs++
		}
	}
	for _, d := range h.PCI {
		switch {
		case d.Vendor == nvidiaVendor && d.Class == classBridge:
			b.NVSwitches = append(b.NVSwitches, d.Address)
		case b.Generation == "Blackwell" && d.Vendor == mellanox && d.Device == connectX7 && d.Class == classInfiniBand:
			b.Management = append(b.Management, d.Address)
		}
	}
	switch {
	case len(b.NVSwitches) == 0 && b.Generation != "Blackwell":
		return nil
	case b.Name == "":
		b.Name, b.Generation = "HGX", "unknown"
	}
	return &b
}

func (b *Baseboard) String() string {
	s := fmt.Sprintf("%s baseboard (%s, %d GPUs", b.Name, b.Generation, b.GPUs)
	if n := len(b.NVSwitches); n > 0 {
		s += fmt.Sprintf(", NVSwitches %s", strings.Join(b.NVSwitches, " "))
	}
	if n := len(b.Management); n > 0 {
		s += fmt.Sprintf(", NVSwitches behind ConnectX-7 functions %s", strings.Join(b.Management, " "))
	}
	return s + ")"
}

// LeadsToNVSwitch reports whether a function may lead to the NVSwitches of the host's board. Such a function must stay with the
// host, and its firmware must not be changed.
func (h *Host) LeadsToNVSwitch(address string) bool {
	return h.Baseboard != nil && slices.ContainsFunc(h.Baseboard.Management, func(a string) bool { return strings.EqualFold(a, address) })
}
