package report

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
)

// An Environment describes the hardware and software on which a report was measured: versions, firmware and cables. Fields that
// were not read are empty.
type Environment struct {
	VCenter  string      `json:"vcenter"` // version and build
	Switches []EnvSwitch `json:"switches,omitempty"`
	Hosts    []EnvHost   `json:"hosts,omitempty"`
	Guests   []EnvGuest  `json:"guests,omitempty"`
}

// An EnvSwitch is a DVS that the hosts use for RDMA.
type EnvSwitch struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	MTU     int    `json:"mtu"` // bytes
	Uplinks int    `json:"uplinks"`
	NIOC    bool   `json:"nioc"`
	Hosts   int    `json:"hosts"` // members
}

// An EnvHost is a host with the pNICs that matter to RDMA and its GPUs.
type EnvHost struct {
	Name     string   `json:"name"`
	Version  string   `json:"version"` // of ESXi
	Build    string   `json:"build,omitempty"`
	Machine  string   `json:"machine,omitempty"` // vendor and model
	CPU      string   `json:"cpu,omitempty"`
	Sockets  int      `json:"sockets,omitempty"`
	Cores    int      `json:"cores,omitempty"`
	MemoryMB int64    `json:"memory_mb,omitempty"`
	Power    string   `json:"power_policy,omitempty"`
	NICs     []EnvNIC `json:"nics,omitempty"`
	GPUs     []string `json:"gpus,omitempty"` // models, one entry a GPU
}

// An EnvNIC is a pNIC that carries RDMA, could carry it, or is an uplink of a DVS.
type EnvNIC struct {
	Device     string `json:"device"`
	Model      string `json:"model,omitempty"`
	PCI        string `json:"pci"`
	NUMA       int    `json:"numa"` // -1 unknown
	SpeedMbps  int    `json:"speed_mbps"`
	Driver     string `json:"driver"` // with its version
	Firmware   string `json:"firmware,omitempty"`
	PSID       string `json:"psid,omitempty"`
	RDMADevice string `json:"rdma_device,omitempty"`
	Switch     string `json:"switch,omitempty"` // vSwitch or DVS whose uplink it is
	Neighbour  string `json:"neighbour,omitempty"`
}

// An EnvGuest is a VM and what runs in it.
type EnvGuest struct {
	VM       string   `json:"vm"`
	Host     string   `json:"host"`
	Hardware int      `json:"hardware"` // 19 for vmx-19
	OS       string   `json:"os,omitempty"`
	Kernel   string   `json:"kernel,omitempty"`
	RDMACore string   `json:"rdma_core,omitempty"`
	Perftest string   `json:"perftest,omitempty"`
	MOFED    string   `json:"mofed,omitempty"`
	Devices  []string `json:"devices,omitempty"` // "rocep19s0f1: vmw_pvrdma, PORT_ACTIVE, MTU 4096, 100 Gb/s"
}

// EnvironmentOf collects the environment from an inventory. VMs are included if their guest was read.
func EnvironmentOf(inv *backends.Inventory) *Environment {
	env := &Environment{VCenter: inv.VCenter.Version}
	if inv.VCenter.Build != "" {
		env.VCenter += " build " + inv.VCenter.Build
	}
	env.Switches = backends.Each(inv.Switches, func(s backends.Switch) EnvSwitch {
		return EnvSwitch{s.Name, s.Version, s.MTU, len(s.Uplinks), s.NIOC, len(s.Members)}
	})
	env.Hosts = backends.Each(inv.Hosts, func(h backends.Host) EnvHost { return hostOf(inv, h) })
	env.Guests = backends.Each(inv.Guests, func(g backends.Guest) EnvGuest { return guestOf(inv, g) })
	return env
}

func hostOf(inv *backends.Inventory, h backends.Host) EnvHost {
	sys := h.System
	if sys == nil {
		sys = &backends.HostSystem{}
	}
	e := EnvHost{
		Name: h.Name, Version: h.Version, Build: h.Build, Machine: words(h.Vendor, h.Model), CPU: h.CPUModel, Sockets: h.Sockets, Cores: h.Cores,
		MemoryMB: h.MemoryMB, Power: h.PowerPolicy,
	}
	for _, n := range h.NICs {
		if n.RDMADevice == "" && !n.Eligible && (n.Switch == "" || inv.Switch(n.Switch) == nil) {
			continue
		}
		card := EnvNIC{
			Device: n.Device, Model: n.Model, PCI: n.PCI, NUMA: n.NUMA, SpeedMbps: n.SpeedMbps, Driver: words(n.Driver, n.DriverVersion),
			Firmware:   n.Firmware,
			RDMADevice: n.RDMADevice, Switch: n.Switch, PSID: psid(sys, n.PCI),
		}
		if near, ok := sys.Neighbours.Value[n.Device]; ok {
			card.Neighbour = words(near.Switch, near.Port)
		}
		e.NICs = append(e.NICs, card)
	}
	e.GPUs = backends.Each(h.GPUs, func(g backends.GPU) string { return g.Model })
	return e
}

// psid returns the PSID of a card, which its firmware tools report only for function 0.
func psid(sys *backends.HostSystem, pci string) string {
	card, _, _ := strings.Cut(pci, ".")
	return cmp.Or(sys.Firmware[pci].PSID, sys.Firmware[card+".0"].PSID)
}

func guestOf(inv *backends.Inventory, g backends.Guest) EnvGuest {
	e := EnvGuest{VM: g.VM, OS: cmp.Or(g.Pretty, words(g.OS, g.Version)), Kernel: g.Kernel, Perftest: g.Tests(), MOFED: g.MOFED}
	if vm := inv.VM(g.VM); vm != nil {
		e.Host, e.Hardware = vm.Host, vm.Hardware
	}
	e.RDMACore = cmp.Or(g.Packages["rdma-core"], g.Packages["libibverbs1"], g.Packages["libibverbs"])
	e.Devices = backends.Each(g.RDMA, deviceOf)
	return e
}

func deviceOf(d backends.VerbsDevice) string {
	said := []string{}
	if d.Driver != "" {
		said = append(said, d.Driver)
	}
	said = append(said, d.State)
	if d.ActiveMTU > 0 {
		said = append(said, "MTU "+strconv.Itoa(d.ActiveMTU))
	}
	if d.RateGbps > 0 {
		said = append(said, fmt.Sprintf("%g Gb/s", d.RateGbps))
	}
	if d.Firmware != "" {
		said = append(said, "firmware "+d.Firmware)
	}
	return d.Name + ": " + strings.Join(said, ", ")
}

// words joins non-empty parts with a blank.
func words(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), " ")
}

// NCCL contains the settings of NVIDIA's collective library with which a job uses the fabric as it was measured.
type NCCL struct {
	Env []Variable `json:"env"`
	Why []string   `json:"why,omitempty"` // the reasons for the choice, and differences between guests
}

// A Variable is an environment variable.
type Variable struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// String returns NAME=VALUE, as in a shell's export.
func (v Variable) String() string { return v.Name + "=" + v.Value }
