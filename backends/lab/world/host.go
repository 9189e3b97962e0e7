package world

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rdma-setup/rdma-setup/backends/lab/firmware"
)

// HostState describes whether a host responds.
type HostState string

// The states of a host.
const (
	Up        HostState = "up"
	Rebooting HostState = "rebooting"
	Down      HostState = "down"
)

// A Host is one ESXi host.
type Host struct {
	Name        string
	Index       int    // position in the inventory, from 0
	Cluster     int    // 0: the first one; from 1: State.Clusters
	Version     string // "8.0.3"
	Build       string
	State       HostState
	Maintenance bool
	// Disconnected is set while the host is disconnected from vCenter. Its VMs continue to run.
	Disconnected bool
	BootTime     time.Time

	HAAgent       string        // state of its HA agent outside of maintenance mode; "": healthy
	HALater       string        // state of its HA agent from the next boot on
	Problems      []HostProblem // current problems
	ProblemsLater []HostProblem // problems from the next boot on
	Address       string        // IP address of the management vmknic
	UUID          string        // BIOS UUID
	ShellAddr     string        // loopback address of its SSH server, with its port, "" until it listens
	Lockdown      string        // lockdownDisabled, lockdownNormal, lockdownStrict
	Exceptions    []string      // lockdown mode exception users
	Password      string        // root password of its shell; "": that of World.Secrets
	Refused       int           // failed root logins since the last successful one
	LockedUntil   time.Time
	MemoryMB      int64
	Sockets       int
	Cores         int // total of all sockets
	PowerPolicy   string
	Make          Server

	RebootRequired bool // a change is pending until the next boot
	NoThreads      bool // hyper-threading is off in the BIOS
	OwnPower       bool // power management is controlled by the BIOS, not by the OS

	PNICs    []*PNIC
	VMKs     []*VMK
	VSwitch  []*VSwitch
	Opaque   []*OpaqueSwitch
	PCI      []*PCIDevice
	Options  map[string]any // values are string, int64 or bool, as on ESXi
	Firewall []*Ruleset
	Services []*Service
	Copied   *Copied // outdated values that vCenter still reports; nil: up to date
	Modules  []*Module
	NTP      []string
	VIBs     []VIB
	Cards    []*firmware.Card

	BIOSSRIOV  bool     // SR-IOV is enabled in the BIOS
	SecureBoot bool     // UEFI Secure Boot: unsigned VIBs are not loaded
	KernelLog  []string // lines of vmkernel.log in addition to those of the boot
	Acceptance string   // VMwareCertified, VMwareAccepted, PartnerSupported, CommunitySupported
	MST        bool     // "mst start" was run since the last boot

	Groups []DeviceGroup
	VGPUs  []string // vGPU profiles that the host's driver offers
	Shares []string // vGPU profiles that it offers if the booted image contains NVIDIA's vGPU Manager; nil: VGPUs does not change
	Shared string   // graphics type of a GPU that is not passed through: "shared" (default), "sharedDirect"
	// NextShared is the graphics type from the next boot on; "" keeps the current type. A change requires a host restart
	// (NVIDIA, Virtual GPU Software User Guide, "Changing the Default Graphics Type in VMware vSphere").
	NextShared string

	Vectors int // interrupt vectors available to all VFs in use; 0: 3072

	Detached   []*PNIC // ports that are passed through to VMs and so are not adapters of the host
	InfiniBand []*PNIC // InfiniBand ports since the last boot: PCI functions without a network adapter

	NeverReturns bool // the next reboot never completes
}

// A DeviceGroup is a vendor device group that a host offers.
type DeviceGroup struct {
	Name  string
	VGPUs []string // profile of each of its vGPUs
}

// A Server describes the hardware of a host. The zero value is the lab's default server.
type Server struct {
	Vendor, Model, CPU string
	MHz                int // clock rate of a core
}

