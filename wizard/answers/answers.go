// Package answers defines the operator's requests: a YAML file without secrets that can be replayed. Loading is strict (all
// invalid keys and values are reported at once, with line and hint); saving writes comments and loses nothing.
package answers

import (
	"cmp"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
)

// APIVersion is the version of the file format that this program writes.
const APIVersion = "rdma-setup/v1"

// A Mode is how guests get RDMA.
type Mode string

// The modes.
const (
	PVRDMA    Mode = "pvrdma"    // paravirtual adapter: keeps vMotion, no host reboot
	SRIOV     Mode = "sriov"     // a VF of the NIC in the guest
	GPUDirect Mode = "gpudirect" // GPU and NIC in the guest, peer-to-peer
)

// Lossless is how the fabric is kept from dropping frames.
type Lossless string

// The values of qos.lossless.
const (
	LosslessPFC   Lossless = "pfc"   // priority flow control: module parameters, a host reboot, affects every port of the driver
	LosslessPause Lossless = "pause" // global pause of the chosen pNIC
	LosslessNone  Lossless = "none"  // settings that were not requested are not changed
)

// Answers are the operator's requests. Zero values of single keys mean what Keys documents; Default and Load fill in the
// defaults.
type Answers struct {
	APIVersion string    `yaml:"apiVersion" json:"apiVersion"`
	Mode       Mode      `yaml:"mode" json:"mode"`
	VCenter    VCenter   `yaml:"vcenter" json:"vcenter"`
	Hosts      Hosts     `yaml:"hosts" json:"hosts"`
	NIC        NIC       `yaml:"nic" json:"nic"`
	Switch     Switch    `yaml:"switch" json:"switch"`
	Rails      []Rail    `yaml:"rails" json:"rails,omitempty"` // replaces NIC and Switch, which are then those of the first rail
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

	Unused []string `yaml:"-" json:"-"` // keys in the file that its mode does not use: "answers.yaml:12: sriov.vfs"
}

// VCenter identifies the vCenter. It never contains the password.
type VCenter struct {
	URL        string `yaml:"url" json:"url"`
	Username   string `yaml:"username" json:"username"`
	Thumbprint string `yaml:"thumbprint" json:"thumbprint"` // SHA-256, upper-case hex with colons
}

// Hosts selects ESXi hosts. Cluster "": all in the datacenter; Names empty: every connected host.
type Hosts struct {
	Datacenter string   `yaml:"datacenter" json:"datacenter"`
	Cluster    string   `yaml:"cluster" json:"cluster"`
	Names      []string `yaml:"names" json:"names"`
}

// NIC describes the RDMA pNIC of each host; empty fields match any.
type NIC struct {
	Speed  Speed          `yaml:"speed" json:"speed"`
	MACs   map[string]MAC `yaml:"macs" json:"macs"` // by host name
	Driver string         `yaml:"driver" json:"driver"`
	Device string         `yaml:"device" json:"device"` // vmnic2, or a PCI address 0000:3b:00.0

	Slot     string `yaml:"slot" json:"slot,omitempty"` // PCI address without function: 0000:3b:00
	NUMA     Node   `yaml:"numa" json:"numa,omitempty"`
	Position int    `yaml:"position" json:"position,omitempty"` // position among those that match the other fields, by PCI address; 0: any
}

// Open reports whether the answers do not describe the pNIC.
func (n NIC) Open() bool {
	return n.Speed == 0 && len(n.MACs) == 0 && cmp.Or(n.Driver, n.Device, n.Slot, string(n.NUMA)) == "" && n.Position == 0
}

// Switch is the distributed switch (DVS) and its port group.
type Switch struct {
	Name      string `yaml:"name" json:"name"`
	PortGroup string `yaml:"portgroup" json:"portgroup"`
	Version   string `yaml:"version" json:"version"` // "": the newest that all hosts support
	Uplinks   int    `yaml:"uplinks" json:"uplinks"`
	MTU       int    `yaml:"mtu" json:"mtu"` // bytes
	VLAN      int    `yaml:"vlan" json:"vlan"`
}

