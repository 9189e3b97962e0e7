package world

import (
	"cmp"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"
)

// A VM is a virtual machine.
type VM struct {
	Name     string
	Path     string // /DC/vm/vm-01
	Title    string // current name in vCenter if it was renamed; "": Name
	Folder   string // id of its folder; "": vm
	Template bool   // the VM is a template and cannot be powered on
	Note     string // notes in vCenter
	Index    int
	VApp     string // name of its vApp; "": none
	Host     string
	On       bool
	BootTime time.Time // time of the last power-on in the lab, if any
	Hardware int       // virtual hardware version: 19 for vmx-19
	Firmware string
	CPUs     int
	MemoryMB int64
	Reserved int64 // reserved memory in MB
	Locked   bool  // memoryReservationLockedToMax
	UUID     string
	Adapters []*Adapter
	Devices  []*Passthrough
	Guest    Guest
	Extra    map[string]string // extraConfig (VMX) entries
	Latency  string            // latency sensitivity: normal, high
	CPUMHz   int64             // CPU reservation
	Changes  int               // number of reconfigurations
	Snaps    []Snapshot        // each is the child of the previous one
	Product  string            // product name of an appliance: VMware vCenter Server
	Nested   bool              // hardware virtualization is offered to the guest
	Local    bool              // its disk is on a datastore that only its host can access
	Sharing  string            // bus sharing mode of its SCSI controller: virtualSharing, physicalSharing; "": none
	RawDisks []RawDisk         // disks that are LUNs of the array
	Manager  string            // key of the extension that manages it; "": none
	Service  bool              // vSphere Cluster Services VM: vCenter powers it off when its host enters maintenance mode
	Logs     [][]string        // vmware.log of this and of earlier runs, latest first

	GuestID, GuestName string // guest OS in vCenter; "": that of Guest.OS

	Properties []Property // properties of the OVF environment that were set

	snapped int // number of snapshots taken
	boot    int // counts power changes, so that a running boot can detect a later one
}

// A RawDisk is a disk of a VM that maps a LUN (raw device mapping).
type RawDisk struct {
	LUN      string // VirtualDiskRawDiskMappingVer1BackingInfo.lunUuid
	Device   string // name by which the host accesses the LUN; "": "vml." and LUN
	Virtual  bool   // virtual compatibility mode; otherwise physical
	DiskMode string // of the virtual compatibility mode: persistent, independent_persistent, ...
	KB       int64
}

// A Snapshot is a saved state of a VM.
type Snapshot struct {
	ID         int
	Name, Note string
}

// Snap creates a snapshot.
func (v *VM) Snap(name, note string) Snapshot {
	v.snapped++
	shot := Snapshot{ID: v.snapped, Name: name, Note: note}
	v.Snaps = append(v.Snaps, shot)
	return shot
}

// A Property is a property of an appliance's OVF environment.
type Property struct{ Key, Value string }

// NewVM returns a VM that is off and has no devices. The caller adds it to VMs.
func (s *State) NewVM(name string) *VM {
	index := 0
	for _, v := range s.VMs {
		index = max(index, v.Index+1)
	}
	return &VM{Name: name, Path: "/" + s.Datacenter + "/vm/" + name, Index: index, Hardware: 13, Firmware: "bios", CPUs: 1, MemoryMB: 1024,
		UUID: UUID("vm", index), Guest: Guest{OS: "other", Hostname: name}}
}

// Stem returns the name of a VM's folder on the datastore and of its files, also for a VM that has an inventory path as its name.
func (v *VM) Stem() string { return strings.ReplaceAll(strings.TrimPrefix(v.Name, "/"), "/", "_") }

// RemoveVM removes a VM from the inventory.
func (w *World) RemoveVM(name string) {
	_ = w.Update(func(s *State) ([]Event, error) {
		v := s.VM(name)
		if v == nil {
			return nil, noVM(name)
		}
		s.VMs = slices.DeleteFunc(s.VMs, func(other *VM) bool { return other == v })
		return []Event{{What: VMRemoved, VM: name, Host: v.Host}}, nil
	})
}

// AdapterType is the type of a virtual adapter.
type AdapterType string

// The adapter types that the lab supports.
const (
	Vmxnet3 AdapterType = "vmxnet3"
	PVRDMA  AdapterType = "pvrdma"
	SRIOV   AdapterType = "sriov"
	Other   AdapterType = "other"
)

