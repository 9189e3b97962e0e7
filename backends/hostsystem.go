package backends

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// A HostSystem holds what only the host itself can report: by esxcli, by a call to the host, or in its shell. Each fact has
// its own state; the table in backends/vsphere/system lists the call of each fact.
type HostSystem struct {
	Modules    map[string]Fact[Module]    `json:"modules,omitzero"`             // by name
	VIBs       Fact[map[string]VIB]       `json:"vibs,omitzero"`                // of the running image, by name
	NextVIBs   Fact[map[string]VIB]       `json:"next_vibs,omitzero"`           // of the image of the next boot; absent: nothing is staged
	Acceptance Fact[string]               `json:"acceptance,omitzero"`          // VMwareCertified, VMwareAccepted, PartnerSupported, CommunitySupported
	Offers     []Component                `json:"offers,omitzero"`              // what the files named for components hold, as this host sees them
	Components Fact[map[string]string]    `json:"components,omitzero"`          // of Lifecycle Manager in the running image, version by name; where an image manages the host
	Exceptions Fact[[]string]             `json:"lockdown_exceptions,omitzero"` // accounts that lockdown mode lets in
	Pause      Fact[map[string]PauseSpec] `json:"pause,omitzero"`               // global pause in force, by pNIC
	DCB        map[string]Fact[DCB]       `json:"dcb,omitzero"`                 // by pNIC
	Stats      map[string]Fact[PortStats] `json:"stats,omitzero"`               // by pNIC
	VFs        map[string]Fact[[]VF]      `json:"vfs,omitzero"`                 // by PF's pNIC
	Neighbours Fact[map[string]Neighbour] `json:"neighbours,omitzero"`          // by pNIC; one without a row heard nobody
	Peers      map[string]Fact[Peer]      `json:"peers,omitzero"`               // by peer host: how its PVRDMA vmknic is reached
	Resync     Fact[int64]                `json:"resync,omitzero"`              // bytes that vSAN still moves; absent: no vSAN
	BootDevice Fact[string]               `json:"boot_device,omitzero"`         // what ESXi booted from: usb, sd, disk, network

	// What only the ESXi shell tells; nil if it was not asked.
	Firmware   map[string]Firmware `json:"firmware,omitzero"`     // by PCI address of function 0
	SecureBoot *bool               `json:"secure_boot,omitempty"` // the host booted with UEFI secure boot
	Log        []string            `json:"log,omitzero"`          // lines of vmkernel.log since boot that have one of LogTexts
	ShellError string              `json:"shell_error,omitempty"` // why the shell could not be asked
}

// Module finds a module whose parameters were read; empty without.
func (s *HostSystem) Module(name string) Module {
	if s == nil {
		return Module{}
	}
	return s.Modules[name].Value
}

// Image is the image of the next boot: the staged image, or else the running one.
func (s *HostSystem) Image() Fact[map[string]VIB] {
	if s.NextVIBs.Known() || s.NextVIBs.State == FactUnreadable {
		return s.NextVIBs
	}
	return s.VIBs
}

// Reworded returns a copy whose texts of machines, that is reasons and log lines, went through a function.
func (s HostSystem) Reworded(text func(string) string) *HostSystem {
	s.VIBs.Why, s.NextVIBs.Why, s.Acceptance.Why, s.Exceptions.Why = text(s.VIBs.Why), text(s.NextVIBs.Why), text(s.Acceptance.Why), text(s.Exceptions.Why)
	s.Components.Why = text(s.Components.Why)
	s.Pause.Why, s.Neighbours.Why, s.Resync.Why, s.BootDevice.Why = text(s.Pause.Why), text(s.Neighbours.Why), text(s.Resync.Why), text(s.BootDevice.Why)
	s.Modules, s.DCB, s.Stats, s.VFs, s.Peers = reworded(s.Modules, text), reworded(s.DCB, text), reworded(s.Stats, text), reworded(s.VFs, text), reworded(s.Peers, text)
	s.ShellError, s.Log, s.Offers = text(s.ShellError), slices.Clone(s.Log), slices.Clone(s.Offers)
	for i := range s.Log {
		s.Log[i] = text(s.Log[i])
	}
	for i := range s.Offers {
		s.Offers[i].Error = text(s.Offers[i].Error)
	}
	return &s
}

