package backends

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// A HostSystem holds facts that only the host itself can report: through esxcli, through a call to the host, or in its shell.
// Each fact has its own state; the table in backends/vsphere/system lists the call for each fact.
type HostSystem struct {
	Modules map[string]Fact[Module] `json:"modules,omitzero"` // by name
	VIBs    Fact[map[string]VIB]    `json:"vibs,omitzero"`    // VIBs of the running image, by name
	// VIBs of the image for the next boot; absent: nothing is staged
	NextVIBs Fact[map[string]VIB] `json:"next_vibs,omitzero"`
	// VMwareCertified, VMwareAccepted, PartnerSupported, CommunitySupported
	Acceptance Fact[string] `json:"acceptance,omitzero"`
	// contents of the component files that were named, as this host sees them
	Offers []Component `json:"offers,omitzero"`
	// Lifecycle Manager components of the running image, version by name; only if an image manages the host
	Components Fact[map[string]string]    `json:"components,omitzero"`
	Exceptions Fact[[]string]             `json:"lockdown_exceptions,omitzero"` // accounts that may log in during lockdown mode
	Pause      Fact[map[string]PauseSpec] `json:"pause,omitzero"`               // active global pause settings, by pNIC
	DCB        map[string]Fact[DCB]       `json:"dcb,omitzero"`                 // by pNIC
	Stats      map[string]Fact[PortStats] `json:"stats,omitzero"`               // by pNIC
	VFs        map[string]Fact[[]VF]      `json:"vfs,omitzero"`                 // by PF's pNIC
	Neighbours Fact[map[string]Neighbour] `json:"neighbours,omitzero"`          // by pNIC; a pNIC without an entry received no announcement
	Peers      map[string]Fact[Peer]      `json:"peers,omitzero"`               // by peer host: whether its PVRDMA vmknic can be reached
	Resync     Fact[int64]                `json:"resync,omitzero"`              // bytes left for vSAN to resynchronize; absent: no vSAN
	BootDevice Fact[string]               `json:"boot_device,omitzero"`         // boot device of ESXi: usb, sd, disk, network

	// The following fields can only be read in the ESXi shell; nil if not requested.
	Firmware   map[string]Firmware `json:"firmware,omitzero"`     // by PCI address of function 0
	SecureBoot *bool               `json:"secure_boot,omitempty"` // the host booted with UEFI secure boot
	Log        []string            `json:"log,omitzero"`          // lines of vmkernel.log since boot that contain one of LogTexts
	ShellError string              `json:"shell_error,omitempty"` // why the shell could not be used
}

// Module returns a module whose parameters were read; the zero Module otherwise.
func (s *HostSystem) Module(name string) Module {
	if s == nil {
		return Module{}
	}
	return s.Modules[name].Value
}

// Image returns the image for the next boot: the staged image, or else the running one.
func (s *HostSystem) Image() Fact[map[string]VIB] {
	if s.NextVIBs.Known() || s.NextVIBs.State == FactUnreadable {
		return s.NextVIBs
	}
	return s.VIBs
}

// A Module is a kernel module of a host.
type Module struct {
	Known  []string          `json:"known"`  // every parameter of the module
	Params map[string]string `json:"params"` // the parameters that are set; a change takes effect at the next boot
}

// A VIB is an installed package.
type VIB struct {
	Version    string `json:"version"`
	Acceptance string `json:"acceptance,omitempty"`
}

// A Component is a VIB in a file on a datastore. If a host cannot read the file, Error is set and Name is empty.
type Component struct {
	Path       string `json:"path"`
	Name       string `json:"name,omitempty"`
	Version    string `json:"version,omitempty"`
	Acceptance string `json:"acceptance,omitempty"`
	Error      string `json:"error,omitempty"`
}

// A VF is a virtual function. Active means that a VM uses it.
type VF struct {
	ID      int    `json:"id"`
	Address string `json:"pci,omitempty"`
	Active  bool   `json:"active"`
}

// DCB is what a pNIC negotiated by Data Center Bridging. PFC has one flag per priority.
type DCB struct {
	Supported bool    `json:"supported"`
	PFC       [8]bool `json:"pfc"`
}

// PortStats is the increase of the counters of a pNIC over the time Over.
type PortStats struct {
	Errors  int64         `json:"errors"`
	Dropped int64         `json:"dropped"`
	Pause   int64         `json:"pause"` // PFC frames in both directions
	Over    time.Duration `json:"over"`
}

// Grown describes the increase of two counters and the time over which they increased.
func (s PortStats) Grown(a string, n int64, b string, m int64) string {
	if n == 0 && m == 0 {
		return fmt.Sprintf("no %s and no %s between two readings", a, b)
	}
	return fmt.Sprintf("%d %s, %d %s in %s", n, a, m, b, s.Over.Round(10*time.Millisecond))
}

// A Neighbour is the switch port that a pNIC receives over LLDP or CDP. The switch is identified by its name, or else by its
// chassis id.
type Neighbour struct {
	Switch string `json:"switch"`
	Port   string `json:"port"` // as the switch spells it: Eth1/7, swp7, ethernet1/1/7
}

// Peer is the result of testing the path to another host's PVRDMA vmknic.
type Peer struct {
	Loss    float64 `json:"loss"`              // percent of pings lost
	Payload int     `json:"payload,omitempty"` // largest ping payload in bytes that arrived unfragmented; 0: not tested
}

// LogTexts are the texts to search for in vmkernel.log, in lower case: a shortage of interrupt vectors (Broadcom KB 313395), and
// a device that the host removed from passthrough because of PCIe hot-plug (HPE a00121002).
var LogTexts = []string{LogVectors, LogPassthrough, LogHotPlug}

const (
	LogVectors     = "out of interrupt vectors"
	LogPassthrough = "is not a passthrough device"
	LogHotPlug     = "pciehp"
)

// Slot is the negotiated PCIe link of a card: generation and lanes. Both are 0 if they were not read.
type Slot struct {
	Gen   int `json:"gen"`
	Lanes int `json:"lanes"`
}

// Firmware is what the firmware tools report about one card. Current and Next are keyed by the names in FirmwareRules.Keys.
type Firmware struct {
	PSID    string            `json:"psid,omitempty"`    // board id: MT_... is NVIDIA's own, anything else an OEM's
	Current map[string]string `json:"current,omitempty"` // active now
	Next    map[string]string `json:"next,omitempty"`    // active after the next boot
	Slot    Slot              `json:"slot,omitzero"`
}

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
	"2330": {"HGX H100", "Hopper"}, "2324": {"HGX H800", "Hopper"}, "2335": {"HGX H200", "Hopper"}, "2329": {"HGX H20", "Hopper"},
	"232c": {"HGX H20", "Hopper"},
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
