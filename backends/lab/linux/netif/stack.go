// Package netif implements the network of the lab's guests: interfaces with addresses and MTUs, the program ip, netplan and
// NetworkManager with their files, ping, and other programs that show interfaces.
package netif

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// MaxMTU is the maximum MTU of vmxnet3, in bytes.
const MaxMTU = 9000

// A Port is the virtual adapter of an interface.
type Port struct {
	MAC       string
	Slot      int  // PCI slot number: 192 for ens192
	Paired    bool // function 0 of a slot whose function 1 is a PVRDMA device: ens192f0
	Connected bool // has a link
	HCA       *HCA // nil: a vmxnet3 adapter
}

// An HCA describes a ConnectX function that is passed through: a VF or a physical port.
type HCA struct {
	Device    uint16 // PCI device ID, with vendor 15b3
	Sub       uint16 // PCI subsystem ID
	Name      string // MT27800 Family [ConnectX-5 Virtual Function]
	Firmware  string
	PSID      string
	SpeedMbps int
	FixedMTU  bool // the VM does not allow the guest to change it
	// Priorities returns the per-priority lines of ethtool -S; nil for a VF, which cannot read them (kernel mlx5 counters.rst,
	// "Physical port counters are not exposed to virtual machines").
	Priorities func() string
	// DCB and SetDCB read and set the port's Data Center Bridging; nil for a VF.
	DCB    func() DCB
	SetDCB func(DCB)
}

// mayMTU reports whether an interface accepts a change of its MTU from now to mtu.
func (p Port) mayMTU(now, mtu int) bool {
	return mtu >= 68 && mtu <= MaxMTU && (p.HCA == nil || !p.HCA.FixedMTU || mtu == now)
}

// Name returns the name that systemd derives from the slot of the interface.
func (p Port) Name() string {
	if p.Paired {
		return fmt.Sprintf("ens%df0", p.Slot)
	}
	return fmt.Sprintf("ens%d", p.Slot)
}

// Bus returns the PCI bus that VMware assigns to a slot number: 192 is 0b, 224 is 13.
func Bus(slot int) int { return 3 + (slot/32-5)*8 + slot%32 }

// PCI returns the adapter's address, 0000:0b:00.0.
func (p Port) PCI() string { return fmt.Sprintf("0000:%02x:00.0", Bus(p.Slot)) }

// An Addr is one address of an interface.
type Addr struct {
	netip.Prefix
	DHCP     bool
	NoRoutes bool // ignore routes from DHCP
}

// A Link is one interface.
type Link struct {
	Port
	Name   string
	Master string // bond, bridge or VRF of which it is a member
	Index  int
	MTU    int // bytes
	Up     bool
	Addrs  []Addr
	Conf   Conf
}

// LinkLocal returns the IPv6 link-local address derived from a MAC.
func LinkLocal(mac string) netip.Addr {
	m, err := net.ParseMAC(mac)
	if err != nil || len(m) != 6 {
		return netip.IPv6Unspecified()
	}
	return netip.AddrFrom16([16]byte{0: 0xfe, 1: 0x80, 8: m[0] ^ 2, 9: m[1], 10: m[2], 11: 0xff, 12: 0xfe, 13: m[3], 14: m[4], 15: m[5]})
}

// Running reports whether the link is up and connected.
func (l Link) Running() bool { return l.Up && l.Connected }

// Errors with which the kernel rejects a change.
var (
	ErrNoDevice = errors.New("no such device")
	ErrExists   = errors.New("file exists")
	ErrNoAddr   = errors.New("cannot assign requested address")
	ErrMTU      = errors.New("mtu out of range")
)

// A Stack holds the interfaces of a guest. It is safe for concurrent use; hooks are called without its lock.
type Stack struct {
	WentUp   func(name string) // NETDEV_UP
	WentDown func(name string) // NETDEV_DOWN
	Changed  func()            // after any change
	Named    func(Port) string // name that a file makes udev assign to an adapter, "" for none; may be nil
	Fresh    func(string) Conf // settings from files for a new interface; nil: none

	version atomic.Uint64

	mu     sync.Mutex
	links  []*Link
	rules  []Rule
	routes []TableRoute
	tables []int // tables that have had a route
}

// Version returns a number that changes with each change of the interfaces.
func (s *Stack) Version() uint64 { return s.version.Load() }

// Boot replaces the interfaces with those of the given adapters, all down and without addresses.
func (s *Stack) Boot(ports []Port) {
	s.mu.Lock()
	s.links, s.rules, s.routes, s.tables = nil, nil, nil, nil
	s.version.Add(1)
	s.mu.Unlock()
	s.Plug(ports)
}

