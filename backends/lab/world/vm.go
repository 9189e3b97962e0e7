package world

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// A VM is one machine.
type VM struct {
	Name     string
	Path     string // /DC/vm/vm-01
	Title    string // the current name in vCenter if it was renamed; "": Name
	Folder   string // id of the folder that it was moved into; "": vm
	Template bool   // cannot be powered on
	Note     string // notes of users
	Index    int
	VApp     string // name of the vApp that it belongs to; "": none
	Host     string
	On       bool
	BootTime time.Time // when it was powered on, if that was in the lab
	Hardware int       // 19 for vmx-19
	Firmware string
	CPUs     int
	MemoryMB int64
	Reserved int64 // MB
	Locked   bool  // memoryReservationLockedToMax
	UUID     string
	Adapters []*Adapter
	Devices  []*Passthrough
	Guest    Guest
	Extra    map[string]string // extraConfig (VMX) entries
	Latency  string            // latency sensitivity: normal, high
	CPUMHz   int64             // reserved
	Changes  int               // how often it was reconfigured
	Snaps    []Snapshot        // each upon the last
	Product  string            // of an appliance: VMware vCenter Server
	Nested   bool              // hardware virtualization is offered to the guest
	Local    bool              // its disk is on a datastore that only its host can access
	Sharing  string            // bus sharing of its SCSI controller: virtualSharing, physicalSharing; "": none
	Manager  string            // key of the extension that manages it; "": none
	Service  bool              // of vSphere Cluster Services: vCenter powers it off and on with its host's maintenance mode
	Logs     [][]string        // vmware.log of this and of earlier runs, the latest first

	GuestID, GuestName string // vSphere's names of its system; "": those of Guest.OS

	Properties []Property // of the OVF environment, as far as they were given

	snapped int // snapshots so far
	boot    int // counts power changes, so that a running boot can detect a later one
}

// A Snapshot is a saved state of a VM.
type Snapshot struct {
	ID         int
	Name, Note string
}

// Snap takes a snapshot.
func (v *VM) Snap(name, note string) Snapshot {
	v.snapped++
	shot := Snapshot{ID: v.snapped, Name: name, Note: note}
	v.Snaps = append(v.Snaps, shot)
	return shot
}

// A Property is one of an appliance's OVF environment.
type Property struct{ Key, Value string }

// NewVM returns a VM that is off and has no devices; it is part of the inventory once it is in VMs.
func (s *State) NewVM(name string) *VM {
	index := 0
	for _, v := range s.VMs {
		index = max(index, v.Index+1)
	}
	return &VM{Name: name, Path: "/" + s.Datacenter + "/vm/" + name, Index: index, Hardware: 13, Firmware: "bios", CPUs: 1, MemoryMB: 1024,
		UUID: UUID("vm", index), Guest: Guest{OS: "other", Hostname: name}}
}

// RemoveVM takes a VM out of the inventory.
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

// AdapterType is the kind of a virtual adapter.
type AdapterType string

// The kinds of adapter that the lab knows.
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

// An Adapter is one virtual network adapter, in device order.
type Adapter struct {
	Key       int32 // device key in vCenter
	Type      AdapterType
	Label     string // Network adapter 1
	MAC       string
	DVS       string // "" on a standard network
	PortGroup string // or the name of the standard network
	VLAN      int
	Protocol  string // rocev1, rocev2; PVRDMA only
	Connected bool   // now; false while the VM is off
	Start     bool   // connect at power-on
	Slot      int    // PCI slot number in the guest (192 = ens192)
	PortKey   string // of the DVS port, "" on a standard network
	GuestMTU  bool   // the guest may change the MTU; SR-IOV only
	PF        string // PCI address of the physical function, "" for any uplink; SR-IOV only
	VF        string // PCI address of the virtual function while the VM is on; SR-IOV only
}

// A Passthrough is a passthrough device of a VM, fixed by its address or any of a model, or a vGPU.
type Passthrough struct {
	Key            int32  // device key in vCenter
	PCI            string // of a fixed device; "" for any of the model
	Vendor, Device uint16 // the make
	Others         []Make // other models that a dynamic device may be
	Label          string // label that a dynamic device must have
	System         string // id of the host that a fixed one was added on; "" for the VM's own
	Assigned       string // PCI address assigned to a dynamic device; kept while the VM is off
	Profile        string // of a share of a GPU: grid_a100-40c
	Source         string // of a share: PCI address of the GPU that it is of; kept while the VM is off
	Slot           int    // PCI slot number in the guest
	Group          Place  // in a vendor device group
}

