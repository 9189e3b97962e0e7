package backends

import (
	"context"
	"time"
)

// An Inventory is what is there, read and never guessed. What could not be read is absent and named in Gaps.
type Inventory struct {
	VCenter    VCenter     `json:"vcenter"`
	Hosts      []Host      `json:"hosts"`
	Switches   []Switch    `json:"switches,omitempty"`
	PortGroups []PortGroup `json:"port_groups,omitempty"`
	Clusters   []Cluster   `json:"clusters,omitempty"` // nil: the clusters' settings were not read
	VMs        []VM        `json:"vms"`
	Guests     []Guest     `json:"guests,omitempty"`
	Gaps       []Gap       `json:"gaps,omitempty"`
	APICalls   int         `json:"api_calls"`
}

// A Gap names something that could not be read and why.
type Gap struct {
	Target Ref    `json:"target"`
	What   string `json:"what"`
	Why    string `json:"why"`
}

// VCenter is the server that was asked.
type VCenter struct {
	URL          string    `json:"url"`
	InstanceUUID string    `json:"instance_uuid"`
	Version      string    `json:"version"`
	Build        string    `json:"build"`
	APIVersion   string    `json:"api_version"`
	User         string    `json:"user"`
	Thumbprint   string    `json:"thumbprint,omitempty"`   // of the certificate that was served, spelled as in the answers
	Clock        time.Time `json:"clock,omitzero"`         // vCenter's clock when it was asked
	ClockAsked   time.Time `json:"-"`                      // our clock at that moment
	Simulated    bool      `json:"simulated"`              // the lab says so itself
	DVSVersions  []string  `json:"dvs_versions,omitempty"` // what QueryAvailableDvsSpec offers, oldest first
}

// A Cluster is what a cluster decides about its hosts and VMs.
type Cluster struct {
	Name        string            `json:"name"`
	Datacenter  string            `json:"datacenter,omitempty"`
	DRS         bool              `json:"drs"`
	DRSMode     string            `json:"drs_mode,omitempty"`     // manual, partiallyAutomated, fullyAutomated
	DRSOverride map[string]string `json:"drs_override,omitempty"` // by VM: its own mode, or "disabled"
	HA          bool              `json:"ha"`
	VSAN        bool              `json:"vsan"`
	EVC         string            `json:"evc,omitempty"` // key of the EVC mode, "" when off
}

// A Scope limits an inventory. Zero reads everything in overview; Hosts and VMs name those whose details
// (options, firewall, device lists) are wanted too.
type Scope struct {
	Datacenter string
	Cluster    string
	Hosts      []string // names; nil: all
	VMs        []string // names or inventory paths; nil: all
	Details    bool     // options, firewall rulesets, DVS offers: what a plan needs
}

// A Host is one ESXi host.
type Host struct {
	Name       string `json:"name"`
	Path       string `json:"path,omitempty"` // inventory path
	Datacenter string `json:"datacenter"`
	Cluster    string `json:"cluster"`
	Version    string `json:"version"` // "8.0.3"
	Build      string `json:"build,omitempty"`
	State      string `json:"state"` // connected, disconnected, notResponding
	Power      string `json:"power,omitempty"`
	Vendor     string `json:"vendor,omitempty"`
	Model      string `json:"model,omitempty"`

	InMaintenance  bool      `json:"in_maintenance,omitempty"`
	RebootRequired bool      `json:"reboot_required,omitempty"`
	BootTime       time.Time `json:"boot_time,omitzero"`
	ManagedBy      []string  `json:"managed_by,omitempty"` // owners of the desired state: vLCM image, host profile, ...

	NICs      []NIC              `json:"nics"`
	RDMA      []RDMADevice       `json:"rdma_devices,omitempty"`
	VMKs      []VMKernelNIC      `json:"vmknics,omitempty"`
	GPUs      []GPU              `json:"gpus"`
	PCI       []PCIDevice        `json:"pci,omitempty"`
	Options   map[string]string  `json:"options,omitempty"`  // only the keys that were asked for; details only
	Firewall  map[string]Ruleset `json:"firewall,omitempty"` // by ruleset key; details only
	NTP       []string           `json:"ntp,omitempty"`
	NTPActive bool               `json:"ntp_active,omitempty"`

	PowerPolicy   string   `json:"power_policy,omitempty"`   // short name: static, dynamic, low, custom
	PowerPolicies []string `json:"power_policies,omitempty"` // what the BIOS leaves to ESXi; empty: the BIOS keeps control
	Lockdown      string   `json:"lockdown,omitempty"`
	GraphicsType  string   `json:"graphics_type,omitempty"` // hostDefaultGraphicsType: shared, sharedDirect; "" not read
	BootDevice    string   `json:"boot_device,omitempty"`   // what ESXi booted from: usb, sd, disk, network; "" not read
	SSHRunning    bool     `json:"ssh_running,omitempty"`

	CPUModel     string   `json:"cpu_model,omitempty"`
	Sockets      int      `json:"sockets,omitempty"`
	Cores        int      `json:"cores,omitempty"`
	CPUMHz       int      `json:"cpu_mhz,omitempty"`
	MemoryMB     int64    `json:"memory_mb,omitempty"`
	MemoryUsedMB int64    `json:"memory_used_mb,omitempty"`
	Hyperthreads bool     `json:"hyperthreads,omitempty"`
	RecentTasks  []string `json:"recent_tasks,omitempty"` // descriptions of tasks now running on the host
}

