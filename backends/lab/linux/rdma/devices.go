// Package rdma implements vmw_pvrdma, mlx5_ib and the verbs libraries for PVRDMA adapters and ConnectX functions in the lab's
// guests: the device, its port and GID table, /sys/class/infiniband, and the programs that show them.
package rdma

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/rdma-setup/rdma-setup/backends/lab/linux/netif"
)

// Driver is the kernel module for PVRDMA adapters.
const Driver = "vmw_pvrdma"

// An Adapter is an RDMA adapter of the VM. For PVRDMA, the netdev is function 0 and the device is function 1 of the same slot.
// For a ConnectX both are function 0.
type Adapter struct {
	MAC      string
	Slot     int
	Protocol string // rocev1, rocev2
	RateGbps int    // rate of the uplink
	HCA      *netif.HCA
}

// Driver returns the kernel module for the adapter.
func (a Adapter) Driver() string {
	if a.HCA != nil {
		return HCADriver
	}
	return Driver
}

// function returns the PCI function of the RDMA device.
func (a Adapter) function() string {
	if a.HCA != nil {
		return "0"
	}
	return "1"
}

// A Device is a device that the driver has attached.
type Device struct {
	Adapter
	Name    string // rocep19s0f1
	Netdev  string // current name of the netdev
	Index   int    // interface index of the netdev
	MTU     int    // MTU of the netdev in bytes
	Up      bool   // the netdev is up
	Plugged bool   // the adapter is connected
	Active  bool   // the port is active
	GIDs    []GID
}

// A GID is an entry of the GID table.
type GID struct {
	Addr netip.Addr
	V2   bool
}

// Type returns the name of the GID type in sysfs.
func (g GID) Type() string {
	if g.V2 {
		return "RoCE v2"
	}
	return "IB/RoCE v1"
}

// Full returns the GID in the format of sysfs, in eight groups of four digits.
func (g GID) Full() string {
	b := g.Addr.As16()
	var parts []string
	for i := 0; i < 16; i += 2 {
		parts = append(parts, fmt.Sprintf("%02x%02x", b[i], b[i+1]))
	}
	return strings.Join(parts, ":")
}

// ActiveMTU returns the InfiniBand MTU for the netdev's MTU in bytes: the largest of 256 to 4096 that leaves 96 bytes
// for the headers (Linux, include/rdma/ib_addr.h, iboe_get_mtu).
func ActiveMTU(ethernet int) int {
	mtu := 256
	for _, m := range []int{512, 1024, 2048, 4096} {
		if m+96 <= ethernet {
			mtu = m
		}
	}
	return mtu
}

// Quirks select the PVRDMA behaviour of the guest, as described in the guides.
type Quirks struct {
	// BootDown: if the driver was loaded at boot, the port is down until the driver is reloaded, regardless of the netdev
	// (Ubuntu, as in VMware's Bitfusion guide).
	BootDown bool
	// NeedsUmad: the port becomes active only once ib_umad is loaded (RHEL, as in Red Hat's ESXi test suite).
	NeedsUmad bool
}

// Devices contains the RDMA devices of a guest. It is safe for concurrent use.
type Devices struct {
	Stack  *netif.Stack
	Quirks Quirks
	Named  func() bool                      // rdma-core's udev rule assigns persistent names
	Umad   func() bool                      // ib_umad is loaded
	Known  func(mac string) string          // name of the device of an adapter that udev does not change, "" for none; may be nil
	ECN    func() bool                      // reports whether the driver shows ECN of each priority, as MLNX_OFED's does
	Logf   func(format string, args ...any) // the kernel log

	// Modules returns a number that changes with each change of the loaded modules.
	Modules func() uint64

	version  atomic.Uint64
	mu       sync.Mutex
	adapters []Adapter
	attached []attached
	counters map[string]*Counters
	configs  map[string]func() // devices with a directory in configfs, and the function that releases rdma_cm
}

type attached struct {
	Adapter
	name    string
	deaf    bool // attached at boot with BootDown: ignores NETDEV_UP
	tos     int  // default type of service of rdma_cm
	enabled bool // NETDEV_UP was received, or the netdev was up when the driver attached
}

// Counters are the hardware counters of a device.
type Counters struct {
	SentBytes, ReceivedBytes     int64
	SentPackets, ReceivedPackets int64
	Events                       map[string]int64 // events in hw_counters, by name
}

// Plug sets the VM's current adapters. Devices whose adapter was removed are detached.
func (d *Devices) Plug(adapters []Adapter) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.version.Add(1)
	d.adapters = adapters
	d.attached = slices.DeleteFunc(d.attached, func(a attached) bool {
		return !slices.ContainsFunc(adapters, func(b Adapter) bool { return a.MAC == b.MAC })
	})
}

// Version returns a number that changes with each change of interfaces and devices in sysfs, except for counters.
func (d *Devices) Version() uint64 { return d.version.Load() + d.Stack.Version() + d.Modules() }

// Adapters returns the current adapters, whether attached or not.
func (d *Devices) Adapters() []Adapter {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.adapters)
}

// Drivers returns the modules that the adapters require.
func (d *Devices) Drivers() []string {
	var list []string
	for _, a := range d.Adapters() {
		if !slices.Contains(list, a.Driver()) {
			list = append(list, a.Driver())
		}
	}
	return list
}

