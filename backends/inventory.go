package backends

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// An Inventory is what is there, read and never guessed. What could not be read is absent and named in Gaps.
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

// A Gap names something that could not be read and why.
type Gap struct {
	Target Ref    `json:"target"`
	What   string `json:"what"`
	Why    string `json:"why"`
}

// GapDVSVersions is the Gap.What of VCenter.DVSVersions.
const GapDVSVersions = "DVS versions on offer"

// HintNoHosts is what to do where VCenter.NoHosts is set.
const HintNoHosts = "add hosts to a datacenter, or give the account the role Read-only on it, with propagation"

// VCenter is the server that was asked.
type VCenter struct {
	URL          string    `json:"url"`
	InstanceUUID string    `json:"instance_uuid"`
	Version      string    `json:"version"`
	Build        string    `json:"build"`
	User         string    `json:"user"`
	Thumbprint   string    `json:"thumbprint,omitempty"`   // of the certificate that was served, spelled as in the answers
	Clock        time.Time `json:"clock,omitzero"`         // vCenter's clock when it was asked
	ClockAsked   time.Time `json:"-"`                      // our clock at that moment
	Simulated    bool      `json:"simulated"`              // the lab says so itself
	DVSVersions  []string  `json:"dvs_versions,omitempty"` // what QueryAvailableDvsSpec offers, oldest first
	NoHosts      string    `json:"no_hosts,omitempty"`     // why no host at all was seen; "": some were
}

// A Cluster is what a cluster decides about its hosts and VMs.
type Cluster struct {
	Name        string            `json:"name"`
	Datacenter  string            `json:"datacenter,omitempty"`
	DRS         bool              `json:"drs"`
	DRSMode     string            `json:"drs_mode,omitempty"`     // manual, partiallyAutomated, fullyAutomated
	DRSOverride map[string]string `json:"drs_override,omitempty"` // by VM: its own mode, or "disabled"
	HA          bool              `json:"ha"`
	Failover    int               `json:"ha_failover,omitempty"` // lost hosts that HA's admission control keeps capacity for; 0: it is off
	VSAN        bool              `json:"vsan"`
	EVC         *string           `json:"evc,omitempty"` // key of the EVC mode, "" when off; nil: not read
	Rules       []DRSRule         `json:"drs_rules,omitempty"`
	Image       *ClusterImage     `json:"image,omitempty"` // nil: none manages it, or nobody asked
}

// A ClusterImage is the image by which vSphere Lifecycle Manager manages a cluster (vSphere Automation API,
// esx/settings/clusters/{cluster}/software).
type ClusterImage struct {
	Base       string              `json:"base,omitempty"`             // version of the base image
	Components map[string]string   `json:"components,omitempty"`       // added to it, version by name
	AddOn      string              `json:"add_on,omitempty"`           // a vendor's add-on in it
	Hardware   []string            `json:"hardware_support,omitempty"` // hardware support managers whose firmware is in it
	Drafts     []ImageDraft        `json:"drafts,omitempty"`
	Offered    map[string][]string `json:"offered,omitempty"`    // versions of the components in vCenter's depots, by name
	Power      string              `json:"power,omitempty"`      // what remediation does with VMs: DO_NOT_CHANGE_VMS_POWER_STATE
	QuickBoot  bool                `json:"quick_boot,omitempty"` // remediation restarts hosts by Quick Boot, without firmware start
	Error      string              `json:"error,omitempty"`      // why it could not be read
}

// An ImageDraft is an edit of an image that is not committed.
type ImageDraft struct {
	Owner      string            `json:"owner"`
	Ours       bool              `json:"ours,omitempty"`       // of the account in use
	Components map[string]string `json:"components,omitempty"` // as Components of the image; read of our own alone
	Other      bool              `json:"other,omitempty"`      // it changes more than components: the base image, an add-on; read of our own alone
}

// Left reports whether a draft is one that a run left: of the account in use, and with no other change than that of a component.
func (img *ClusterImage) Left(d ImageDraft, component string) bool {
	was, is := maps.Clone(img.Components), maps.Clone(d.Components)
	delete(was, component)
	delete(is, component)
	return d.Ours && !d.Other && maps.Equal(was, is)
}

// Component is the version of a component in the image: Absent if it is not in it, and Partial if a draft of our own holds this
// change and no other. A run that ended between making a draft and its commit leaves one.
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

// A RuleKind is what a DRS rule demands.
type RuleKind string