// PVRDMAOpt are the settings of mode pvrdma.
type PVRDMAOpt struct {
	VMKNic   VMKNic `yaml:"vmknic" json:"vmknic"`
	Protocol string `yaml:"protocol" json:"protocol"` // rocev1, rocev2

	AllowNoHCA bool `yaml:"allow_no_hca" json:"allow_no_hca,omitempty"` // hosts without an RDMA card are accepted
}

// QoS are the settings against packet loss.
type QoS struct {
	Lossless Lossless `yaml:"lossless" json:"lossless"`
	Priority int      `yaml:"priority" json:"priority"`
	DSCP     int      `yaml:"dscp" json:"dscp"`
	ECN      bool     `yaml:"ecn" json:"ecn"`
}

// SRIOVOpt are the settings of mode sriov (or gpudirect with VFs).
type SRIOVOpt struct {
	VFs        int      `yaml:"vfs" json:"vfs"`
	Components []string `yaml:"components" json:"components"` // datastore paths, or URLs and files of offline bundles
	ResetPCI   bool     `yaml:"reset_advanced_pci" json:"reset_advanced_pci"`

	Firmware map[string]string `yaml:"firmware" json:"firmware,omitempty"` // datastore path of firmware by PSID
}

// GPUOpt are the settings of mode gpudirect.
type GPUOpt struct {
	GPUs     map[string]VMGPUs `yaml:"gpus" json:"gpus"`       // by VM name; empty: every free GPU
	NIC      string            `yaml:"nic" json:"nic"`         // passthrough, sriov, pvrdma
	Backing  string            `yaml:"backing" json:"backing"` // fixed, dynamic
	MMIO     MMIO              `yaml:"mmio" json:"mmio"`
	AllowP2P bool              `yaml:"allow_p2p" json:"allow_p2p"`
	RelaxACS bool              `yaml:"relax_acs" json:"relax_acs"`
	ATS      bool              `yaml:"ats" json:"ats"`           // ATS_ENABLED of the card's firmware
	Driver   []string          `yaml:"driver" json:"driver"`     // packages with the NVIDIA driver for guests without one, or its .run file
	Perftest string            `yaml:"perftest" json:"perftest"` // source of perftest in the guests, "": it is not built

	Manager string `yaml:"manager" json:"manager"` // NVIDIA vGPU Manager: datastore path, or URL of its offline bundle

	Models map[string]GPUModel `yaml:"models" json:"models,omitempty"` // by PCI ids, 10de:2fff
}

// ESXi says how to reach the shell of a host.
type ESXi struct {
	User      string            `yaml:"user" json:"user"`
	Port      int               `yaml:"port" json:"port"`
	Addresses map[string]string `yaml:"addresses" json:"addresses"` // host -> addr[:port]
}

// A VM is part of the fabric. Its addresses are in either IP or Adapters.
type VM struct {
	Name     string    `yaml:"name" json:"name"` // name or inventory path
	IP       Address   `yaml:"ip" json:"ip,omitzero"`
	Adapters []Adapter `yaml:"adapters" json:"adapters,omitempty"`
	Group    string    `yaml:"group" json:"group,omitempty"` // VMs in one group are never off at the same time
	Hardware Hardware  `yaml:"hardware" json:"hardware,omitempty"`
	Trust    Trust     `yaml:"trust" json:"trust,omitempty"`
	Guest    VMGuest   `yaml:"guest" json:"guest"`
}

// An Adapter is one RDMA adapter of a VM with several.
type Adapter struct {
	Rail      string  `yaml:"rail" json:"rail,omitempty"` // "": the only rail
	IP        Address `yaml:"ip" json:"ip"`
	PortGroup string  `yaml:"portgroup" json:"portgroup"` // "": the rail's
}

