package backends

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// An Inventory holds the facts that were read; nothing in it is guessed. What could not be read is missing and listed in Gaps.
type Inventory struct {
	VCenter    VCenter     `json:"vcenter"`
	Hosts      []Host      `json:"hosts"`
	Switches   []Switch    `json:"switches,omitempty"`
	PortGroups []PortGroup `json:"port_groups,omitempty"`
	Clusters   []Cluster   `json:"clusters,omitzero"` // nil: the clusters' settings were not read
	VMs        []VM        `json:"vms"`
	Guests     []Guest     `json:"guests,omitempty"`
	Gaps       []Gap       `json:"gaps,omitempty"`
	Took       *Took       `json:"took,omitempty"` // nil: the history was not read
	APICalls   int         `json:"api_calls"`
}

// A Gap names something that could not be read, and the reason.
type Gap struct {
	Target Ref    `json:"target"`
	What   string `json:"what"`
	Why    string `json:"why"`
}

// GapDVSVersions is the Gap.What of VCenter.DVSVersions.
const GapDVSVersions = "DVS versions on offer"

// HintNoHosts is the remedy if VCenter.NoHosts is set.
const HintNoHosts = "add hosts to a datacenter, or give the account the role Read-only on it, with propagation"

// VCenter describes the vCenter server.
type VCenter struct {
	URL          string    `json:"url"`
	InstanceUUID string    `json:"instance_uuid"`
	Version      string    `json:"version"`
	Build        string    `json:"build"`
	User         string    `json:"user"`
	Thumbprint   string    `json:"thumbprint,omitempty"`   // of the server's certificate, in the spelling of the answers
	Clock        time.Time `json:"clock,omitzero"`         // vCenter's clock at the time of the request
	ClockAsked   time.Time `json:"-"`                      // this machine's clock at that time
	Simulated    bool      `json:"simulated"`              // the lab identifies itself as simulated
	DVSVersions  []string  `json:"dvs_versions,omitempty"` // versions from QueryAvailableDvsSpec, oldest first
	NoHosts      string    `json:"no_hosts,omitempty"`     // why no host was found; "" if some were
}

// A Cluster holds the cluster settings that affect its hosts and VMs.
type Cluster struct {
	Name        string            `json:"name"`
	Datacenter  string            `json:"datacenter,omitempty"`
	DRS         bool              `json:"drs"`
	DRSMode     string            `json:"drs_mode,omitempty"`     // manual, partiallyAutomated, fullyAutomated
	DRSOverride map[string]string `json:"drs_override,omitempty"` // by VM: its own mode, or "disabled"
	HA          bool              `json:"ha"`
	// number of host failures that HA's admission control reserves capacity for; 0: off
	Failover int           `json:"ha_failover,omitempty"`
	VSAN     bool          `json:"vsan"`
	EVC      *string       `json:"evc,omitempty"` // key of the EVC mode, "" when off; nil: not read
	Rules    []DRSRule     `json:"drs_rules,omitempty"`
	Image    *ClusterImage `json:"image,omitempty"` // nil: no image manages it, or not requested
}

// A ClusterImage is the image by which vSphere Lifecycle Manager manages a cluster (vSphere Automation API,
// esx/settings/clusters/{cluster}/software).
type ClusterImage struct {
	Base       string              `json:"base,omitempty"`             // version of the base image
	Components map[string]string   `json:"components,omitempty"`       // components added to the base image, version by name
	AddOn      string              `json:"add_on,omitempty"`           // the vendor add-on
	Hardware   []string            `json:"hardware_support,omitempty"` // hardware support managers whose firmware is part of the image
	Drafts     []ImageDraft        `json:"drafts,omitempty"`
	Offered    map[string][]string `json:"offered,omitempty"`    // versions of the components in vCenter's depots, by name
	Power      string              `json:"power,omitempty"`      // power setting of VMs during remediation: DO_NOT_CHANGE_VMS_POWER_STATE
	QuickBoot  bool                `json:"quick_boot,omitempty"` // remediation restarts hosts by Quick Boot, without firmware initialization
	Error      string              `json:"error,omitempty"`      // why it could not be read
}

// An ImageDraft is an uncommitted edit of an image.
type ImageDraft struct {
	Owner      string            `json:"owner"`
	Ours       bool              `json:"ours,omitempty"`       // it belongs to the account in use
	Components map[string]string `json:"components,omitempty"` // like Components of the image; read only if Ours
	// it changes more than components, such as the base image or an add-on; read only if Ours
	Other bool `json:"other,omitempty"`
}