// The kinds of DRS rule.
const (
	RuleApart    RuleKind = "anti-affinity" // its VMs run on different hosts
	RuleTogether RuleKind = "affinity"      // its VMs run on one host
	RuleHosts    RuleKind = "vm-host"       // its VMs run on Hosts, and not on NotHosts
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

// KeptApart names the anti-affinity rules of a VM: no two VMs of one rule are to be out of service at once.
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

// A Scope limits an inventory. Zero reads everything in overview; Hosts and VMs name those whose details
// (options, firewall, device lists) are wanted too.
type Scope struct {
	Datacenter string
	Cluster    string
	Hosts      []string // names; nil: all
	VMs        []string // names or inventory paths; nil: all
	Fresh      bool     // have vCenter read firewall and services of the chosen hosts again first: two calls a host
	Wide       bool     // details of the hosts and VMs beside those chosen, too
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

	Interrupt *bool `json:"ens_interrupt,omitempty"` // ENS runs in interrupt mode, else in poll mode; nil: vCenter does not tell
}

// DataPath names the mode in which a member runs the switch (DistributedVirtualSwitchHostMemberConfigInfo of the vSphere Web
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

// PortSecurity is what a port group lets a guest do with its MAC address.
type PortSecurity struct {
	MACChanges bool `json:"mac_changes"`
	Forged     bool `json:"forged_transmits"`
}

// A VM is a machine in vCenter.
type VM struct {
	Name          string            `json:"name"`
	Path          string            `json:"path,omitempty"`
	Datacenter    string            `json:"datacenter"`
	Cluster       string            `json:"cluster,omitempty"`
	VApp          string            `json:"vapp,omitempty"` // that it belongs to
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
	Devices       []AssignedDevice  `json:"devices,omitempty"`     // the same with what is known of each
	Snapshots     int               `json:"snapshots,omitempty"`
	FaultTolerant bool              `json:"fault_tolerant,omitempty"`
	Nested        bool              `json:"nested_hv,omitempty"`
	Latency       string            `json:"latency,omitempty"`
	CPUReserved   *int64            `json:"cpu_reservation_mhz,omitempty"` // nil: not read
	NodeAffinity  *string           `json:"numa_affinity,omitempty"`       // numa.nodeAffinity, "" when not pinned; nil: not read
	CPUHotAdd     bool              `json:"cpu_hot_add,omitempty"`
	MemHotAdd     bool              `json:"memory_hot_add,omitempty"`
	Tools         string            `json:"tools,omitempty"`       // guestToolsRunning, ...
	IPs           []string          `json:"ips,omitempty"`         // what Tools report
	Extra         map[string]string `json:"extra,omitempty"`       // extraConfig keys that matter here (pciPassthru*); details only
	VCenterVM     bool              `json:"vcenter,omitempty"`     // the vCenter appliance itself
	ManagedBy     string            `json:"managed_by,omitempty"`  // key of the extension that owns it (config.managedBy)
	Datastores    []string          `json:"datastores,omitempty"`  // of its disks: references, as those of Host.Datastores
	BusSharing    string            `json:"bus_sharing,omitempty"` // of a SCSI controller: virtualSharing, physicalSharing; "": none
	// GuestAdapters are the classes of adapters (VirtualVmxnet3Vrdma) that vCenter supports for the guest OS and hardware version
	// of the VM; nil: not read, empty: vCenter does not list the guest OS for that version. Details only.
	GuestAdapters []string `json:"guest_adapters,omitzero"`
}

// An AssignedDevice is a host's device in a VM, or a share of one.
type AssignedDevice struct {
	PCI     string `json:"pci,omitempty"` // "" for a dynamic device that has none now, and for a vGPU
	Backing string `json:"backing"`       // FixedBacking, DynamicBacking, VGPUBacking
	Vendor  string `json:"vendor,omitempty"`
	Device  string `json:"device,omitempty"`
	Profile string `json:"profile,omitempty"` // of a vGPU: grid_a100-40c
	Slot    int    `json:"slot,omitempty"`    // pciSlotNumber; 0 before the first power-on
}

// Is reports whether it is a device of the host.
func (d AssignedDevice) Is(c PCIDevice) bool { return strings.EqualFold(d.PCI, c.Address) }

// GuestBridge is the PCI address, in the guest, of the bridge that the device is behind: "0000:00:16.0" for slot 192. Of the
// slot's number bits 5 to 9 are one more than the number of the bridge, whose own slot is 17 more than its number, and the bits
// above are its function (KB 311606, Mapping PCI slot numbers to guest-visible PCI bus topology). "" if it is behind none, or not
// known.
func (d AssignedDevice) GuestBridge() string {
	if d.Slot>>5&31 == 0 {
		return ""
	}
	return fmt.Sprintf("0000:00:%02x.%d", 16+d.Slot>>5&31, d.Slot>>10&7)
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

// SupportsAdapter reports whether vCenter supports a type of adapter (Adapter.Type: pvrdma, sriov) for the guest OS and the
// hardware version of the VM (vSphere Web Services API, GuestOsDescriptor.supportedEthernetCard); known is false if that was not
// read.
func (v *VM) SupportsAdapter(kind string) (supported, known bool) {
	class := map[string]string{"pvrdma": "VirtualVmxnet3Vrdma", "sriov": "VirtualSriovEthernetCard"}[kind]
	return slices.Contains(v.GuestAdapters, class), v.GuestAdapters != nil && class != ""
}

// PVRDMAModule is the Linux kernel module that drives adapters of type pvrdma: drivers/infiniband/hw/vmw_pvrdma.
const PVRDMAModule = "vmw_pvrdma"

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

// Cluster finds a cluster by name.
func (inv *Inventory) Cluster(name string) *Cluster {
	return find(inv.Clusters, func(c *Cluster) bool { return c.Name == name })
}

// Switch finds a DVS by name.
func (inv *Inventory) Switch(name string) *Switch {
	return find(inv.Switches, func(s *Switch) bool { return s.Name == name })
}

// PortGroup finds a distributed port group by name.
func (inv *Inventory) PortGroup(name string) *PortGroup {
	return find(inv.PortGroups, func(p *PortGroup) bool { return p.Name == name })
}

// BAR1 is the size in MB of BAR1 of a model of GPU as a guest reads it that has whole GPUs of this model and no others; 0 if none
// does.
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
		if !slices.ContainsFunc(v.Devices, func(d AssignedDevice) bool { return d.Vendor == vendor && d.Device == device }) || slices.ContainsFunc(v.Devices, other) {
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