// VMGuest says how to reach the guest over SSH and what is allowed in it. Address "": as reported by VMware Tools.
type VMGuest struct {
	Address string `yaml:"address" json:"address"`
	Port    int    `yaml:"port" json:"port"`
	User    string `yaml:"user" json:"user"`
	Manage  *bool  `yaml:"manage" json:"manage,omitempty"`   // nil: true
	Install *bool  `yaml:"install" json:"install,omitempty"` // nil: guest.install
	Persist *bool  `yaml:"persist" json:"persist,omitempty"` // nil: guest.persist
}

// Managed reports whether the guest is set up: an appliance only gets its adapter, and is never logged in to.
func (g VMGuest) Managed() bool { return g.Manage == nil || *g.Manage }

// GuestOf returns what is allowed inside the guest of a VM: the VM's own settings, else guest.
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

// Tuning are settings for predictable performance, each with a cost (RoCE SR-IOV Setup and Performance Study on vSphere 7.x,
// VMware, 2022, Table 1).
type Tuning struct {
	ReserveCPU bool   `yaml:"reserve_cpu" json:"reserve_cpu"` // vCPUs x the clock of a core
	Latency    string `yaml:"latency" json:"latency"`         // normal, high; high reserves the CPU too
	NUMA       string `yaml:"numa" json:"numa"`               // none, nic: the node of the RDMA pNIC
}

// Guest says what is allowed inside guests.
type Guest struct {
	Install bool `yaml:"install" json:"install"`
	Persist bool `yaml:"persist" json:"persist"`
	// OFED are the paths, in the guests, of MLNX_OFED archives: each guest uses the one made for it.
	OFED []string `yaml:"ofed" json:"ofed"`
	// Environment sets the traffic class for applications: UCX and NCCL, by environment variables of every login.
	Environment bool `yaml:"environment" json:"environment"`
}

// Container is an image in the guests in whose containers RDMA is measured too (PVRDMA and vSphere Bitfusion, VMware, 2021, Using
// PVRDMA in an NGC Container). Image "": none. Base "": Image exists already; otherwise it is built from Base, with MLNX_OFED's
// libraries replaced by those of the distribution.
type Container struct {
	Image string `yaml:"image" json:"image"`
	Base  string `yaml:"base" json:"base"`
}

// Confirmed holds the operator's statements about settings that cannot be detected.
type Confirmed struct {
	SwitchPFC bool `yaml:"switch_pfc" json:"switch_pfc"`
	Above4G   bool `yaml:"above_4g" json:"above_4g"`
}

// Measure are the settings of the measurement after the run.
type Measure struct {
	Pairs     string `yaml:"pairs" json:"pairs"` // ring, all
	Bandwidth bool   `yaml:"bandwidth" json:"bandwidth"`
	Latency   bool   `yaml:"latency" json:"latency"`
	Load      string `yaml:"load" json:"load"`             // none, incast, all: several simultaneous senders
	CrossRail string `yaml:"cross_rail" json:"cross_rail"` // none, all: test whether other rails can be reached
	Repeat    int    `yaml:"repeat" json:"repeat"`         // runs of each test; the median counts
	LinkGbps  Gbps   `yaml:"link_gbps" json:"link_gbps"`   // 0: the speed of the host ports
	Perftest  string `yaml:"perftest" json:"perftest"`     // OwnPerftest, or the source of the release that all guests should have
}

// Run are the settings of how a run proceeds.
type Run struct {
	Parallel int    `yaml:"parallel" json:"parallel"`
	Reboot   Reboot `yaml:"reboot" json:"reboot"`
	Power    Power  `yaml:"power" json:"power"`
	// Bystanders says how to treat running VMs that the answers do not list, on hosts that reboot.
	Bystanders Bystanders `yaml:"bystanders" json:"bystanders"`
	// ReturnVMs moves VMs that a run has made DRS or vMotion move back at its end.
	ReturnVMs bool `yaml:"return_vms" json:"return_vms"`

	Window Window `yaml:"window" json:"window"`
	Lock   string `yaml:"lock" json:"lock"` // LockLocal, LockShared
}

