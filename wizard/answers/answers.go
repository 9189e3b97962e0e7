// Package answers holds what the operator wants: a YAML file without secrets that can be replayed. Loading is strict
// (every bad key and value is named with its line and a hint, all at once), saving writes comments and loses nothing.
package answers

import (
	"cmp"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
)

// APIVersion is the version of the file's shape that this program writes.
const APIVersion = "rdma-setup/v1"

// A Mode is the way in which guests get RDMA.
type Mode string

// The modes.
const (
	PVRDMA    Mode = "pvrdma"    // paravirtual adapter: keeps vMotion, no host reboot
	SRIOV     Mode = "sriov"     // a VF of the NIC in the guest
	GPUDirect Mode = "gpudirect" // GPU and NIC in the guest, peer to peer
)

// Lossless says how the fabric is kept from dropping frames.
type Lossless string

// The ways of qos.lossless.
const (
	LosslessPFC   Lossless = "pfc"   // priority flow control: module parameters, a host reboot, every port of the driver
	LosslessPause Lossless = "pause" // global pause of the chosen pNIC
	LosslessNone  Lossless = "none"  // what was not asked for is not touched
)

// Answers are what the operator wants. Zero values of single keys mean what Keys says; Default and Load fill in the
// documented defaults.
type Answers struct {
	APIVersion string    `yaml:"apiVersion" json:"apiVersion"`
	Mode       Mode      `yaml:"mode" json:"mode"`
	VCenter    VCenter   `yaml:"vcenter" json:"vcenter"`
	Hosts      Hosts     `yaml:"hosts" json:"hosts"`
	NIC        NIC       `yaml:"nic" json:"nic"`
	Switch     Switch    `yaml:"switch" json:"switch"`
	Rails      []Rail    `yaml:"rails" json:"rails,omitempty"` // instead of NIC and Switch, which are those of the first then
	PVRDMA     PVRDMAOpt `yaml:"pvrdma" json:"pvrdma"`
	QoS        QoS       `yaml:"qos" json:"qos"`
	SRIOV      SRIOVOpt  `yaml:"sriov" json:"sriov"`
	GPUDirect  GPUOpt    `yaml:"gpudirect" json:"gpudirect"`
	ESXi       ESXi      `yaml:"esxi" json:"esxi"`
	VMs        []VM      `yaml:"vms" json:"vms"`
	Tuning     Tuning    `yaml:"tuning" json:"tuning"`
	Guest      Guest     `yaml:"guest" json:"guest"`
	Container  Container `yaml:"container" json:"container"`
	Confirmed  Confirmed `yaml:"confirmed" json:"confirmed"`
	Measure    Measure   `yaml:"measure" json:"measure"`
	Run        Run       `yaml:"run" json:"run"`

	Unused []string `yaml:"-" json:"-"` // keys of the file that its mode does not use: "answers.yaml:12: sriov.vfs"
}

// VCenter says where the vCenter is. The password is never here.
type VCenter struct {
	URL        string `yaml:"url" json:"url"`
	Username   string `yaml:"username" json:"username"`
	Thumbprint string `yaml:"thumbprint" json:"thumbprint"` // SHA-256, upper-case hex with colons
}

// Hosts chooses ESXi hosts. Cluster "": all in the datacenter; Names empty: every connected host.
type Hosts struct {
	Datacenter string   `yaml:"datacenter" json:"datacenter"`
	Cluster    string   `yaml:"cluster" json:"cluster"`
	Names      []string `yaml:"names" json:"names"`
}

// NIC says by what the RDMA pNIC of each host is known; what is empty does not count.
type NIC struct {
	Speed  Speed          `yaml:"speed" json:"speed"`
	MACs   map[string]MAC `yaml:"macs" json:"macs"` // by host name
	Driver string         `yaml:"driver" json:"driver"`
	Device string         `yaml:"device" json:"device"` // vmnic2, or a PCI address 0000:3b:00.0

	Slot     string `yaml:"slot" json:"slot,omitempty"` // PCI address without function: 0000:3b:00
	NUMA     Node   `yaml:"numa" json:"numa,omitempty"`
	Position int    `yaml:"position" json:"position,omitempty"` // place among those that the rest describes, by PCI address; 0: any
}

// Open reports whether the answers say nothing of the pNIC.
func (n NIC) Open() bool {
	return n.Speed == 0 && len(n.MACs) == 0 && cmp.Or(n.Driver, n.Device, n.Slot, string(n.NUMA)) == "" && n.Position == 0
}