// A Ruleset is one firewall ruleset of a host.
type Ruleset struct {
	Enabled  bool     `json:"enabled"`
	AllIP    bool     `json:"all_ip"`
	Networks []string `json:"networks,omitempty"` // CIDRs and addresses when AllIP is false
}

// A NIC is one physical adapter (pNIC) of a host.
type NIC struct {
	Device        string   `json:"device"` // vmnic2
	MAC           string   `json:"mac"`
	SpeedMbps     int      `json:"speed_mbps"` // 0: no link
	MaxSpeedMbps  int      `json:"max_speed_mbps,omitempty"`
	FullDuplex    bool     `json:"full_duplex,omitempty"`
	Driver        string   `json:"driver"`
	DriverVersion string   `json:"driver_version"`
	Firmware      string   `json:"firmware"`
	PCI           string   `json:"pci"`              // 0000:3b:00.0
	Vendor        string   `json:"vendor,omitempty"` // 15b3
	PCIDeviceID   string   `json:"pci_device,omitempty"`
	Model         string   `json:"model,omitempty"`
	NUMA          int      `json:"numa"`        // -1 unknown
	RDMADevice    string   `json:"rdma_device"` // vmrdma0, "" when there is none
	RoCEv1        bool     `json:"roce_v1,omitempty"`
	RoCEv2        bool     `json:"roce_v2"`
	IWARP         bool     `json:"iwarp,omitempty"`
	RDMAState     string   `json:"rdma_state,omitempty"` // active, activeDefer, down, init, armed, unknown
	SRIOV         *SRIOV   `json:"sriov"`
	DPU           string   `json:"dpu,omitempty"` // id of the DPU that owns it (pnic.dpuId), "" on ordinary NICs
	Switch        string   `json:"switch"`        // name of the vSwitch or DVS that has it as uplink
	Roles         []string `json:"roles"`         // traffic of the vmknics on that switch: management, vmotion, vsan, ...
	Eligible      bool     `json:"eligible"`
	Why           string   `json:"why"` // why it is or is not eligible for RDMA
}

// SRIOV is what a physical function says of its VFs.
type SRIOV struct {
	Capable   bool `json:"capable"`
	Enabled   bool `json:"enabled"`
	Active    bool `json:"active"`
	Max       int  `json:"max_vfs"`
	Requested int  `json:"requested_vfs"`
	VFs       int  `json:"vfs"`
}

// An RDMADevice is a vmrdma device of a host.
type RDMADevice struct {
	Name   string `json:"name"`
	Driver string `json:"driver,omitempty"`
	NIC    string `json:"nic"` // paired uplink, vmnic2
	State  string `json:"state"`
	RoCEv1 bool   `json:"roce_v1"`
	RoCEv2 bool   `json:"roce_v2"`
	IWARP  bool   `json:"iwarp"`
}

// A VMKernelNIC is a vmknic.
type VMKernelNIC struct {
	Device    string   `json:"device"` // vmk0
	MAC       string   `json:"mac,omitempty"`
	IP        string   `json:"ip,omitempty"`
	PrefixLen int      `json:"prefix_len,omitempty"`
	DHCP      bool     `json:"dhcp,omitempty"`
	MTU       int      `json:"mtu"`
	NetStack  string   `json:"netstack,omitempty"`
	PortGroup string   `json:"port_group,omitempty"`
	Switch    string   `json:"switch,omitempty"`
	Roles     []string `json:"roles"` // management, vmotion, vsan, ...
}

