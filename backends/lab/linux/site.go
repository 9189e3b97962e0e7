package linux

import (
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rdma-setup/rdma-setup/backends/lab/fabric"
	"github.com/rdma-setup/rdma-setup/backends/lab/linux/netif"
	"github.com/rdma-setup/rdma-setup/backends/lab/linux/perftest"
	"github.com/rdma-setup/rdma-setup/backends/lab/linux/rdma"
	"github.com/rdma-setup/rdma-setup/backends/lab/shell/sh"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

// Site is the state shared by the guests of a lab: the world, the network between the guests, and the running tests.
type Site struct {
	World   *world.World
	Scripts *sh.Scripts // cache of all guests; may be nil

	meeting perftest.Meeting
	load    fabric.Load
	distros sync.Map // by name of the system; shared by guests, so entries must not be changed
}

// distro returns the distribution for the name of a system.
func (s *Site) distro(os string) distro {
	if d, known := s.distros.Load(os); known {
		return d.(distro)
	}
	d, _ := s.distros.LoadOrStore(os, newDistro(os))
	return d.(distro)
}

func (s *Site) adapters(vm string) []world.Adapter {
	var list []world.Adapter
	s.World.View(func(st *world.State) {
		if v := st.VM(vm); v != nil {
			for _, a := range v.Adapters {
				list = append(list, *a)
			}
		}
	})
	return list
}

// ports returns the virtual adapters of a VM: vmxnet3, or vmxnet3 as part of a PVRDMA adapter.
func ports(adapters []world.Adapter) []netif.Port {
	var list []netif.Port
	for _, a := range adapters {
		if a.Type == world.Vmxnet3 || a.Type == world.PVRDMA {
			list = append(list, netif.Port{MAC: a.MAC, Slot: a.Slot, Paired: a.Type == world.PVRDMA, Connected: a.Connected})
		}
	}
	return list
}

// ports returns the ports of a VM that is on, including its VFs and passed-through ports.
func (s *Site) ports(vm string) []netif.Port {
	var list []netif.Port
	s.World.View(func(st *world.State) {
		v := st.VM(vm)
		if v == nil {
			return
		}
		for _, a := range v.Adapters {
			list = append(list, ports([]world.Adapter{*a})...)
			if vf, linked := virtualFunction(st, v, a); vf != nil {
				list = append(list, netif.Port{MAC: a.MAC, Slot: a.Slot, Connected: a.Connected && linked, HCA: vf})
			}
		}
		for _, p := range wholePorts(st, v) {
			p.hca.Priorities = s.priorities(v.Host, p.nic.Device)
			p.hca.DCB, p.hca.SetDCB = s.bridging(v.Host, p.nic.Device)
			list = append(list, netif.Port{MAC: p.nic.MAC, Slot: p.slot, Connected: p.nic.LinkUp, HCA: p.hca})
		}
	})
	return list
}

// priorities returns a function that prints the counters of a port for each priority.
func (s *Site) priorities(host, device string) func() string {
	return func() string {
		text := ""
		s.World.View(func(st *world.State) {
			if h := st.Host(host); h != nil && h.Port(device) != nil {
				text = h.Port(device).Statistics("     ")
			}
		})
		return text
	}
}

// bridging returns functions that read and set the DCB settings of a passed-through port.
func (s *Site) bridging(host, device string) (read func() netif.DCB, set func(netif.DCB)) {
	read = func() netif.DCB {
		var d netif.DCB
		s.World.View(func(st *world.State) {
			if h := st.Host(host); h != nil && h.Port(device) != nil {
				q := h.Port(device).Guest
				d = netif.DCB{PFC: q.PFC, Apps: q.Apps, NPOff: q.NPOff, RPOff: q.RPOff}
			}
		})
		return d
	}
	set = func(d netif.DCB) {
		_ = s.World.Update(func(st *world.State) ([]world.Event, error) {
			if h := st.Host(host); h != nil && h.Port(device) != nil {
				h.Port(device).Guest = world.PortQoS{PFC: d.PFC, Apps: d.Apps, NPOff: d.NPOff, RPOff: d.RPOff}
			}
			return nil, nil
		})
	}
	return read, set
}

// virtualFunction returns the VF of an adapter as visible to the guest, or nil if it has none, and whether the port has a link.
func virtualFunction(st *world.State, v *world.VM, a *world.Adapter) (vf *netif.HCA, linked bool) {
	h := st.Host(v.Host)
	if h == nil {
		return nil, false
	}
	p, d := h.PortOf(a)
	if p == nil {
		return nil, false
	}
	vf = cardFunction(h, p, d)
	vf.FixedMTU = !a.GuestMTU
	return vf, p.LinkUp
}

// cardFunction returns the properties of a card's function that are visible to the guest.
func cardFunction(h *world.Host, p *world.PNIC, d *world.PCIDevice) *netif.HCA {
	hca := &netif.HCA{Device: d.Device, Sub: d.SubDevice, Name: d.DeviceName, Firmware: p.Firmware, SpeedMbps: p.SpeedMbps}
	if c := h.Card(p.PCI); c != nil {
		hca.PSID = c.PSID
	}
	return hca
}

// A wholePort is a port of a card that is passed through to a VM.
type wholePort struct {
	nic  *world.PNIC
	slot int
	hca  *netif.HCA
}

// wholePorts returns the ports of cards among the devices of a VM. The driver for Mellanox ports is mlx5_core.
func wholePorts(st *world.State, v *world.VM) []wholePort {
	h := st.Host(v.Host)
	if h == nil || !v.On {
		return nil
	}
	var list []wholePort
	for _, d := range v.Devices {
		nic, c := h.Whole(d.PCI+d.Assigned), h.PCIDevice(d.PCI+d.Assigned)
		if nic != nil && c != nil && c.Vendor == 0x15b3 {
			list = append(list, wholePort{nic, d.Slot, cardFunction(h, nic, c)})
		}
	}
	return list
}

// rdmaAdapters returns the RDMA adapters of a VM: PVRDMA, with the speed of the uplink, and VFs.
func (s *Site) rdmaAdapters(vm string) []rdma.Adapter {
	var list []rdma.Adapter
	s.World.View(func(st *world.State) {
		v := st.VM(vm)
		if v == nil {
			return
		}
		for _, a := range v.Adapters {
			switch a.Type {
			case world.PVRDMA:
				list = append(list, rdma.Adapter{MAC: a.MAC, Slot: a.Slot, Protocol: a.Protocol, RateGbps: rate(st, v, a)})
			case world.SRIOV:
				if vf, _ := virtualFunction(st, v, a); vf != nil {
					list = append(list, rdma.Adapter{MAC: a.MAC, Slot: a.Slot, RateGbps: vf.SpeedMbps / 1000, HCA: vf})
				}
			}
		}
		for _, p := range wholePorts(st, v) {
			list = append(list, rdma.Adapter{MAC: p.nic.MAC, Slot: p.slot, RateGbps: p.nic.SpeedMbps / 1000, HCA: p.hca})
		}
	})
	return list
}

func rate(st *world.State, v *world.VM, a *world.Adapter) int {
	h, d := st.Host(v.Host), st.Switch(a.DVS)
	if h == nil || d == nil {
		return 0
	}
	if member := d.Member(h.Name); member != nil {
		for _, name := range member.PNICs {
			if p := h.PNIC(name); p != nil && p.LinkUp {
				return p.SpeedMbps / 1000
			}
		}
	}
	return 0
}

// owner returns the owner of an address: a guest's interface, as reported by VMware Tools, or a host's vmknic.
func owner(st *world.State, ip netip.Addr, not string) (vm, mac string, mtu int) {
	for _, v := range st.VMs {
		if !v.On {
			continue
		}
		for _, n := range v.Guest.NICs {
			for _, a := range n.Addrs {
				if p, err := netip.ParsePrefix(a); err == nil && p.Addr() == ip && n.MAC != not {
					return v.Name, n.MAC, n.MTU
				}
			}
		}
	}
	return "", "", 0
}

// wire is the network of one guest. It implements netif.Wire and perftest.Network.
type wire struct{ m *Machine }

// Ask implements netif.Wire.
func (w wire) Ask(l netif.Link, ip netip.Addr, routed bool) (netif.Peer, bool) {
	peer, ok := netif.Peer{}, false
	w.m.site.World.View(func(st *world.State) {
		vm, mac, mtu := owner(st, ip, l.MAC)
		if vm == "" {
			return
		}
		path := fabric.Between(st, w.m.end(l), fabric.End{VM: vm, MAC: mac, MTU: mtu, Up: true})
		if !path.Reachable {
			return
		}
		rtt := 180 * time.Microsecond
		if path.SameHost {
			rtt = 90 * time.Microsecond
		}
		peer, ok = netif.Peer{VM: vm, MAC: mac, MTU: min(path.MTU, mtu), RTT: rtt}, true
	})
	return peer, ok
}

// ARP implements netif.Wire.
func (w wire) ARP(l netif.Link, ip netip.Addr) (macs []string) {
	w.m.site.World.View(func(st *world.State) {
		vm, mac, _ := owner(st, ip, l.MAC)
		v := st.VM(vm)
		if v == nil {
			return
		}
		for _, n := range v.Guest.NICs {
			if n.MAC == l.MAC || !fabric.Between(st, w.m.end(l), fabric.End{VM: vm, MAC: n.MAC, MTU: n.MTU, Up: true}).Reachable {
				continue
			}
			if n.MAC == mac {
				macs = slices.Insert(macs, 0, n.MAC)
			} else if !n.OwnARP {
				macs = append(macs, n.MAC)
			}
		}
	})
	return macs
}

// Reach implements perftest.Network.
func (w wire) Reach(ip netip.Addr) (string, bool) {
	if w.m.net.Stack.Owns(ip) {
		return w.m.cfg.VM, true
	}
	l, a, ok := w.m.net.Stack.Route(ip)
	if !ok {
		return "", false
	}
	peer, ok := w.Ask(l, ip, !a.Contains(ip))
	return peer.VM, ok
}

// Path implements perftest.Network. It uses the current state of the remote interface.
func (w wire) Path(a, b fabric.End) fabric.Path {
	var p fabric.Path
	w.m.site.World.View(func(st *world.State) {
		for _, e := range []*fabric.End{&a, &b} {
			if v := st.VM(e.VM); v != nil {
				e.Up = slices.ContainsFunc(v.Guest.NICs, func(n world.GuestNIC) bool { return strings.EqualFold(n.MAC, e.MAC) })
			}
		}
		p = fabric.Between(st, a, b)
	})
	return p
}

// Transmit implements perftest.Network.
func (w wire) Transmit(p fabric.Path, f fabric.Flow) fabric.Effect {
	var e fabric.Effect
	w.m.site.World.View(func(st *world.State) { e = p.Transmit(st, f) })
	p.Count(w.m.site.World, f, e)
	bytes, packets := f.Bytes, f.Packets
	for i, d := range p.Devices {
		c := world.Counters{BytesSent: bytes, PacketsSent: packets, PacketsReceived: packets / 8, QueuePairs: 1}
		if i == 1 {
			c = world.Counters{BytesReceived: bytes, PacketsReceived: packets, PacketsSent: packets / 8, QueuePairs: 1}
		}
		_ = w.m.site.World.AddTraffic(d.Host, d.Name, c) // cannot fail: the path contains the device
	}
	return e
}