// Left reports whether a draft was left behind by a run: it belongs to the account in use and changes only that component.
func (img *ClusterImage) Left(d ImageDraft, component string) bool {
	was, is := maps.Clone(img.Components), maps.Clone(d.Components)
	delete(was, component)
	delete(is, component)
	return d.Ours && !d.Other && maps.Equal(was, is)
}

// Component returns the version of a component in the image: Absent if it is not in it, and Partial if a draft of the account in
// use holds only this change. A run that ended between creating a draft and its commit leaves such a draft.
func (img *ClusterImage) Component(name string) Value {
	if v, there := img.Components[name]; there {
		return ValueOf(v)
	}
	for _, d := range img.Drafts {
		if img.Left(d, name) {
			return Partial(d.Components[name])
		}
	}
	return Absent
}

// A RuleKind is what a DRS rule requires.
type RuleKind string

// The kinds of DRS rule.
const (
	RuleApart    RuleKind = "anti-affinity" // its VMs must run on different hosts
	RuleTogether RuleKind = "affinity"      // its VMs must run on one host
	RuleHosts    RuleKind = "vm-host"       // its VMs must run on Hosts, and not on NotHosts
)

// A DRSRule is an enabled affinity rule of a cluster (ClusterConfigInfoEx.rule in the vSphere Web Services API). Groups of
// VMs and hosts are resolved to names.
type DRSRule struct {
	Name      string   `json:"name"`
	Kind      RuleKind `json:"kind"`
	Mandatory bool     `json:"mandatory,omitempty"` // a VM-host rule that vCenter enforces ("must")
	VMs       []string `json:"vms"`
	Hosts     []string `json:"hosts,omitempty"`
	NotHosts  []string `json:"not_hosts,omitempty"`
}

// KeptApart returns the names of the anti-affinity rules of a VM: no two VMs of one rule may be out of service at the same time.
func (inv *Inventory) KeptApart(vm string) []string {
	var names []string
	for _, c := range inv.Clusters {
		for _, r := range c.Rules {
			if r.Kind == RuleApart && slices.Contains(r.VMs, vm) {
				names = append(names, "DRS rule "+r.Name)
			}
		}
	}
	return names
}

// A Scope limits what an inventory reads. The zero Scope reads an overview of everything; Hosts and VMs name those whose details
// (options, firewall, device lists) are read too.
type Scope struct {
	Datacenter string
	Cluster    string
	Hosts      []string // names; nil: all
	VMs        []string // names or inventory paths; nil: all
	Fresh      bool     // make vCenter refresh firewall and services of the chosen hosts first: two calls per host
	Wide       bool     // also read details of the hosts and VMs that were not chosen
	Details    bool     // options, firewall rulesets, DVS offers: what a plan needs

	// Names is given the hosts with their names, places and states before everything else is read: one call per 500 hosts more. Nil:
	// they are not read first.
	Names func(*Inventory)
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
	MTUMax     int               `json:"mtu_max,omitempty"`
	NIOC       bool              `json:"nioc"`
	Discovery  string            `json:"discovery,omitempty"` // "lldp listen", "cdp both", ...
	Members    map[string]Member `json:"members"`             // by host name
	PortGroups []string          `json:"port_groups,omitempty"`
	LAGs       int               `json:"lags,omitempty"`
	VMKs       []string          `json:"vmknics,omitempty"` // "esx-01/vmk1": vmknics on the switch
	VMs        []string          `json:"vms,omitempty"`     // VMs connected to it
	NSX        bool              `json:"nsx,omitempty"`
	OffloadID  string            `json:"offload,omitempty"` // network offload spec (DPU)
	Note       string            `json:"note,omitempty"`    // config.description: contains SwitchMark on a switch that this program created
	Health     *SwitchHealth     `json:"health,omitempty"`  // nil: not read
}

// SwitchHealth is the VLAN and MTU health check of a DVS.
type SwitchHealth struct {
	Enabled  bool     `json:"enabled"`
	Mismatch []string `json:"mismatch,omitempty"` // findings: "esx-01 Uplink 1: VLAN 100 not trunked"
}

// A Member is the membership of one host in a DVS.
type Member struct {
	PNICs  []string `json:"pnics"`
	Status string   `json:"status,omitempty"` // up, pending, outOfSync, ...; read only, never set
	ENS    bool     `json:"ens,omitempty"`

	Interrupt *bool `json:"ens_interrupt,omitempty"` // true: ENS runs in interrupt mode, false: in poll mode; nil: vCenter does not report it
}

