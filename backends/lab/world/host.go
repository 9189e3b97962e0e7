package world

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rdma-setup/rdma-setup/backends/lab/firmware"
)

// HostState is whether a host answers.
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
	Index       int    // 0 for the first
	Version     string // "8.0.3"
	Build       string
	State       HostState
	Maintenance bool
	// Disconnected is a host that vCenter does not manage at the moment; its VMs continue to run.
	Disconnected bool
	BootTime     time.Time

	HAAgent       string        // state of its HA agent while it is in service; "": healthy
	HALater       string        // and the state from its next boot on
	Problems      []HostProblem // what is wrong with it
	ProblemsLater []HostProblem // and from its next boot on
	Address       string        // of the management vmknic
	UUID          string        // of the BIOS
	ShellAddr     string        // 127.0.0.1:PORT of its SSH server, "" until it listens
	Lockdown      string        // lockdownDisabled, lockdownNormal, lockdownStrict
	Exceptions    []string      // accounts that lockdown mode lets in
	Password      string        // of root in its shell; "": that of World.Secrets
	Refused       int           // refused logins of root since the last successful one
	LockedUntil   time.Time
	MemoryMB      int64
	Sockets       int
	Cores         int // in all sockets
	PowerPolicy   string
	Make          Server

	RebootRequired bool // a change is pending until the next boot
	NoThreads      bool // hyper-threading is off in the BIOS
	OwnPower       bool // the BIOS controls power management, not the OS

	PNICs    []*PNIC
	VMKs     []*VMK
	VSwitch  []*VSwitch
	Opaque   []*OpaqueSwitch
	PCI      []*PCIDevice
	Options  map[string]any // string, int64 or bool, as on ESXi
	Firewall []*Ruleset
	Services []*Service
	Copied   *Copied // outdated values that vCenter still shows; nil: up to date
	Modules  []*Module
	NTP      []string
	VIBs     []VIB
	Cards    []*firmware.Card

	BIOSSRIOV  bool     // SR-IOV is on in the BIOS
	SecureBoot bool     // of UEFI: unsigned VIBs do not load
	KernelLog  []string // lines of vmkernel.log in addition to that of the boot
	Acceptance string   // VMwareCertified, VMwareAccepted, PartnerSupported, CommunitySupported
	MST        bool     // "mst start" was run since the boot

	Groups []DeviceGroup
	VGPUs  []string // vGPU profiles that the driver of the host offers
	Shares []string // and those that it offers while NVIDIA's vGPU Manager is in the image that it booted; nil: VGPUs do not change
	Shared string   // graphics type of a GPU that is not passed through: "shared" (also ""), "sharedDirect"
	// The graphics type from the next boot on, "": the current one (NVIDIA, Virtual GPU Software User Guide, "Changing the Default
	// Graphics Type in VMware vSphere": restart the ESXi host).
	NextShared string

	Vectors int // interrupt vectors that VFs in use may have together; 0: 3072

	Detached   []*PNIC // passed through as a whole: not adapters of the host during that time
	InfiniBand []*PNIC // InfiniBand ports since the last boot: PCI functions without an adapter

	NeverReturns bool // the next reboot does not end
}

// A DeviceGroup is a vendor device group that a host lists.
type DeviceGroup struct {
	Name  string
	VGPUs []string // profile of each of its vGPUs
}

// A Server describes the hardware of a host. The zero value is the lab's default server.
type Server struct {
	Vendor, Model, CPU string
	MHz                int // of a core
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
	SpeedMbps     int    // when the link is up
	MaxSpeedMbps  int
	LinkUp        bool
	MTU           int
	NUMA          int
	MaxVFs        int           // that BIOS and firmware allow since the last boot
	ActiveVFs     int           // VFs that exist
	SRIOV         *SRIOVRequest // set by vCenter; nil: the module parameter applies
	Shown         *SRIOVRequest // outdated value that vCenter still shows after a change; nil: up to date
	RDMA          *RDMA         // nil without an RDMA device
	RxPause       bool          // as set; PFC suspends it, see Host.Pause
	TxPause       bool
	BadFrames     int  // frames with errors that arrive each second: a bad cable
	Deaf          bool // receives no LLDP: the switch does not send it
	Cable         SwitchPort
	Lanes         int     // of the PCIe 3.0 slot; 0: all 16
	SmallShare    float64 // fraction of the message rate of a card without faults; 0: all of it
	LargeShare    float64 // fraction of the bandwidth for messages above 64 KiB; 0: all of it
	Guest         PortQoS // of a port that is passed through as a whole
	Priorities    [priorities]PriorityCounters
}

// An RDMA is the RDMA device of a pNIC.
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
	QueuePairs                   int64 // created since boot
}

// A VMK is a vmkernel adapter.
type VMK struct {
	Device    string // vmk0
	MAC       string
	IP        string
	Prefix    int
	MTU       int
	DHCP      bool   // has its address from DHCP
	VSwitch   string // standard switch, or
	DVS       string // distributed switch
	PortGroup string
	NetStack  string   // defaultTcpipStack
	Roles     []string // management, vmotion, vsan, ...
}