// Switch is the distributed switch (DVS) and its port group.
type Switch struct {
	Name      string `yaml:"name" json:"name"`
	PortGroup string `yaml:"portgroup" json:"portgroup"`
	Version   string `yaml:"version" json:"version"` // "": newest that all hosts carry
	Uplinks   int    `yaml:"uplinks" json:"uplinks"`
	MTU       int    `yaml:"mtu" json:"mtu"` // bytes
	VLAN      int    `yaml:"vlan" json:"vlan"`
}

// PVRDMAOpt is what only mode pvrdma needs.
type PVRDMAOpt struct {
	VMKNic   VMKNic `yaml:"vmknic" json:"vmknic"`
	Protocol string `yaml:"protocol" json:"protocol"` // rocev1, rocev2

	AllowNoHCA bool `yaml:"allow_no_hca" json:"allow_no_hca,omitempty"` // hosts without an RDMA card take part
}

// QoS says how loss is avoided.
type QoS struct {
	Lossless Lossless `yaml:"lossless" json:"lossless"`
	Priority int      `yaml:"priority" json:"priority"`
	DSCP     int      `yaml:"dscp" json:"dscp"`
	ECN      bool     `yaml:"ecn" json:"ecn"`
}

// SRIOVOpt is what only mode sriov (or gpudirect on VFs) needs.
type SRIOVOpt struct {
	VFs        int      `yaml:"vfs" json:"vfs"`
	Components []string `yaml:"components" json:"components"` // datastore paths
	ResetPCI   bool     `yaml:"reset_advanced_pci" json:"reset_advanced_pci"`

	Firmware map[string]string `yaml:"firmware" json:"firmware,omitempty"` // datastore path of a card's firmware by PSID
}

// GPUOpt is what only mode gpudirect needs.
type GPUOpt struct {
	GPUs     map[string]VMGPUs `yaml:"gpus" json:"gpus"`       // by VM name; empty: every free GPU
	NIC      string            `yaml:"nic" json:"nic"`         // passthrough, sriov, pvrdma
	Backing  string            `yaml:"backing" json:"backing"` // fixed, dynamic
	MMIO     MMIO              `yaml:"mmio" json:"mmio"`
	AllowP2P bool              `yaml:"allow_p2p" json:"allow_p2p"`
	RelaxACS bool              `yaml:"relax_acs" json:"relax_acs"`
	ATS      bool              `yaml:"ats" json:"ats"`           // ATS_ENABLED of the card's firmware
	Driver   []string          `yaml:"driver" json:"driver"`     // packages that bring the NVIDIA driver into guests without one, or its .run file
	Perftest string            `yaml:"perftest" json:"perftest"` // source of perftest in the guests, "": none is built

	Models map[string]GPUModel `yaml:"models" json:"models,omitempty"` // by PCI ids, 10de:2fff
}

// A GPUModel is what the operator knows of a model of GPU, in GB; 0: not stated.
type GPUModel struct {
	Framebuffer int `yaml:"framebuffer" json:"framebuffer,omitempty"`
	BAR         int `yaml:"bar" json:"bar,omitempty"`
}

// ESXi says how the shell of a host is reached.
type ESXi struct {
	User      string            `yaml:"user" json:"user"`
	Port      int               `yaml:"port" json:"port"`
	Addresses map[string]string `yaml:"addresses" json:"addresses"` // host -> addr[:port]
}

// A VM takes part in the fabric. Either IP or Adapters gives its addresses.
type VM struct {
	Name     string    `yaml:"name" json:"name"` // name or inventory path
	IP       Address   `yaml:"ip" json:"ip,omitzero"`
	Adapters []Adapter `yaml:"adapters" json:"adapters,omitempty"`
	Group    string    `yaml:"group" json:"group,omitempty"` // VMs of one group are never off together
	Hardware Hardware  `yaml:"hardware" json:"hardware,omitempty"`
	Trust    Trust     `yaml:"trust" json:"trust,omitempty"`
	Guest    VMGuest   `yaml:"guest" json:"guest"`
}

// An Adapter is one RDMA adapter of a VM that has several.
type Adapter struct {
	Rail      string  `yaml:"rail" json:"rail,omitempty"` // "": the only one
	IP        Address `yaml:"ip" json:"ip"`
	PortGroup string  `yaml:"portgroup" json:"portgroup"` // "": that of the rail
}

// VMGuest says how the guest is reached over SSH and what may be done in it. Address "": what VMware Tools reports.
type VMGuest struct {
	Address string `yaml:"address" json:"address"`
	Port    int    `yaml:"port" json:"port"`
	User    string `yaml:"user" json:"user"`
	Manage  *bool  `yaml:"manage" json:"manage,omitempty"`   // nil: true
	Install *bool  `yaml:"install" json:"install,omitempty"` // nil: guest.install
	Persist *bool  `yaml:"persist" json:"persist,omitempty"` // nil: guest.persist
}