// A GPU is a display or 3D controller of a host that could be passed through.
type GPU struct {
	PCI      string   `json:"pci"`
	Model    string   `json:"model"`
	Vendor   string   `json:"vendor"`
	Device   string   `json:"device"`
	NUMA     int      `json:"numa"`
	MemoryMB int64    `json:"memory_mb,omitempty"`
	Capable  bool     `json:"passthrough_capable"`
	Enabled  bool     `json:"passthrough_enabled"`
	Active   bool     `json:"passthrough_active"`
	UsedBy   string   `json:"used_by,omitempty"`      // VM
	RootPort string   `json:"root_port,omitempty"`    // PCI address of the root port above it
	Switches []string `json:"pci_switches,omitempty"` // bridges between root port and device, top down
}

// A PCIDevice is a row of the host's PCI list, as far as topology needs it.
type PCIDevice struct {
	Address    string   `json:"address"`
	Vendor     string   `json:"vendor"`
	Device     string   `json:"device"`
	Class      string   `json:"class"`
	Parent     string   `json:"parent,omitempty"` // address of the bridge above
	Name       string   `json:"name,omitempty"`
	NUMA       int      `json:"numa"`
	Capable    bool     `json:"passthrough_capable,omitempty"`
	Enabled    bool     `json:"passthrough_enabled,omitempty"`
	Active     bool     `json:"passthrough_active,omitempty"`
	Dependents []string `json:"dependents,omitempty"`
}

// A Switch is a distributed switch (DVS).
type Switch struct {
	Name       string            `json:"name"`
	Path       string            `json:"path,omitempty"`
	Datacenter string            `json:"datacenter"`
	UUID       string            `json:"uuid"`
	Version    string            `json:"version"`
	Uplinks    []string          `json:"uplinks"` // uplink port names
	MTU        int               `json:"mtu"`
	MTUMin     int               `json:"mtu_min,omitempty"`
	MTUMax     int               `json:"mtu_max,omitempty"`
	NIOC       bool              `json:"nioc"`
	Discovery  string            `json:"discovery,omitempty"` // "lldp listen", "cdp both", ...
	Members    map[string]Member `json:"members"`             // by host name
	PortGroups []string          `json:"port_groups,omitempty"`
	LAGs       int               `json:"lags,omitempty"`
	VMKs       []string          `json:"vmknics,omitempty"` // "esx-01/vmk1": vmknics that live on it
	VMs        []string          `json:"vms,omitempty"`     // VMs connected to it
	NSX        bool              `json:"nsx,omitempty"`
	OffloadID  string            `json:"offload,omitempty"` // network offload spec (DPU)
	Note       string            `json:"note,omitempty"`    // config.description: holds our mark on a switch that we made
	Health     *SwitchHealth     `json:"health,omitempty"`  // nil: not read
}

// SwitchHealth is the VLAN and MTU health check of a DVS.
type SwitchHealth struct {
	Enabled  bool     `json:"enabled"`
	Mismatch []string `json:"mismatch,omitempty"` // what it found: "esx-01 Uplink 1: VLAN 100 not trunked"
}

// A Member is one host on a DVS.
type Member struct {
	PNICs  []string `json:"pnics"`
	Status string   `json:"status,omitempty"` // up, pending, outOfSync, ...; facts only, never set
	ENS    bool     `json:"ens,omitempty"`
}

// A PortGroup is a distributed port group.
type PortGroup struct {
	Name    string   `json:"name"`
	Path    string   `json:"path,omitempty"`
	Key     string   `json:"key"` // dvportgroup-12
	Switch  string   `json:"switch"`
	Uplink  bool     `json:"uplink,omitempty"` // the switch's own uplink port group
	VLAN    string   `json:"vlan"`             // "0", "100", "0-4094" for a trunk, "pvlan 5"
	Active  []string `json:"active"`           // active uplinks
	Standby []string `json:"standby,omitempty"`
	Binding string   `json:"binding"` // earlyBinding, lateBinding, ephemeral
	Ports   int      `json:"ports"`
	Free    int      `json:"free"` // -1 unknown

	Security *PortSecurity `json:"security,omitempty"` // nil: not read
}

// PortSecurity is what a port group lets a guest do with its MAC address.
type PortSecurity struct {
	MACChanges bool `json:"mac_changes"`
	Forged     bool `json:"forged_transmits"`
	Promisc    bool `json:"promiscuous"`
}