// Plug updates the interfaces to the current adapters: interfaces are added and removed, links change.
func (s *Stack) Plug(ports []Port) {
	names, confs := make([]string, len(ports)), make([]Conf, len(ports)) // called without the lock, because files are read
	for i, p := range ports {
		if names[i] = p.Name(); s.Named != nil {
			names[i] = cmp.Or(s.Named(p), names[i])
		}
		if s.Fresh != nil {
			confs[i] = s.Fresh(names[i])
		}
	}
	s.mu.Lock()
	var links []*Link
	for n, p := range ports {
		i := slices.IndexFunc(s.links, func(l *Link) bool { return l.MAC == p.MAC })
		if i >= 0 && s.links[i].Slot == p.Slot && s.links[i].Paired == p.Paired {
			s.links[i].Port = p
			links = append(links, s.links[i])
			continue
		}
		links = append(links, &Link{Port: p, Name: names[n], MTU: 1500, Conf: confs[n]})
	}
	for i, l := range links {
		l.Index = i + 2 // index 1 is lo
	}
	s.links = links
	s.version.Add(1)
	s.prune()
	s.mu.Unlock()
	s.changed()
}

func (s *Stack) changed() {
	if s.Changed != nil {
		s.Changed()
	}
}

// Links returns all interfaces except lo.
func (s *Stack) Links() []Link {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]Link, len(s.links))
	for i, l := range s.links {
		list[i] = *l
		list[i].Addrs = slices.Clone(l.Addrs)
	}
	return list
}

// Link returns an interface by its name or MAC.
func (s *Stack) Link(name string) (Link, bool) {
	for _, l := range s.Links() {
		if l.Name == name || strings.EqualFold(l.MAC, name) {
			return l, true
		}
	}
	return Link{}, false
}

func (s *Stack) change(name string, f func(*Link) error) error {
	s.mu.Lock()
	i := slices.IndexFunc(s.links, func(l *Link) bool { return l.Name == name })
	if i < 0 {
		s.mu.Unlock()
		return ErrNoDevice
	}
	err := f(s.links[i])
	s.version.Add(1)
	s.prune()
	s.mu.Unlock()
	if err == nil {
		s.changed()
	}
	return err
}

// SetUp brings an interface up or down (ErrNoDevice). As in Linux, bringing it down removes IPv6 addresses but keeps IPv4
// addresses.
func (s *Stack) SetUp(name string, up bool) error {
	was := up
	err := s.change(name, func(l *Link) error {
		was, l.Up = l.Up, up
		return nil
	})
	switch {
	case err != nil || was == up:
	case up && s.WentUp != nil:
		s.WentUp(name)
	case !up && s.WentDown != nil:
		s.WentDown(name)
	}
	return err
}

// SetMTU sets the MTU in bytes (ErrNoDevice, ErrMTU).
func (s *Stack) SetMTU(name string, mtu int) error {
	return s.change(name, func(l *Link) error {
		if !l.mayMTU(l.MTU, mtu) {
			return ErrMTU
		}
		l.MTU = mtu
		return nil
	})
}

// Add adds an address (ErrNoDevice, ErrExists).
func (s *Stack) Add(name string, a Addr) error {
	return s.change(name, func(l *Link) error {
		if slices.ContainsFunc(l.Addrs, func(have Addr) bool { return have.Prefix == a.Prefix }) {
			return ErrExists
		}
		l.Addrs = append(l.Addrs, a)
		return nil
	})
}

// Delete removes an address (ErrNoDevice, ErrNoAddr).
func (s *Stack) Delete(name string, p netip.Prefix) error {
	return s.change(name, func(l *Link) error {
		i := slices.IndexFunc(l.Addrs, func(have Addr) bool { return have.Prefix == p })
		if i < 0 {
			return ErrNoAddr
		}
		l.Addrs = slices.Delete(l.Addrs, i, i+1)
		return nil
	})
}

// Configure sets the addresses of an interface and brings it up. It removes all other addresses. If mtu is 0, the MTU does not
// change.
func (s *Stack) Configure(name string, addrs []Addr, mtu int) error {
	err := s.change(name, func(l *Link) error {
		if mtu != 0 && !l.mayMTU(l.MTU, mtu) {
			return ErrMTU
		}
		if mtu != 0 {
			l.MTU = mtu
		}
		l.Addrs = slices.Clone(addrs)
		return nil
	})
	if err != nil {
		return err
	}
	return s.SetUp(name, true)
}

// Route returns the outgoing interface for ip: that of a connected network, otherwise the first one with an address.
func (s *Stack) Route(ip netip.Addr) (Link, Addr, bool) {
	var fallback *Link
	links := s.Links()
	for i, l := range links {
		if !l.Up {
			continue
		}
		for _, a := range l.Addrs {
			if a.Contains(ip) {
				return l, a, true
			}
			if fallback == nil && a.DHCP && !a.NoRoutes {
				fallback = &links[i]
			}
		}
	}
	if fallback != nil {
		return *fallback, fallback.Addrs[0], true
	}
	return Link{}, Addr{}, false
}

// Owns reports whether ip is an address of this guest.
func (s *Stack) Owns(ip netip.Addr) bool {
	if ip.IsLoopback() {
		return true
	}
	for _, l := range s.Links() {
		for _, a := range l.Addrs {
			if a.Addr() == ip {
				return true
			}
		}
	}
	return false
}
