package netif

import (
	"context"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rdma-setup/rdma-setup/backends/lab/shell/sh"
	"github.com/rdma-setup/rdma-setup/backends/lab/shell/vfs"
)

// A Peer is the owner of an address, as reached from one interface.
type Peer struct {
	VM  string
	MAC string
	MTU int // size in bytes of the largest IP packet that can pass in both directions
	RTT time.Duration
}

// A Wire is the network outside of the guest.
type Wire interface {
	// Ask returns the owner of ip on the network of an interface. If routed is true, ip may be behind the gateway. The
	// interface's own MTU is taken into account.
	Ask(l Link, ip netip.Addr, routed bool) (Peer, bool)
	// ARP returns the MACs that respond to an ARP request for ip on that network. The first is that of the interface with ip,
	// because Linux responds for each of its addresses on every interface (arp_ignore 0 in the kernel's ip-sysctl.rst).
	ARP(l Link, ip netip.Addr) []string
}

// A Config is the network configuration of a guest: the stack, its configuration files and the program that applies
// them.
type Config struct {
	Stack   *Stack
	FS      *vfs.FS
	Wire    Wire
	Netplan bool // configured by netplan, otherwise by NetworkManager
	Strict  bool // netplan warns about files that other users can read
	// DHCP returns the address that a DHCP server assigns to a MAC.
	DHCP func(mac string) (netip.Prefix, bool)
	Now  func() time.Time
	// Listening returns the TCP ports on which programs listen.
	Listening func() []int

	neigh neighbours
	nm    manager

	mu         sync.Mutex
	networks   []*unit             // the files that networkd has read
	configured map[string]*unit    // by which it has configured an interface
	policies   map[string]policies // last configured policies by interface
}

// Programs returns the network programs, netplan only where it belongs to the system.
func (c *Config) Programs() map[string]sh.Program {
	all := map[string]sh.Program{
		"nmcli": c.nmcli, "ip": c.ip, "ping": c.ping, "arping": c.arping, "ethtool": c.ethtool, "ss": c.ss, "hostname": hostname, "networkctl": c.networkctl, "dcb": c.dcb, "mlnx_qos": c.mlnxQoS,
		"ufw": firewall, "firewall-cmd": firewall, "nft": firewall, "iptables": firewall,
	}
	if c.Netplan {
		all["netplan"] = c.netplan
	}
	return all
}

// Boot configures all interfaces from the configuration files, as at boot, after Generate.
func (c *Config) Boot() {
	c.neigh.clear()
	c.mu.Lock()
	c.policies, c.configured = nil, nil
	c.mu.Unlock()
	c.Networkd()
	c.NetworkManager()
}

// Networkd starts systemd-networkd, which runs where netplan does.
func (c *Config) Networkd() {
	if c.Netplan && !c.masked("systemd-networkd") {
		c.reload()
		c.networkd(false)
	}
}

type neighbour struct{ ip, dev, mac string }

type neighbours struct {
	mu  sync.Mutex
	all map[string]neighbour
}

func (n *neighbours) add(e neighbour) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.all == nil {
		n.all = map[string]neighbour{}
	}
	n.all[e.ip] = e
}

func (n *neighbours) clear() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.all = nil
}

func (n *neighbours) list() []neighbour {
	n.mu.Lock()
	defer n.mu.Unlock()
	var list []neighbour
	for _, ip := range slices.Sorted(maps.Keys(n.all)) {
		list = append(list, n.all[ip])
	}
	return list
}

func hostname(_ context.Context, p *sh.Proc) int {
	data, _ := p.Sys.FS.ReadFile(vfs.Root(), "/etc/hostname")
	name := strings.TrimSpace(string(data))
	if len(p.Args) > 1 && (p.Args[1] == "-s" || p.Args[1] == "--short") {
		name, _, _ = strings.Cut(name, ".")
	}
	p.Printf("%s\n", name)
	return 0
}