// Window is the time during which hosts and VMs may be out of service.
type Window struct {
	Until ClockTime `yaml:"until" json:"until"` // "": no end
}

// End returns the next end of the window, in the zone of now; zero if it has no end.
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

// The values of run.lock: which other runs are excluded during a run.
const (
	LockLocal  = "local"  // other runs with the same state directory
	LockShared = "shared" // all operators of the vCenter, by a lock on each cluster
)

// Reboot limits the waves of host reboots.
type Reboot struct {
	MaxUnavailable int      `yaml:"max_unavailable" json:"max_unavailable"`
	Timeout        Duration `yaml:"timeout" json:"timeout"`
	Canary         bool     `yaml:"canary" json:"canary"` // one host first, on its own
}

// Bystanders is how to treat VMs that the answers do not list.
type Bystanders string

// The values of run.bystanders.
const (
	BystandersDRS      Bystanders = "drs"      // DRS moves them; a host with VMs that it does not move is refused
	BystandersMigrate  Bystanders = "migrate"  // those that DRS does not move are moved by vMotion first
	BystandersRefuse   Bystanders = "refuse"   // a host that runs any is refused
	BystandersShutdown Bystanders = "shutdown" // those that cannot be moved are shut down and started again
)

// Power limits how many VMs are off at the same time.
type Power struct {
	MaxUnavailable VMCount `yaml:"max_unavailable" json:"max_unavailable"`
	Canary         bool    `yaml:"canary" json:"canary"`               // one VM first, on its own
	CanaryReboot   bool    `yaml:"canary_reboot" json:"canary_reboot"` // and its guest is restarted once after its setup
}

// Limit returns how many of that many VMs may be off at the same time over all hosts, 0 for all. By default it is 4, but at most
// a quarter of them and at least 1.
func (p Power) Limit(vms int) int {
	switch {
	case p.MaxUnavailable == AllVMs:
		return 0
	case p.MaxUnavailable > 0:
		return int(p.MaxUnavailable)
	}
	return max(1, min(4, vms/4))
}

// Networks returns the requested RDMA adapters of a VM, with the short form (ip) expanded. Whole cards on several rails are named
// by their PCI address (backends.HCAName) instead of a port group.
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

// GPUs reports whether VMs get GPUs: in mode gpudirect, and in mode pvrdma if the answers request them. The card then stays with
// the host, and data goes through host memory.
func (a *Answers) GPUs() bool {
	return a.Mode == GPUDirect || a.Mode == PVRDMA && (a.GPUDirect.NIC == NICPVRDMA || len(a.GPUDirect.GPUs) > 0)
}

// Uses returns the modes whose checks apply to a site with these answers: what is used decides, not the word in mode. PVRDMA
// adapters or VFs with GPUs have the checks of both.
func (a *Answers) Uses() []Mode {
	uses := []Mode{a.Mode}
	if a.VFs() && a.Mode != SRIOV {
		uses = append(uses, SRIOV)
	}
	if a.GPUs() && a.Mode != GPUDirect {
		uses = append(uses, GPUDirect)
	}
	return uses
}

// NICPVRDMA is the value of gpudirect.nic for GPUs in VMs with PVRDMA adapters.
const NICPVRDMA = "pvrdma"

// AdapterType returns the type of the VMs' adapters (backends.Adapter.Type): pvrdma or sriov; "" if a VM gets the card itself.
func (a *Answers) AdapterType() string {
	switch {
	case a.WholeCard():
		return ""
	case a.VFs():
		return "sriov"
	}
	return "pvrdma"
}

// WholeCard reports whether a VM gets the RDMA card itself: then it is on no switch and has no virtual adapter.
func (a *Answers) WholeCard() bool { return a.Mode == GPUDirect && !a.VFs() }

// PortGroups returns every port group that the VMs need once, those of the switches first, then in the order of the answers.
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

// Limit returns how long a host may take until it is back from a reboot.
func (r Reboot) Limit() time.Duration { return time.Duration(r.Timeout) }