// A PNIC is one physical adapter.
type PNIC struct {
	Device        string // vmnic2
	MAC           string
	PCI           string // 0000:3b:00.0
	Driver        string
	DriverVersion string
	Firmware      string
	Model         string
	Vendor        string // "Mellanox Technologies"
	SpeedMbps     int    // speed while the link is up
	MaxSpeedMbps  int
	LinkUp        bool
	MTU           int
	NUMA          int
	MaxVFs        int           // maximum number of VFs that BIOS and firmware allow since the last boot
	ActiveVFs     int           // number of VFs that exist
	SRIOV         *SRIOVRequest // setting of vCenter; nil: the module parameter applies
	Shown         *SRIOVRequest // outdated value that vCenter still reports after a change; nil: up to date
	RDMA          *RDMA         // nil: no RDMA device
	RxPause       bool          // configured value; PFC suspends it, see Host.Pause
	TxPause       bool
	BadFrames     int  // frames with errors received per second because of a bad cable
	Deaf          bool // receives no LLDP, because the switch does not send it
	Cable         SwitchPort
	Lanes         int     // lanes of the PCIe 3.0 slot; 0: all 16
	SmallShare    float64 // fraction of the message rate of a healthy card; 0: all of it
	LargeShare    float64 // fraction of the bandwidth for messages above 64 KiB; 0: all of it
	Guest         PortQoS // settings made by the guest to which the port is passed through
	Priorities    [priorities]PriorityCounters
	Frames        Counters // traffic beside RDMA
}

// An RDMA is an RDMA device of a pNIC.
type RDMA struct {
	Name   string // vmrdma0
	Driver string // nmlx5_rdma
	RoCEv1 bool
	RoCEv2 bool
	IWARP  bool
	Stats  Counters
}

// Counters are the statistics of an RDMA device.
type Counters struct {
	PacketsSent, PacketsReceived int64
	BytesSent, BytesReceived     int64
	ErrorPackets                 int64
	QueuePairs                   int64 // queue pairs created since boot
}

// A VMK is a vmkernel adapter.
type VMK struct {
	Device    string // vmk0
	MAC       string
	IP        string
	Prefix    int
	MTU       int
	DHCP      bool   // gets its address from DHCP
	VSwitch   string // name of the standard switch; "" on a distributed switch
	DVS       string // name of the distributed switch; "" on a standard switch
	PortGroup string
	NetStack  string   // defaultTcpipStack
	Roles     []string // management, vmotion, vsan, ...
}

// An OpaqueSwitch is a switch managed outside of vSphere, such as an N-VDS of NSX.
type OpaqueSwitch struct {
	ID, Name string
	Uplinks  []string
}

// A VSwitch is a standard switch.
type VSwitch struct {
	Name       string
	MTU        int
	Uplinks    []string // device names of pNICs
	PortGroups []string
}

// A PCIDevice is one function of the host's PCI tree.
type PCIDevice struct {
	Address    string // 0000:3b:00.0
	Parent     string // address of the parent bridge, "" at the root
	Class      uint16 // 0x0200
	Vendor     uint16
	Device     uint16
	SubVendor  uint16
	SubDevice  uint16
	VendorName string
	DeviceName string
	NUMA       int
	MemoryMB   int64 // framebuffer size of a GPU
	Bridge     bool
	PF         string // for a VF: address of its physical function
	BARs       []BAR
	GPU        *GPU   // nil for other devices
	Dependent  string // address of the function that must be passed through together with this one, "" if none
	AtBoot     bool   // a change of passthrough requires a reboot
	Label      string // hardware label, which dynamic devices can require

	PassthruCapable bool
	PassthruEnabled bool
	PassthruActive  bool
}

// A Ruleset is a firewall ruleset.
type Ruleset struct {
	Key      string
	Enabled  bool
	AllIP    bool
	Networks []string // allowed networks if AllIP is false
}

// Copied is vCenter's outdated copy of the settings of a host that was changed directly. The copy of the firewall may be
// minutes old (vmware/vic issue 3139) until vCenter refreshes it.
type Copied struct {
	Firewall []*Ruleset
	Services []*Service
}

// Shown returns the firewall rulesets and the services that vCenter reports.
func (h *Host) Shown() ([]*Ruleset, []*Service) {
	rulesets, services := h.Firewall, h.Services
	if c := h.Copied; c != nil {
		if c.Firewall != nil {
			rulesets = c.Firewall
		}
		if c.Services != nil {
			services = c.Services
		}
	}
	return rulesets, services
}

