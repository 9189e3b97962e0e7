package backends

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ImageManaged is the entry in Host.ManagedBy for a vSphere Lifecycle Manager image that manages the host's cluster.
const ImageManaged = "vLCM image"

// Imaged reports whether an image manages the host's cluster: the next remediation removes software that was installed on the
// host by hand (KB 440252).
func (h *Host) Imaged() bool { return slices.Contains(h.ManagedBy, ImageManaged) }

// UnsupportedBaselines reports whether the host's cluster is managed by baselines under a vCenter that barely supports them: vCenter 9
// neither patches ESX 9 hosts nor upgrades hosts with baselines (Broadcom KB 379388).
func (inv *Inventory) UnsupportedBaselines(h *Host) bool {
	major, _, _ := strings.Cut(inv.VCenter.Version, ".")
	n, err := strconv.Atoi(major)
	return err == nil && n >= 9 && h.Cluster != "" && !h.Imaged()
}

// DeadBaselines is the text for that case, as a predicate of a host.
const DeadBaselines = "its cluster is managed by baselines, with which vCenter 9 does not patch ESX 9 hosts and does not upgrade hosts " +
	"(KB 379388)"

// A Host is an ESXi host.
type Host struct {
	Datastores []string `json:"datastores,omitempty"` // references of the datastores that it mounts
	Networks   []string `json:"networks,omitempty"`   // port groups of its standard switches
	Name       string   `json:"name"`
	Path       string   `json:"path,omitempty"` // inventory path
	Datacenter string   `json:"datacenter"`
	Cluster    string   `json:"cluster"`
	Version    string   `json:"version"` // "8.0.3"
	Build      string   `json:"build,omitempty"`
	State      string   `json:"state"` // connected, disconnected, notResponding
	Vendor     string   `json:"vendor,omitempty"`
	Model      string   `json:"model,omitempty"`

	InMaintenance  bool      `json:"in_maintenance,omitempty"`
	RebootRequired bool      `json:"reboot_required,omitempty"`
	BootTime       time.Time `json:"boot_time,omitzero"`
	ManagedBy      []string  `json:"managed_by,omitempty"` // owners of the desired state: vLCM image, host profile, ...

	NICs      []NIC         `json:"nics"`
	Hidden    []NIC         `json:"hidden_ports,omitempty"` // PCI functions of known RDMA cards without a pNIC (NIC.Hidden)
	RDMA      []RDMADevice  `json:"rdma_devices,omitempty"`
	VMKs      []VMKernelNIC `json:"vmknics,omitempty"`
	GPUs      []GPU         `json:"gpus"`
	Baseboard *Baseboard    `json:"baseboard,omitempty"`     // HGX board, nil if there is none
	Profiles  []string      `json:"vgpu_profiles,omitempty"` // vGPU profiles that the host's driver offers

	DeviceGroups []string `json:"vendor_device_groups,omitempty"` // names of vendor device groups, vSphere 8 and later
	// profiles of the vGPUs of groups that hold nothing else, by group
	GroupVGPUs map[string][]string `json:"vendor_device_group_vgpus,omitempty"`
	PCI        []PCIDevice         `json:"pci,omitempty"`
	Options    map[string]string   `json:"options,omitempty"`  // only the requested keys; details only
	Stale      string              `json:"stale,omitempty"`    // why vCenter did not refresh firewall and services: they may be minutes old
	Firewall   map[string]Ruleset  `json:"firewall,omitempty"` // by ruleset key; details only
	NTP        []string            `json:"ntp,omitempty"`
	NTPActive  bool                `json:"ntp_active,omitempty"`

	PowerPolicy   string   `json:"power_policy,omitempty"`   // short name: static, dynamic, low, custom
	PowerPolicies []string `json:"power_policies,omitempty"` // policies that the BIOS lets ESXi control; empty: the BIOS keeps control
	Lockdown      string   `json:"lockdown,omitempty"`
	Rebind        bool     `json:"rebind_without_reboot,omitempty"` // devices move between host and VMs without a reboot; details only
	GraphicsType  string   `json:"graphics_type,omitempty"`         // hostDefaultGraphicsType: shared, sharedDirect; "" not read

	GraphicsDevices map[string]string `json:"graphics_devices,omitempty"` // configured types of individual GPUs, by PCI address

	Services  map[string]Service `json:"services,omitzero"`   // by key, such as TSM-SSH; details only
	VSwitches []VSwitch          `json:"vswitches,omitempty"` // its standard switches

	CPUModel     string   `json:"cpu_model,omitempty"`
	Sockets      int      `json:"sockets,omitempty"`
	Cores        int      `json:"cores,omitempty"`
	CPUMHz       int      `json:"cpu_mhz,omitempty"`
	MemoryMB     int64    `json:"memory_mb,omitempty"`
	MemoryUsedMB int64    `json:"memory_used_mb,omitempty"`
	Hyperthreads bool     `json:"hyperthreads,omitempty"`
	RecentTasks  []string `json:"recent_tasks,omitempty"` // descriptions of tasks that are running on the host

	System *HostSystem `json:"system,omitempty"` // nil: not requested
}

// A Ruleset is one firewall ruleset of a host.
type Ruleset struct {
	Enabled  bool     `json:"enabled"`
	AllIP    bool     `json:"all_ip"`
	Networks []string `json:"networks,omitempty"` // CIDRs and addresses when AllIP is false
}