// An OpaqueSwitch is managed outside of vSphere: an N-VDS of NSX.
type OpaqueSwitch struct {
	ID, Name string
	Uplinks  []string
}

// A VSwitch is a standard switch.
type VSwitch struct {
	Name       string
	MTU        int
	Uplinks    []string // pNIC devices
	PortGroups []string
}

// A PCIDevice is one function of the host's PCI tree.
type PCIDevice struct {
	Address    string // 0000:3b:00.0
	Parent     string // address of the bridge above, "" at the root
	Class      uint16 // 0x0200
	Vendor     uint16
	Device     uint16
	SubVendor  uint16
	SubDevice  uint16
	VendorName string
	DeviceName string
	NUMA       int
	MemoryMB   int64 // framebuffer of a GPU
	Bridge     bool
	PF         string // of a VF: the address of its physical function
	BARs       []BAR
	GPU        *GPU   // nil for other devices
	Dependent  string // the function that it must be passed through with, "" if none
	AtBoot     bool   // passthrough changes only at the next boot
	Label      string // hardware label, by which dynamic devices are chosen

	PassthruCapable bool
	PassthruEnabled bool
	PassthruActive  bool
}

// A Ruleset is a firewall ruleset.
type Ruleset struct {
	Key      string
	Enabled  bool
	AllIP    bool
	Networks []string // allowed when AllIP is false
}

// Copied is vCenter's copy of the settings of a host that was changed directly: the copy of the firewall may be minutes old
// (vmware/vic issue 3139), unless vCenter is told to refresh it.
type Copied struct {
	Firewall []*Ruleset
	Services []*Service
}

// Shown returns the firewall and the services as vCenter shows them.
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

// A Module is a kernel module. Parameters set now act after the next reboot.
type Module struct {
	Name       string
	Loaded     bool
	Version    string
	Parameters []*Parameter
}

// A Parameter is one parameter of a kernel module.
type Parameter struct {
	Name, Type, Description string
	Value                   string // configured
	Active                  string // in force since the last boot
}

// A VIB is one installed package of a host.
type VIB struct {
	Name, Version, Vendor, Acceptance string
	Installed                         time.Time
	Unsigned                          bool
	Pending                           string // PendingInstall, PendingRemove: at the next boot
}

// Managed reports whether vCenter reaches the host.
func (h *Host) Managed() bool { return h.State == Up && !h.Disconnected }

// Threads returns the number of logical processors of the host.
func (h *Host) Threads() int {
	if h.NoThreads {
		return h.Cores
	}
	return 2 * h.Cores
}

// PNIC finds a physical adapter by its device name; nil when there is none.
func (h *Host) PNIC(device string) *PNIC {
	return find(h.PNICs, func(p *PNIC) bool { return p.Device == device })
}

// RDMADevice finds the pNIC whose RDMA device has that name; nil when there is none.
func (h *Host) RDMADevice(name string) *PNIC {
	return find(h.PNICs, func(p *PNIC) bool { return p.RDMA != nil && p.RDMA.Name == name })
}

// VMK finds a vmkernel adapter; nil when there is none.
func (h *Host) VMK(device string) *VMK {
	return find(h.VMKs, func(v *VMK) bool { return v.Device == device })
}

// Ruleset finds a firewall ruleset; nil when there is none.
func (h *Host) Ruleset(key string) *Ruleset {
	return find(h.Firewall, func(r *Ruleset) bool { return r.Key == key })
}

// Service finds a service; nil when there is none.
func (h *Host) Service(key string) *Service {
	return find(h.Services, func(s *Service) bool { return s.Key == key })
}

// Module finds a kernel module; nil when there is none.
func (h *Host) Module(name string) *Module {
	return find(h.Modules, func(m *Module) bool { return m.Name == name })
}

// Parameter finds a parameter of a module; nil when there is none.
func (m *Module) Parameter(name string) *Parameter {
	return find(m.Parameters, func(p *Parameter) bool { return p.Name == name })
}

// PCIDevice finds a PCI function by its address; nil when there is none.
func (h *Host) PCIDevice(address string) *PCIDevice {
	return find(h.PCI, func(d *PCIDevice) bool { return d.Address == address })
}

// Option returns a string option; "" when it is absent or not a string.
func (h *Host) Option(key string) string {
	s, _ := h.Options[key].(string)
	return s
}

// VSwitchOf returns the standard switch that has the pNIC as an uplink; nil when none has.
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

// The problems.
const (
	DeadPath   HostProblem = "path"   // one of its storage paths is dead
	SwitchDown HostProblem = "switch" // its opaque switches are not up
	RedAlarm   HostProblem = "alarm"  // an alarm of it is red
)

// HasProblem reports whether a host has a problem.
func (h *Host) HasProblem(p HostProblem) bool { return slices.Contains(h.Problems, p) }