// A VM is a machine in vCenter.
type VM struct {
	Name          string            `json:"name"`
	Path          string            `json:"path,omitempty"`
	Datacenter    string            `json:"datacenter"`
	Cluster       string            `json:"cluster,omitempty"`
	Host          string            `json:"host"`
	Power         string            `json:"power"`           // poweredOn, poweredOff, suspended
	State         string            `json:"state,omitempty"` // connected, inaccessible, ...
	Template      bool              `json:"template,omitempty"`
	Hardware      int               `json:"hardware"` // 19 for vmx-19
	Firmware      string            `json:"firmware"` // bios, efi
	GuestID       string            `json:"guest_id,omitempty"`
	GuestName     string            `json:"guest_name,omitempty"`
	CPUs          int               `json:"cpus"`
	MemoryMB      int64             `json:"memory_mb"`
	Reservation   int64             `json:"reservation_mb"`
	MemoryLocked  bool              `json:"memory_locked"`
	Adapters      []Adapter         `json:"adapters"`
	Passthrough   []string          `json:"passthrough,omitempty"` // PCI addresses or labels of passed-through devices
	Snapshots     int               `json:"snapshots,omitempty"`
	FaultTolerant bool              `json:"fault_tolerant,omitempty"`
	Nested        bool              `json:"nested_hv,omitempty"`
	Latency       string            `json:"latency,omitempty"`
	CPUReserved   *int64            `json:"cpu_reservation_mhz,omitempty"` // nil: not read
	NodeAffinity  *string           `json:"numa_affinity,omitempty"`       // numa.nodeAffinity, "" when not pinned; nil: not read
	CPUHotAdd     bool              `json:"cpu_hot_add,omitempty"`
	MemHotAdd     bool              `json:"memory_hot_add,omitempty"`
	Tools         string            `json:"tools,omitempty"`   // guestToolsRunning, ...
	IPs           []string          `json:"ips,omitempty"`     // what Tools report
	Extra         map[string]string `json:"extra,omitempty"`   // extraConfig keys that matter here (pciPassthru*); details only
	VCenterVM     bool              `json:"vcenter,omitempty"` // the vCenter appliance itself
}

// An Adapter is one virtual network adapter of a VM, in the order of the device list.
type Adapter struct {
	Label     string `json:"label"`
	Type      string `json:"type"` // vmxnet3, pvrdma, sriov, e1000e, ...
	MAC       string `json:"mac"`
	PortGroup string `json:"port_group"` // or the network's name
	Switch    string `json:"switch,omitempty"`
	Protocol  string `json:"protocol,omitempty"` // rocev1, rocev2; pvrdma only
	Connected bool   `json:"connected"`
	Start     bool   `json:"start_connected"`
	GuestMTU  bool   `json:"guest_mtu,omitempty"` // guest may change the MTU; sriov only
	PF        string `json:"pf,omitempty"`        // PCI address of the physical function; sriov only
}

// Surveyor reads an inventory.
type Surveyor interface {
	Inventory(ctx context.Context, scope Scope) (*Inventory, error)
}

// Host, VM, Guest, Switch and PortGroup find by name (VM also by path); nil when there is none.
func (inv *Inventory) Host(name string) *Host {
	return find(inv.Hosts, func(h *Host) bool { return h.Name == name })
}

// VM finds a VM by the name a Ref carries or by its inventory path.
func (inv *Inventory) VM(name string) *VM {
	return find(inv.VMs, func(v *VM) bool { return v.Name == name || v.Path == name })
}

// Guest finds the guest of the VM of that name.
func (inv *Inventory) Guest(vm string) *Guest {
	return find(inv.Guests, func(g *Guest) bool { return g.VM == vm })
}

// Switch finds a DVS by name.
func (inv *Inventory) Switch(name string) *Switch {
	return find(inv.Switches, func(s *Switch) bool { return s.Name == name })
}

// PortGroup finds a distributed port group by name.
func (inv *Inventory) PortGroup(name string) *PortGroup {
	return find(inv.PortGroups, func(p *PortGroup) bool { return p.Name == name })
}

// NIC finds a pNIC by its device name (vmnic2).
func (h *Host) NIC(device string) *NIC {
	return find(h.NICs, func(n *NIC) bool { return n.Device == device })
}

// VMK finds a vmknic by its device name (vmk0).
func (h *Host) VMK(device string) *VMKernelNIC {
	return find(h.VMKs, func(v *VMKernelNIC) bool { return v.Device == device })
}

func find[T any](list []T, is func(*T) bool) *T {
	for i := range list {
		if is(&list[i]) {
			return &list[i]
		}
	}
	return nil
}