// Managed reports whether the guest is set up: an appliance gets its adapter alone, and is never logged in to.
func (g VMGuest) Managed() bool { return g.Manage == nil || *g.Manage }

// GuestOf returns what may be done inside the guest of a VM: what the VM itself says, else guest.
func (a *Answers) GuestOf(v VM) Guest {
	g := a.Guest
	if v.Guest.Install != nil {
		g.Install = *v.Guest.Install
	}
	if v.Guest.Persist != nil {
		g.Persist = *v.Guest.Persist
	}
	return g
}

// Tuning is what makes VMs answer evenly, each of it at a cost (RoCE SR-IOV Setup and Performance Study on vSphere 7.x,
// VMware, 2022, Table 1).
type Tuning struct {
	ReserveCPU bool   `yaml:"reserve_cpu" json:"reserve_cpu"` // vCPUs x the clock of a core
	Latency    string `yaml:"latency" json:"latency"`         // normal, high; high reserves the CPU too
	NUMA       string `yaml:"numa" json:"numa"`               // none, nic: the node of the RDMA pNIC
}

// Guest says what may be done inside guests.
type Guest struct {
	Install bool `yaml:"install" json:"install"`
	Persist bool `yaml:"persist" json:"persist"`
	// OFED are the paths, in the guests, of archives of MLNX_OFED: each guest gets the one that is made for it.
	OFED []string `yaml:"ofed" json:"ofed"`
	// Environment tells applications the traffic class: UCX and NCCL, by environment variables of every login.
	Environment bool `yaml:"environment" json:"environment"`
}

// Container is an image in the guests from whose containers RDMA is measured too (PVRDMA and vSphere Bitfusion, VMware,
// 2021, Using PVRDMA in an NGC Container). Image "": none. Base "": Image is there already; otherwise it is built from
// Base, MLNX_OFED's libraries in it replaced by those of the distribution.
type Container struct {
	Image string `yaml:"image" json:"image"`
	Base  string `yaml:"base" json:"base"`
}

// Confirmed holds the operator's answers about settings that cannot be detected.
type Confirmed struct {
	SwitchPFC bool `yaml:"switch_pfc" json:"switch_pfc"`
	Above4G   bool `yaml:"above_4g" json:"above_4g"`
}

// Measure says what is measured after the run.
type Measure struct {
	Pairs     string `yaml:"pairs" json:"pairs"` // ring, all
	Bandwidth bool   `yaml:"bandwidth" json:"bandwidth"`
	Latency   bool   `yaml:"latency" json:"latency"`
	Load      string `yaml:"load" json:"load"`             // none, incast, all: several senders at once
	CrossRail string `yaml:"cross_rail" json:"cross_rail"` // none, all: what reaches other rails
	Repeat    int    `yaml:"repeat" json:"repeat"`         // how often each test runs; the median counts
	LinkGbps  Gbps   `yaml:"link_gbps" json:"link_gbps"`   // 0: the speed of the host ports
	Perftest  string `yaml:"perftest" json:"perftest"`     // OwnPerftest, or the source of the one that all guests are to have
}

// Run says how the work is spread.
type Run struct {
	Parallel int    `yaml:"parallel" json:"parallel"`
	Reboot   Reboot `yaml:"reboot" json:"reboot"`
	Power    Power  `yaml:"power" json:"power"`
	// Bystanders says what becomes of running VMs that the answers do not list, on hosts that reboot.
	Bystanders Bystanders `yaml:"bystanders" json:"bystanders"`
	Window     Window     `yaml:"window" json:"window"`
	Lock       string     `yaml:"lock" json:"lock"` // LockLocal, LockShared
}

// Window is the time in which hosts and VMs may go out of service.
type Window struct {
	Until ClockTime `yaml:"until" json:"until"` // "": no end
}

// End returns the next time at which the window ends, in the zone of now; zero if it has no end.
func (w Window) End(now time.Time) time.Time {
	clock, err := time.Parse(clockLayout, string(w.Until))
	if err != nil {
		return time.Time{}
	}
	end := func(days int) time.Time {
		return time.Date(now.Year(), now.Month(), now.Day()+days, clock.Hour(), clock.Minute(), 0, 0, now.Location())
	}
	if today := end(0); today.After(now) {
		return today
	}
	return end(1)
}

// Which other runs are excluded while a run changes something.
const (
	LockLocal  = "local"  // other runs of the same state directory
	LockShared = "shared" // all operators of the vCenter, by a lock on each cluster
)