func reworded[T any](facts map[string]Fact[T], text func(string) string) map[string]Fact[T] {
	out := maps.Clone(facts)
	for name, f := range out {
		f.Why = text(f.Why)
		out[name] = f
	}
	return out
}

// A Module is a kernel module of a host.
type Module struct {
	Known  []string          `json:"known"`  // every parameter that the module lists
	Params map[string]string `json:"params"` // those that are set; in force since the next boot after they were
}

// A VIB is an installed package.
type VIB struct {
	Version    string `json:"version"`
	Acceptance string `json:"acceptance,omitempty"`
}

// A Component is a VIB in a file on a datastore. A file that a host cannot read has one with Error and no Name.
type Component struct {
	Path       string `json:"path"`
	Name       string `json:"name,omitempty"`
	Version    string `json:"version,omitempty"`
	Acceptance string `json:"acceptance,omitempty"`
	Error      string `json:"error,omitempty"`
}

// A VF is a virtual function; Active when a VM has it.
type VF struct {
	ID      int    `json:"id"`
	Address string `json:"pci,omitempty"`
	Active  bool   `json:"active"`
}

// DCB is what a pNIC negotiated by data centre bridging. PFC has a flag for each priority.
type DCB struct {
	Supported bool    `json:"supported"`
	PFC       [8]bool `json:"pfc"`
}

// PortStats is the growth of the counters of a pNIC within Over.
type PortStats struct {
	Errors  int64         `json:"errors"`
	Dropped int64         `json:"dropped"`
	Pause   int64         `json:"pause"` // PFC frames, both ways
	Over    time.Duration `json:"over"`
}

// Grown tells what two counters grew by, and in what time where they did.
func (s PortStats) Grown(a string, n int64, b string, m int64) string {
	if n == 0 && m == 0 {
		return fmt.Sprintf("no %s and no %s between two readings", a, b)
	}
	return fmt.Sprintf("%d %s, %d %s in %s", n, a, m, b, s.Over.Round(10*time.Millisecond))
}

// A Neighbour is the switch port that a pNIC hears by LLDP or CDP: the switch's name as it tells it, else its chassis id.
type Neighbour struct {
	Switch string `json:"switch"`
	Port   string `json:"port"` // as the switch spells it: Eth1/7, swp7, ethernet1/1/7
}

// Peer is how a host reaches the PVRDMA vmknic of another.
type Peer struct {
	Loss    float64 `json:"loss"`              // percent of pings lost
	Payload int     `json:"payload,omitempty"` // bytes of the largest ping that came through unfragmented; 0: not tried
	Port    string  `json:"port,omitempty"`    // TCP 28250: open, closed; "" not tried
}

// LogTexts are what is looked for in vmkernel.log, in lower case: a lack of interrupt vectors (Broadcom KB 313395), and a
// device that the host took from passthrough by PCIe hot-plug (HPE a00121002).
var LogTexts = []string{LogVectors, LogPassthrough, LogHotPlug}

const (
	LogVectors     = "out of interrupt vectors"
	LogPassthrough = "is not a passthrough device"
	LogHotPlug     = "pciehp"
)

// Slot is the PCIe link of a card as it runs now: generation and lanes. Both are 0 if it was not read.
type Slot struct {
	Gen   int `json:"gen"`
	Lanes int `json:"lanes"`
}

// Firmware is what the firmware tools say of one card. Current and Next are by key (FirmwareRules.Keys).
type Firmware struct {
	PSID    string            `json:"psid,omitempty"`    // id of the board: MT_... is NVIDIA's own, anything else an OEM's
	Current map[string]string `json:"current,omitempty"` // in force
	Next    map[string]string `json:"next,omitempty"`    // after the next boot
	Slot    Slot              `json:"slot,omitzero"`
}