// Management returns the address that DHCP assigns to the first adapter.
func (v *VM) Management() string {
	return cmp.Or(v.Guest.Lease, fmt.Sprintf("10.20.%d.%d/16", v.Index/200, 11+v.Index%200))
}

// An Adapter is a virtual network adapter.
type Adapter struct {
	Key       int32 // device key in vCenter
	Type      AdapterType
	Label     string // Network adapter 1
	MAC       string
	DVS       string // distributed switch; "" on a standard network
	PortGroup string // distributed port group or standard network
	VLAN      int
	Protocol  string // rocev1, rocev2; PVRDMA only
	Connected bool   // current state; false while the VM is off
	Start     bool   // connect at power-on
	Slot      int    // PCI slot number in the guest (192 = ens192)
	PortKey   string // key of the DVS port, "" on a standard network
	GuestMTU  bool   // the guest may change the MTU; SR-IOV only
	PF        string // PCI address of the physical function, "" for any uplink; SR-IOV only
	VF        string // PCI address of the virtual function while the VM is on; SR-IOV only
}

// A Passthrough is a passthrough device of a VM: a fixed device, a dynamic device or a vGPU.
type Passthrough struct {
	Key            int32  // device key in vCenter
	PCI            string // address of a fixed device; "" for a dynamic one
	Vendor, Device uint16 // PCI IDs of the model
	Others         []Make // other models that a dynamic device allows
	Label          string // label that a dynamic device must have
	System         string // system id of the host on which a fixed device was added; "" for the VM's current host
	Assigned       string // PCI address assigned to a dynamic device; kept while the VM is off
	Profile        string // profile of a vGPU: grid_a100-40c
	Source         string // PCI address of the GPU of a vGPU; kept while the VM is off
	Slot           int    // PCI slot number in the guest
	Group          Place  // vendor device group of the device
}

// A Place is the position of a device in a vendor device group of its VM.
type Place struct {
	Key      int32  // key of the group
	Name     string // name of the group on the host, "" if the device is not in a group
	Sequence int32  // number of the device in the group, from 1; 0 if it is not in a group
}

// A Make is a PCI vendor ID and device ID.
type Make struct{ Vendor, Device uint16 }

// A Guest is the state of the operating system in a VM that is visible from outside. The guest's shell has the rest.
type Guest struct {
	OS       string // ubuntu-22.04, ubuntu-20.04, rhel-8, rhel-9, centos-8, ...
	Hostname string
	Up       bool      // booted and responding
	Booted   time.Time // time of the last boot
	Boots    int       // number of boots
	Address  string    // address on which its SSH server listens, a loopback address
	Port     int       // 0 before it listens
	User     string
	SudoAsks bool // sudo requires a password
	BIOS     bool // installed with BIOS firmware; does not boot with EFI

	// Preset selects what is already set up. "": nothing. "pvrdma" and "gpudirect": packages, modules, persistence and address.
	// "vgpu": like "gpudirect", with the vGPU guest driver and a license token. "gpu": perftest with CUDA. "gpu-source": the packages and
	// files needed to build it. "docker": Docker with an image of NGC.
	Preset   string
	RDMAAddr string // address/prefix of the RDMA adapter: proposed, or already configured if Preset is set
	NICs     []GuestNIC
	Defects  []Defect   // mistakes in the preset
	Lease    string     // address/prefix that DHCP assigns to the first adapter; "": an address of 10.20.0.0/16
	Others   []GuestNIC // interfaces that VMware Tools report in addition to its adapters: bridges, tunnels

	// What a guest has beyond a new installation and its preset.
	Packages []string          // names; KERNEL in a name is replaced by the kernel's release
	Files    []File            // configuration that someone wrote; the initial RAM disk was updated since
	Leases   map[string]string // address/prefix that DHCP assigns to other adapters, by MAC
	BuiltIn  []string          // modules that are built into its kernel
	Names    map[string]string // names of its RDMA devices that the next boot changes, by the MAC of the interface
	Entered  string            // shell script with the commands that root entered since the last boot: the next boot undoes what they set
}

// A File is a file or a symbolic link in a guest.
type File struct {
	Path string
	Mode fs.FileMode
	Text string
	Link string // target of a symbolic link; "": a file
	// Program is the name of a program of the lab that the file is, "" for Text: cuda-ib_send_bw.
	Program string
}

// A GuestNIC is a network interface in the format of VMware Tools.
type GuestNIC struct {
	MAC   string
	Name  string   // ens192
	Addrs []string // 192.168.50.11/24
	MTU   int
	// OwnARP is set if the interface responds to ARP requests only for its own addresses.
	OwnARP bool
}