// A Service is a service of a host (HostService in the vSphere Web Services API).
type Service struct {
	Running bool   `json:"running"`
	Policy  string `json:"policy"` // on, off, automatic
}

// A VSwitch is a standard switch of a host.
type VSwitch struct {
	Name       string   `json:"name"`
	MTU        int      `json:"mtu"`
	PNICs      []string `json:"pnics,omitempty"`       // uplinks: vmnic0
	PortGroups []string `json:"port_groups,omitempty"` // names
}

// A NIC is a physical network adapter (pNIC) of a host.
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
	RDMADevice    string   `json:"rdma_device"` // vmrdma0, "" if there is none
	RoCEv1        bool     `json:"roce_v1,omitempty"`
	RoCEv2        bool     `json:"roce_v2"`
	IWARP         bool     `json:"iwarp,omitempty"`
	RDMAState     string   `json:"rdma_state,omitempty"` // active, activeDefer, down, init, armed, unknown
	SRIOV         *SRIOV   `json:"sriov"`
	DPU           string   `json:"dpu,omitempty"` // id of the DPU that owns it (pnic.dpuId), "" on ordinary NICs
	Switch        string   `json:"switch"`        // name of the vSwitch or DVS that uses it as an uplink
	Roles         []string `json:"roles"`         // traffic of the vmknics on that switch: management, vmotion, vsan, ...
	Use           NICUse   `json:"use,omitzero"`
	// why a PCI function has no pNIC, as a predicate; Device is then its PCI address. "" for a pNIC
	Hidden   string `json:"hidden,omitempty"`
	Eligible bool   `json:"eligible"` // according to ChoosePNIC with a zero wish
	Why      string `json:"why"`      // why it is or is not eligible for RDMA
}

// NICUse lists the users of a pNIC.
type NICUse struct {
	Standard bool `json:"standard_switch,omitempty"` // NIC.Switch is a standard vSwitch, not a DVS
	Opaque   bool `json:"opaque_switch,omitempty"`   // NIC.Switch is managed outside vSphere: an N-VDS of NSX
	// the DVS runs enhanced data path on this host; what that means depends on the driver (nic.ENS)
	ENS     bool     `json:"ens,omitempty"`
	VMKs    []string `json:"vmknics,omitempty"` // on NIC.Switch on this host
	VMs     []string `json:"vms,omitempty"`     // VMs with an ordinary adapter (neither pvrdma nor sriov) on NIC.Switch
	Storage []string `json:"storage,omitempty"` // storage adapters that use its RDMA device or the pNIC itself: vmhba65
}

// SRIOV is the state of SR-IOV on a physical function.
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
	Roles     []string `json:"roles"`           // management, vmotion, vsan, ...
	PNICs     []string `json:"pnics,omitempty"` // uplinks for its traffic: active and standby by the teaming policy
}

// RoleVMKernel is the role of a pNIC that carries a vmknic without services.
const RoleVMKernel = "vmkernel"

// VMKNICOption is the advanced option that names the vmknic of PVRDMA's control plane; "" until it is set.
const VMKNICOption = "Net.PVRDMAVmknic"

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
	Graphics string   `json:"graphics,omitempty"`     // active graphics type: basic, shared, sharedDirect, direct (passed through)
	VGPUMode string   `json:"vgpu_mode,omitempty"`    // sameSize, mixedSize, multiInstanceGpu, none; "" before vSphere 8.0.3
	SharedBy []string `json:"shared_by,omitempty"`    // VMs that run with a vGPU of it
	RootPort string   `json:"root_port,omitempty"`    // PCI address of the root port above it
	Switches []string `json:"pci_switches,omitempty"` // bridges between root port and device, from the top down

	Dependents []string `json:"dependents,omitempty"` // PCI addresses of devices that are passed through together with it (IOMMU group)
	Pairs      []Pair   `json:"pairs,omitempty"`      // its paths to each RDMA card of the host, nearest first
}

// A PCIDevice is a row of the host's PCI list, reduced to what topology needs.
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

// NIC returns a pNIC by its device name (vmnic2), or a hidden one by its PCI address; nil if there is none.
func (h *Host) NIC(device string) *NIC {
	named := func(n *NIC) bool { return n.Device == device }
	if n := find(h.NICs, named); n != nil {
		return n
	}
	return find(h.Hidden, named)
}

// VMK returns a vmknic by its device name (vmk0), or nil.
func (h *Host) VMK(device string) *VMKernelNIC {
	return find(h.VMKs, func(v *VMKernelNIC) bool { return v.Device == device })
}

// A VMKRange describes the vmknics that this program creates for PVRDMA. The zero range contains none.
type VMKRange struct {
	PortGroup string
	Network   netip.Prefix
	Start     netip.Addr // first address of Network that is assigned
}

// Holds reports whether a vmknic belongs to the range: it has no service, is on the port group, and has a static address in the
// range.
func (r VMKRange) Holds(k *VMKernelNIC) bool {
	ip, err := netip.ParseAddr(k.IP)
	return err == nil && len(k.Roles) == 0 && !k.DHCP && k.PortGroup == r.PortGroup && r.Network.Contains(ip) && !ip.Less(r.Start)
}
