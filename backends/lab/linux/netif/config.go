package netif

import (
	"context"
	"encoding/json"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rdma-setup/rdma-setup/backends/lab/shell/sh"
	"github.com/rdma-setup/rdma-setup/backends/lab/shell/vfs"
)

// A Peer is who has an address, as seen from one interface.
type Peer struct {
	VM  string
	MAC string
	MTU int // bytes: the largest IP packet that gets there and back
	RTT time.Duration
}

// A Wire is the network outside of the guest.
type Wire interface {
	// Ask finds who answers for ip on the network that the interface with that MAC is on; routed also asks what
	// lies behind the gateway. The link's own MTU is taken into account.
	Ask(l Link, ip netip.Addr, routed bool) (Peer, bool)
}

// A Config is the network configuration of a guest: the stack, the files that it is configured from and who applies
// them.
type Config struct {
	Stack   *Stack
	FS      *vfs.FS
	Wire    Wire
	Netplan bool // netplan is there; else NetworkManager is
	Strict  bool // netplan warns of files that others may read
	// DHCP returns the address that a DHCP server gives to a MAC.
	DHCP func(mac string) (netip.Prefix, bool)
	Now  func() time.Time
	// Listening returns the TCP ports on which programs wait.
	Listening func() []int

	neigh neighbours
	nm    manager
}

// Programs returns what belongs to the network. netplan or nmcli is among them, never both.
func (c *Config) Programs() map[string]sh.Program {
	all := map[string]sh.Program{
		"ip": c.ip, "ping": c.ping, "arping": c.arping, "ethtool": c.ethtool, "ss": c.ss, "hostname": hostname, "networkctl": c.networkctl,
		"ufw": firewall, "firewall-cmd": firewall, "nft": firewall, "iptables": firewall,
	}
	if c.Netplan {
		all["netplan"] = c.netplan
	} else {
		all["nmcli"] = c.nmcli
	}
	return all
}

// Boot configures all interfaces from the files, as at start.
func (c *Config) Boot() {
	c.neigh.clear()
	if c.Netplan {
		if defs, err := c.load(); err == nil {
			c.apply(defs)
		}
		return
	}
	c.nm.turn.Lock()
	defer c.nm.turn.Unlock()
	c.nm.reset()
	c.nmReload()
	for _, con := range c.nm.list() {
		if con.get("connection.autoconnect") != "no" {
			_ = c.nmUp(con) // what has no device stays down
		}
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

func neighJSON(list []neighbour) string {
	out := []map[string]any{}
	for _, n := range list {
		out = append(out, map[string]any{"dst": n.ip, "dev": n.dev, "lladdr": n.mac, "state": []string{"REACHABLE"}})
	}
	b, _ := json.Marshal(out) // plain values: it cannot fail
	return string(b)
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