// Reboot limits waves of host reboots.
type Reboot struct {
	MaxUnavailable int      `yaml:"max_unavailable" json:"max_unavailable"`
	Timeout        Duration `yaml:"timeout" json:"timeout"`
	Canary         bool     `yaml:"canary" json:"canary"` // one host first, and alone
}

// Bystanders is a way to treat VMs that the answers do not list.
type Bystanders string

// The values of run.bystanders.
const (
	BystandersDRS      Bystanders = "drs"      // DRS moves them; a host whose VMs it does not move is refused
	BystandersMigrate  Bystanders = "migrate"  // those that DRS does not move are moved by vMotion before their host is emptied
	BystandersRefuse   Bystanders = "refuse"   // a host that runs any is refused
	BystandersShutdown Bystanders = "shutdown" // those that cannot move are shut down and started again
)

// Power limits how many VMs are off at the same time.
type Power struct {
	MaxUnavailable VMCount `yaml:"max_unavailable" json:"max_unavailable"`
	Canary         bool    `yaml:"canary" json:"canary"` // one VM first, and alone
}

// Limit returns how many of vms VMs may be off at the same time over all hosts, 0 for all. Without a number in the answers
// it is 4, at most a quarter of them, at least 1.
func (p Power) Limit(vms int) int {
	switch {
	case p.MaxUnavailable == AllVMs:
		return 0
	case p.MaxUnavailable > 0:
		return int(p.MaxUnavailable)
	}
	return max(1, min(4, vms/4))
}

// Networks returns the RDMA adapters that a VM should have, the short form (ip) spelled out. Of whole cards on several rails each
// is named by its PCI address (backends.HCAName) in place of a port group.
func (a *Answers) Networks(v VM) []Adapter {
	out := a.networks(v)
	if a.Several() && a.WholeCard() {
		for i, n := range out {
			out[i].PortGroup = backends.HCAName(a.RailOf(n).Card())
		}
	}
	return out
}

func (a *Answers) networks(v VM) []Adapter {
	if len(v.Adapters) == 0 {
		switch {
		case !v.IP.Given() && !v.Guest.Managed():
			return a.withoutIP()
		case !v.IP.Given():
			return nil
		case a.Several():
			return a.onRails(v.IP)
		}
		return []Adapter{{IP: v.IP, PortGroup: a.Switch.PortGroup}}
	}
	out := make([]Adapter, len(v.Adapters))
	for i, n := range v.Adapters {
		if n.PortGroup == "" {
			n.PortGroup = a.RailOf(n).Switch.PortGroup
		}
		out[i] = n
	}
	return out
}

// VFs reports whether guests get virtual functions of the RDMA pNIC.
func (a *Answers) VFs() bool {
	return a.Mode == SRIOV || a.Mode == GPUDirect && a.GPUDirect.NIC == "sriov"
}

// GPUs reports whether VMs get GPUs: in mode gpudirect, and beside PVRDMA adapters where the answers ask for them. The card
// is the host's then, and data goes through host memory.
func (a *Answers) GPUs() bool {
	return a.Mode == GPUDirect || a.Mode == PVRDMA && (a.GPUDirect.NIC == NICPVRDMA || len(a.GPUDirect.GPUs) > 0)
}

// NICPVRDMA is the value of gpudirect.nic for GPUs beside PVRDMA adapters.
const NICPVRDMA = "pvrdma"

// AdapterType is the type of the adapters that VMs get (backends.Adapter.Type): pvrdma or sriov; "" if a VM gets the card itself.
func (a *Answers) AdapterType() string {
	switch {
	case a.WholeCard():
		return ""
	case a.VFs():
		return "sriov"
	}
	return "pvrdma"
}

// WholeCard reports whether a VM gets the RDMA card itself: then it is on no switch, and no adapter leads to it.
func (a *Answers) WholeCard() bool { return a.Mode == GPUDirect && !a.VFs() }

// PortGroups returns every port group that the VMs need, in the order of the answers and each once; those of the
// switches come first.
func (a *Answers) PortGroups() []string {
	var out []string
	seen := map[string]bool{}
	add := func(name string) {
		if !seen[name] {
			seen[name] = true
			out = append(out, name)
		}
	}
	for _, r := range a.AllRails() {
		add(r.Switch.PortGroup)
	}
	for _, v := range a.VMs {
		for _, n := range a.networks(v) {
			add(n.PortGroup)
		}
	}
	return out
}

// Limit is how long a host may take to come back from a reboot.
func (r Reboot) Limit() time.Duration { return time.Duration(r.Timeout) }