// A Place is that of a device in a vendor device group of its VM.
type Place struct {
	Key      int32  // of the group
	Name     string // of the group as the host lists it, "" for a device in no group
	Sequence int32  // of the device in the group, from 1; 0 for a device in no group
}

// A Make is a PCI vendor and device id.
type Make struct{ Vendor, Device uint16 }

// A Guest is the externally visible state of the system in a VM. The rest is in the guest's shell.
type Guest struct {
	OS       string // ubuntu-22.04, ubuntu-20.04, rhel-8, rhel-9, centos-8, ...
	Hostname string
	Up       bool      // booted and answering
	Booted   time.Time // when it came up last
	Boots    int       // how often it came up
	Address  string    // where its SSH server listens: 127.0.0.1
	Port     int       // 0 until it listens
	User     string
	SudoAsks bool // sudo requires a password
	BIOS     bool // was installed with BIOS firmware, and does not boot with EFI

	// Preset is "" bare; "pvrdma", "gpudirect": packages, modules, persistence and address are already there; "gpu": perftest
	// with CUDA is; "gpu-source": what that is built with is; "docker": Docker is, with an image of NGC;
	// "vgpu" is "gpudirect" with a license token for vGPUs.
	Preset   string
	RDMAAddr string // address/prefix proposed for, or with Preset already on, the RDMA adapter
	NICs     []GuestNIC
	Flaws    []Flaw     // of the preset
	Lease    string     // address/prefix that DHCP assigns to the first adapter; "": one of 10.20.0.0/16
	Others   []GuestNIC // reported by VMware Tools in addition to its adapters: bridges, tunnels
}

// A GuestNIC is an interface as VMware Tools report it.
type GuestNIC struct {
	MAC   string
	Name  string   // ens192
	Addrs []string // 192.168.50.11/24
	MTU   int
	// OwnARP: it answers ARP requests only for its own addresses.
	OwnARP bool
}

// Adapter finds an adapter by MAC; nil when there is none.
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

// A DVS is one distributed switch.
type DVS struct {
	Name       string // unique
	Title      string // the name that vCenter shows where it is not Name: another folder has a switch of the same name
	Folder     string // id of the folder it is in, "" for network
	UUID       string
	Version    string // 8.0.3
	MTU        int
	NIOC       bool
	Uplinks    []string // names of the uplink ports
	Discovery  string   // "lldp listen", "cdp both", "none"
	Note       string
	PortGroups []*PortGroup
	Members    []*Member
	ID         string // dvs-21, once vCenter knows it
	Changes    int    // version of the configuration
	NextPort   int    // the next port key
	Setting    any    // other data of vCenter
}

// A PortGroup is one distributed port group.
type PortGroup struct {
	Name    string
	Key     string // dvportgroup-12, once vCenter knows it
	Uplink  bool   // the switch's own uplink port group
	VLAN    int
	Trunk   string // "0-4094" when it is a trunk
	Ports   int
	Binding string
	Active  []string // uplinks in order
	Standby []string
	Changes int  // version of the configuration
	Expand  bool // grows when its ports are used up
	First   int  // key of its first port
	Setting any  // other data of vCenter
	Note    string
}

// A Member is one host on a DVS.
type Member struct {
	Host  string
	PNICs []string // by uplink
	ENS   bool     // runs the enhanced data path

	Interrupt bool // runs it in interrupt mode, else in poll mode
}

// PortGroup finds a port group by name; nil when there is none.
func (d *DVS) PortGroup(name string) *PortGroup {
	return find(d.PortGroups, func(p *PortGroup) bool { return p.Name == name })
}

// Member finds a host's membership; nil when it is not a member.
func (d *DVS) Member(host string) *Member {
	return find(d.Members, func(m *Member) bool { return m.Host == host })
}

// SwitchOf returns the name of the switch, standard, distributed or opaque, that has the pNIC as an uplink; "" when none has.
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

// UplinkGroup returns the switch's own port group for uplinks, or nil if it has none yet.
func (d *DVS) UplinkGroup() *PortGroup {
	return find(d.PortGroups, func(p *PortGroup) bool { return p.Uplink })
}

// Connected lists the VMs and vmkernel adapters ("esx-01/vmk1") that are connected to a port group, or with "" to any
// of the switch.
func (s *State) Connected(d *DVS, group string) []string {
	var list []string
	for _, v := range s.VMs {
		for _, a := range v.Adapters {
			if a.DVS == d.Name && (group == "" || a.PortGroup == group) {
				list = append(list, v.Name)
				break
			}
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