// Adapter returns the adapter with a MAC, or nil if there is none.
func (v *VM) Adapter(mac string) *Adapter {
	return find(v.Adapters, func(a *Adapter) bool { return a.MAC == mac })
}

// RDMA returns the PVRDMA adapters.
func (v *VM) RDMA() []*Adapter {
	var list []*Adapter
	for _, a := range v.Adapters {
		if a.Type == PVRDMA {
			list = append(list, a)
		}
	}
	return list
}

// A DVS is a distributed switch.
type DVS struct {
	Name       string // unique
	Title      string // name in vCenter if it differs from Name: another folder has a switch of the same name
	Folder     string // id of its folder, "" for network
	UUID       string
	Version    string // 8.0.3
	MTU        int
	NIOC       bool
	Uplinks    []string // names of the uplink ports
	Discovery  string   // "lldp listen", "cdp both", "none"
	Note       string
	PortGroups []*PortGroup
	Members    []*Member
	ID         string // dvs-21, set by vCenter
	Changes    int    // version of the configuration
	NextPort   int    // next port key
	Setting    any    // other data of vCenter
}

// A PortGroup is one distributed port group.
type PortGroup struct {
	Name    string
	Key     string // dvportgroup-12, set by vCenter
	Uplink  bool   // the switch's own uplink port group
	VLAN    int
	Trunk   string // VLAN range of a trunk, such as "0-4094"; "": not a trunk
	Ports   int
	Binding string
	Active  []string // active uplinks in order
	Standby []string
	Changes int  // version of the configuration
	Expand  bool // the number of ports grows when all are used
	First   int  // key of the first port
	Setting any  // other data of vCenter
	Note    string
}

// A Member is a host of a DVS.
type Member struct {
	Host  string
	PNICs []string // pNICs by uplink
	ENS   bool     // enhanced data path is enabled

	Interrupt bool // enhanced data path is in interrupt mode, otherwise in poll mode
}

// PortGroup returns a port group by name, or nil if there is none.
func (d *DVS) PortGroup(name string) *PortGroup {
	return find(d.PortGroups, func(p *PortGroup) bool { return p.Name == name })
}

// Member returns the membership of a host, or nil if it is not a member.
func (d *DVS) Member(host string) *Member {
	return find(d.Members, func(m *Member) bool { return m.Host == host })
}

// SwitchOf returns the name of the standard, distributed or opaque switch of which the pNIC is an uplink, or "" if there is
// none.
func (s *State) SwitchOf(host, pnic string) string {
	if h := s.Host(host); h != nil {
		if v := h.VSwitchOf(pnic); v != nil {
			return v.Name
		}
		for _, o := range h.Opaque {
			if slices.Contains(o.Uplinks, pnic) {
				return o.Name
			}
		}
	}
	for _, d := range s.Switches {
		if m := d.Member(host); m != nil {
			for _, p := range m.PNICs {
				if p == pnic {
					return d.Name
				}
			}
		}
	}
	return ""
}

// UplinkGroup returns the switch's uplink port group, or nil if there is none yet.
func (d *DVS) UplinkGroup() *PortGroup {
	return find(d.PortGroups, func(p *PortGroup) bool { return p.Uplink })
}

// ConnectedVMs returns the VMs that are connected to a port group or, if group is "", to any port group of the switch.
func (s *State) ConnectedVMs(d *DVS, group string) []*VM {
	var list []*VM
	for _, v := range s.VMs {
		if v.connected(d, group) {
			list = append(list, v)
		}
	}
	return list
}

func (v *VM) connected(d *DVS, group string) bool {
	return slices.ContainsFunc(v.Adapters, func(a *Adapter) bool { return a.DVS == d.Name && (group == "" || a.PortGroup == group) })
}

// Connected returns the VMs and vmkernel adapters ("esx-01/vmk1") that are connected to a port group or, if group is "", to any
// port group of the switch.
func (s *State) Connected(d *DVS, group string) []string {
	var list []string
	for _, v := range s.VMs {
		if v.connected(d, group) {
			list = append(list, v.Name)
		}
	}
	for _, h := range s.Hosts {
		for _, k := range h.VMKs {
			if k.DVS == d.Name && (group == "" || k.PortGroup == group) {
				list = append(list, h.Name+"/"+k.Device)
			}
		}
	}
	return list
}