// Attach attaches devices when a driver is loaded. At boot the netdevs are not up yet.
func (d *Devices) Attach(driver string, boot bool) {
	for _, a := range d.Adapters() {
		if a.Driver() != driver {
			continue
		}
		if a.HCA != nil {
			d.attachHCA(a)
			continue
		}
		pci := strings.TrimSuffix(netif.Port{Slot: a.Slot}.PCI(), "0") + "1"
		l, ok := d.Stack.Link(a.MAC)
		if !ok {
			d.Logf("vmw_pvrdma %s: failed to find paired device", pci)
			continue
		}
		d.mu.Lock()
		if slices.ContainsFunc(d.attached, func(b attached) bool { return b.MAC == a.MAC }) {
			d.mu.Unlock()
			continue
		}
		name := fmt.Sprintf("vmw_pvrdma%d", len(d.attached))
		if d.Named() {
			name = fmt.Sprintf("rocep%ds0f1", netif.Bus(a.Slot))
		}
		name = cmp.Or(d.known(a), name)
		// When the driver registers for netdev events, the kernel reports the netdevs that are already up.
		d.version.Add(1)
		d.attached = append(d.attached, attached{Adapter: a, name: name, deaf: boot && d.Quirks.BootDown,
			enabled: l.Up && !(boot && d.Quirks.BootDown)})
		d.mu.Unlock()
		d.Logf("vmw_pvrdma %s: device version 20, driver version 20", pci)
		d.Logf("vmw_pvrdma %s: paired device to %s", pci, l.Name)
		d.Logf("vmw_pvrdma %s: attached to device", pci)
	}
}

func (d *Devices) known(a Adapter) string {
	if d.Known == nil {
		return ""
	}
	return d.Known(a.MAC) // must not call a method of d
}

// Detach detaches the devices of a driver when it is unloaded, or all devices if driver is "".
func (d *Devices) Detach(driver string) {
	if driver == "" {
		d.forget()
	}
	var kept, gone []attached
	d.mu.Lock()
	for _, a := range d.attached {
		if driver == "" || a.Driver() == driver {
			gone = append(gone, a)
		} else {
			kept = append(kept, a)
		}
	}
	d.attached = kept
	d.version.Add(1)
	d.mu.Unlock()
	for _, a := range gone {
		if a.HCA == nil {
			d.Logf("vmw_pvrdma 0000:%02x:00.1: detaching from device", netif.Bus(a.Slot))
		}
	}
}

// NetdevUp handles the event NETDEV_UP: the port becomes active.
func (d *Devices) NetdevUp(name string) {
	l, ok := d.Stack.Link(name)
	if !ok {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range d.attached {
		if d.attached[i].MAC == l.MAC && !d.attached[i].deaf {
			d.attached[i].enabled = true
			d.version.Add(1)
		}
	}
}

// List returns the attached devices with their current state.
func (d *Devices) List() []Device {
	d.mu.Lock()
	list := slices.Clone(d.attached)
	d.mu.Unlock()
	umad := !d.Quirks.NeedsUmad || d.Umad()
	var devices []Device
	for _, a := range list {
		l, _ := d.Stack.Link(a.MAC)
		dev := Device{Adapter: a.Adapter, Name: a.name, Netdev: l.Name, Index: l.Index, MTU: l.MTU, Up: l.Up, Plugged: l.Connected}
		dev.Active = a.enabled && (umad || a.HCA != nil) && l.Running()
		dev.GIDs = a.gids(l)
		devices = append(devices, dev)
	}
	return devices
}

// gids returns the kernel's GID table, the link-local address first. A ConnectX has RoCE v1 and then v2 for each address. The
// port of vmw_pvrdma has only the RoCE version that is set for the adapter (Linux, drivers/infiniband/hw/vmw_pvrdma,
// pvrdma_port_immutable: gid_types of the device is one version, and the port gets the capability for that one alone).
func (a Adapter) gids(l netif.Link) []GID {
	addrs := []netip.Addr{netif.LinkLocal(l.MAC)}
	if l.Up {
		for _, a := range l.Addrs {
			addrs = append(addrs, netip.AddrFrom16(a.Addr().As16()))
		}
	}
	var table []GID
	for _, addr := range addrs {
		if a.HCA != nil || a.Protocol == "rocev1" {
			table = append(table, GID{Addr: addr})
		}
		if a.HCA != nil || a.Protocol != "rocev1" {
			table = append(table, GID{Addr: addr, V2: true})
		}
	}
	return table
}

// Device returns an attached device.
func (d *Devices) Device(name string) (Device, bool) {
	for _, dev := range d.List() {
		if dev.Name == name {
			return dev, true
		}
	}
	return Device{}, false
}

// Count adds to the counters of a device.
func (d *Devices) Count(name string, c Counters) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.counters == nil {
		d.counters = map[string]*Counters{}
	}
	have := d.counters[name]
	if have == nil {
		have = &Counters{}
		d.counters[name] = have
	}
	have.SentBytes += c.SentBytes
	have.ReceivedBytes += c.ReceivedBytes
	have.SentPackets += c.SentPackets
	have.ReceivedPackets += c.ReceivedPackets
	for name, n := range c.Events {
		if have.Events == nil {
			have.Events = map[string]int64{}
		}
		have.Events[name] += n
	}
}

func (d *Devices) count(name string) Counters {
	d.mu.Lock()
	defer d.mu.Unlock()
	if c := d.counters[name]; c != nil {
		out := *c
		out.Events = maps.Clone(c.Events)
		return out
	}
	return Counters{}
}