// A Service is a service of the host.
type Service struct {
	Key     string // TSM-SSH
	Label   string
	Running bool
	Policy  string // on, off, automatic
}

// A Module is a kernel module. New parameters take effect after the next reboot.
type Module struct {
	Name       string
	Loaded     bool
	Version    string
	Parameters []*Parameter
}

// A Parameter is one parameter of a kernel module.
type Parameter struct {
	Name, Type, Description string
	Value                   string // configured value
	Active                  string // value since the last boot
}

// A VIB is one installed package of a host.
type VIB struct {
	Name, Version, Vendor, Acceptance string
	Installed                         time.Time
	Unsigned                          bool
	Pending                           string // change at the next boot: PendingInstall, PendingRemove
}

// Managed reports whether the host is up and connected to vCenter.
func (h *Host) Managed() bool { return h.State == Up && !h.Disconnected }

// Threads returns the number of logical processors of the host.
func (h *Host) Threads() int {
	if h.NoThreads {
		return h.Cores
	}
	return 2 * h.Cores
}

// PNIC returns the physical adapter with a device name, or nil if there is none.
func (h *Host) PNIC(device string) *PNIC {
	return find(h.PNICs, func(p *PNIC) bool { return p.Device == device })
}

// RDMADevice returns the pNIC with an RDMA device of that name, or nil if there is none.
func (h *Host) RDMADevice(name string) *PNIC {
	return find(h.PNICs, func(p *PNIC) bool { return p.RDMA != nil && p.RDMA.Name == name })
}

// VMK returns a vmkernel adapter, or nil if there is none.
func (h *Host) VMK(device string) *VMK {
	return find(h.VMKs, func(v *VMK) bool { return v.Device == device })
}

// Ruleset returns a firewall ruleset, or nil if there is none.
func (h *Host) Ruleset(key string) *Ruleset {
	return find(h.Firewall, func(r *Ruleset) bool { return r.Key == key })
}

// Service returns a service, or nil if there is none.
func (h *Host) Service(key string) *Service {
	return find(h.Services, func(s *Service) bool { return s.Key == key })
}

// Module returns a kernel module, or nil if there is none.
func (h *Host) Module(name string) *Module {
	return find(h.Modules, func(m *Module) bool { return m.Name == name })
}

// Parameter returns a parameter of a module, or nil if there is none.
func (m *Module) Parameter(name string) *Parameter {
	return find(m.Parameters, func(p *Parameter) bool { return p.Name == name })
}

// PCIDevice returns the PCI function at an address, or nil if there is none.
func (h *Host) PCIDevice(address string) *PCIDevice {
	return find(h.PCI, func(d *PCIDevice) bool { return d.Address == address })
}

// Option returns the value of a string option, or "" if it is missing or not a string.
func (h *Host) Option(key string) string {
	s, _ := h.Options[key].(string)
	return s
}

// VSwitchOf returns the standard switch of which the pNIC is an uplink, or nil if there is none.
func (h *Host) VSwitchOf(pnic string) *VSwitch {
	return find(h.VSwitch, func(v *VSwitch) bool { return slices.Contains(v.Uplinks, pnic) })
}

// VersionLess compares dotted version numbers by their numeric parts.
func VersionLess(a, b string) bool {
	pa, pb := strings.Split(a, "."), strings.Split(b, ".")
	for i := range max(len(pa), len(pb)) {
		var x, y int
		if i < len(pa) {
			x, _ = strconv.Atoi(pa[i])
		}
		if i < len(pb) {
			y, _ = strconv.Atoi(pb[i])
		}
		if x != y {
			return x < y
		}
	}
	return false
}

// A HostProblem is a problem of a running host.
type HostProblem string

// The problems of a host.
const (
	DeadPath   HostProblem = "path"   // a storage path is dead
	SwitchDown HostProblem = "switch" // an opaque switch is not up
	RedAlarm   HostProblem = "alarm"  // an alarm of the host is red
)

// HasProblem reports whether a host has a problem.
func (h *Host) HasProblem(p HostProblem) bool { return slices.Contains(h.Problems, p) }