// DataPath returns the name of the data path mode of a member (DistributedVirtualSwitchHostMemberConfigInfo of the vSphere Web
// Services API: ensEnabled, ensInterruptEnabled).
func (m Member) DataPath() string {
	switch {
	case !m.ENS:
		return "standard mode"
	case m.Interrupt == nil:
		return "enhanced data path mode (ENS, whether interrupt or poll mode is not known)"
	case *m.Interrupt:
		return "enhanced data path mode (ENS, interrupt mode)"
	}
	return "enhanced data path mode (ENS, poll mode)"
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

// PortSecurity is what a port group allows guests to do with MAC addresses.
type PortSecurity struct {
	MACChanges bool `json:"mac_changes"`
	Forged     bool `json:"forged_transmits"`
}

// A VM is a virtual machine in vCenter.
type VM struct {
	Name          string            `json:"name"`
	Path          string            `json:"path,omitempty"`
	Datacenter    string            `json:"datacenter"`
	Cluster       string            `json:"cluster,omitempty"`
	VApp          string            `json:"vapp,omitempty"` // the vApp that it belongs to
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
	Devices       []AssignedDevice  `json:"devices,omitempty"`     // the same devices with details
	Snapshots     int               `json:"snapshots,omitempty"`
	FaultTolerant bool              `json:"fault_tolerant,omitempty"`
	Nested        bool              `json:"nested_hv,omitempty"`
	Latency       string            `json:"latency,omitempty"`
	CPUReserved   *int64            `json:"cpu_reservation_mhz,omitempty"` // nil: not read
	NodeAffinity  *string           `json:"numa_affinity,omitempty"`       // numa.nodeAffinity, "" when not pinned; nil: not read
	CPUHotAdd     bool              `json:"cpu_hot_add,omitempty"`
	MemHotAdd     bool              `json:"memory_hot_add,omitempty"`
	Tools         string            `json:"tools,omitempty"`       // guestToolsRunning, ...
	IPs           []string          `json:"ips,omitempty"`         // as reported by VMware Tools
	Extra         map[string]string `json:"extra,omitempty"`       // the relevant extraConfig keys (pciPassthru*); details only
	VCenterVM     bool              `json:"vcenter,omitempty"`     // the vCenter appliance itself
	ManagedBy     string            `json:"managed_by,omitempty"`  // key of the extension that manages it (config.managedBy)
	Datastores    []string          `json:"datastores,omitempty"`  // references of the datastores of its disks, as in Host.Datastores
	BusSharing    string            `json:"bus_sharing,omitempty"` // of a SCSI controller: virtualSharing, physicalSharing; "": none
	RawDisks      []RawDisk         `json:"raw_disks,omitempty"`   // disks that are LUNs
	// GuestAdapters are the classes of adapters (VirtualVmxnet3Vrdma) that vCenter supports for the guest OS and hardware version
	// of the VM; nil: not read, empty: vCenter does not list the guest OS for that version. Details only.
	GuestAdapters []string `json:"guest_adapters,omitzero"`
}

// A RawDisk is a disk of a VM that maps a LUN: VirtualDiskRawDiskMappingVer1BackingInfo in the vSphere Web Services API.
type RawDisk struct {
	LUN           string `json:"lun_uuid"`
	Device        string `json:"device,omitempty"` // "": the host does not reach the LUN
	Compatibility string `json:"compatibility"`    // physicalMode, virtualMode
	Mode          string `json:"disk_mode,omitempty"`
	CapacityKB    int64  `json:"capacity_kb"`
}

// An AssignedDevice is a host's device, or a share of one, that is assigned to a VM.
type AssignedDevice struct {
	PCI     string `json:"pci,omitempty"` // "" for a vGPU, and for a dynamic device while none is assigned
	Backing string `json:"backing"`       // FixedBacking, DynamicBacking, VGPUBacking
	Vendor  string `json:"vendor,omitempty"`
	Device  string `json:"device,omitempty"`
	Profile string `json:"profile,omitempty"` // of a vGPU: grid_a100-40c
	Group   string `json:"group,omitempty"`   // name of the vendor device group that it is in
	Slot    int    `json:"slot,omitempty"`    // pciSlotNumber; 0 before the first power-on
}

// Is reports whether the assigned device is the given device of the host.
func (d AssignedDevice) Is(c PCIDevice) bool { return strings.EqualFold(d.PCI, c.Address) }

// GuestBridge returns the PCI address, in the guest, of the bridge above the device: "0000:00:16.0" for slot 192. Bits 5 to 9 of
// the slot number are the number of the bridge plus one; the PCI slot of a bridge is its number plus 17; the higher bits are its
// function (KB 311606, Mapping PCI slot numbers to guest-visible PCI bus topology). "" if there is no bridge or it is unknown.
func (d AssignedDevice) GuestBridge() string {
	if d.Slot>>5&31 == 0 {
		return ""
	}
	return fmt.Sprintf("0000:00:%02x.%d", 16+d.Slot>>5&31, d.Slot>>10&7)
}

// An Adapter is a virtual network adapter of a VM. VM.Adapters has the order of the device list.
type Adapter struct {
	Label     string `json:"label"`
	Type      string `json:"type"` // vmxnet3, pvrdma, sriov, e1000e, ...
	MAC       string `json:"mac"`
	PortGroup string `json:"port_group"` // or the name of the network
	Switch    string `json:"switch,omitempty"`
	Protocol  string `json:"protocol,omitempty"` // rocev1, rocev2; pvrdma only
	Connected bool   `json:"connected"`
	Start     bool   `json:"start_connected"`
	GuestMTU  bool   `json:"guest_mtu,omitempty"` // the guest may change the MTU; sriov only
	PF        string `json:"pf,omitempty"`        // PCI address of the physical function; sriov only
}

// SupportsAdapter reports whether vCenter supports a type of adapter (Adapter.Type: pvrdma, sriov) for the guest OS and the
// hardware version of the VM (vSphere Web Services API, GuestOsDescriptor.supportedEthernetCard). known is false if that was not
// read.
func (v *VM) SupportsAdapter(kind string) (supported, known bool) {
	class := map[string]string{"pvrdma": "VirtualVmxnet3Vrdma", "sriov": "VirtualSriovEthernetCard"}[kind]
	return slices.Contains(v.GuestAdapters, class), v.GuestAdapters != nil && class != ""
}

// PVRDMAModule is the Linux kernel module for adapters of type pvrdma: drivers/infiniband/hw/vmw_pvrdma.
const PVRDMAModule = "vmw_pvrdma"

// Host returns a host by name, or nil.
func (inv *Inventory) Host(name string) *Host {
	return find(inv.Hosts, func(h *Host) bool { return h.Name == name })
}

// VM returns a VM by the name in a Ref or by its inventory path, or nil.
func (inv *Inventory) VM(name string) *VM {
	return find(inv.VMs, func(v *VM) bool { return v.Name == name || v.Path == name })
}

// Guest returns the guest of the VM with that name, or nil.
func (inv *Inventory) Guest(vm string) *Guest {
	return find(inv.Guests, func(g *Guest) bool { return g.VM == vm })
}

// Cluster returns a cluster by name, or nil.
func (inv *Inventory) Cluster(name string) *Cluster {
	return find(inv.Clusters, func(c *Cluster) bool { return c.Name == name })
}

// Switch returns a DVS by name, or nil.
func (inv *Inventory) Switch(name string) *Switch {
	return find(inv.Switches, func(s *Switch) bool { return s.Name == name })
}

// PortGroup returns a distributed port group by name, or nil.
func (inv *Inventory) PortGroup(name string) *PortGroup {
	return find(inv.PortGroups, func(p *PortGroup) bool { return p.Name == name })
}

// BAR1 returns the size of BAR1 of a GPU model in MB, as reported by a guest whose GPUs are all whole GPUs of this model; 0 if
// there is no such guest.
func (inv *Inventory) BAR1(vendor, device string) int64 {
	for i := range inv.Guests {
		g := &inv.Guests[i]
		v := inv.VM(g.VM)
		if v == nil || g.NVIDIA == nil || len(g.NVIDIA.Devices) == 0 {
			continue
		}
		other := func(d AssignedDevice) bool {
			return d.Vendor == vendor && d.Device != device || d.Backing == VGPUBacking
		}
		if !slices.ContainsFunc(v.Devices, func(d AssignedDevice) bool { return d.Vendor == vendor && d.Device == device }) ||
			slices.ContainsFunc(v.Devices, other) {
			continue
		}
		if d := g.NVIDIA.Devices[0]; d.BAR1MB > 0 && !d.VGPU {
			return d.BAR1MB
		}
	}
	return 0
}

func find[T any](list []T, is func(*T) bool) *T {
	for i := range list {
		if is(&list[i]) {
			return &list[i]
		}
	}
	return nil
}
