package netif

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rdma-setup/rdma-setup/backends/lab/linux/netplan"
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
		"nmcli": c.nmcli, "ip": c.ip, "ping": c.ping, "arping": c.arping, "ethtool": c.ethtool, "ss": c.ss, "hostname": hostname,
		"networkctl": c.networkctl, "dcb": c.dcb, "mlnx_qos": c.mlnxQoS,
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

func (c *Config) ethtool(_ context.Context, p *sh.Proc) int {
	o, err := p.Options("S statistics")
	if err != nil || len(o.Args) != 1 {
		return p.Usage(1, errors.Join(err, errors.New("bad command line argument(s)")))
	}
	l, ok := c.Stack.Link(o.Args[0])
	if !ok || l.Name != o.Args[0] {
		fmt.Fprintf(p.Stderr, "netlink error: No such device\n")
		return 75
	}
	if o.Has("S", "statistics") {
		p.Printf("NIC statistics:\n     rx_packets: 90312\n     tx_packets: 88120\n")
		if l.HCA != nil && l.HCA.Priorities != nil {
			p.Printf("%s", l.HCA.Priorities())
		}
		return 0
	}
	return p.Usage(1, errors.New("the lab has ethtool -S only"))
}

// ss shows listening sockets, including that of the SSH server.
func (c *Config) ss(_ context.Context, p *sh.Proc) int {
	if _, err := p.Options("l t u n p a H 4 6 e m i s listening tcp udp numeric processes no-header"); err != nil {
		return p.Usage(255, err)
	}
	p.Printf("State  Recv-Q Send-Q Local Address:Port Peer Address:PortProcess\nLISTEN 0      128          0.0.0.0:22         0.0.0.0:*    \n")
	for _, port := range c.Listening() {
		p.Printf("LISTEN 0      0                  *:%d            *:*    \n", port)
	}
	return 0
}

// firewall implements ufw, firewalld, nftables and iptables. They are installed and allow all traffic.
func firewall(_ context.Context, p *sh.Proc) int {
	if !p.Root() {
		switch p.Name() {
		case "ufw":
			fmt.Fprintf(p.Stderr, "ERROR: You need to be root to run this script\n")
		case "firewall-cmd":
			fmt.Fprintf(p.Stderr, "Authorization failed.\n    Make sure polkit agent is running or run the application as superuser.\n")
			return 253
		default:
			fmt.Fprintf(p.Stderr, "Operation not permitted (you must be root)\n")
		}
		return 1
	}
	args := strings.Join(p.Args[1:], " ")
	switch p.Name() {
	case "ufw":
		if strings.HasPrefix(args, "status") {
			p.Printf("Status: inactive\n")
		}
	case "firewall-cmd":
		if args == "--state" {
			fmt.Fprintf(p.Stderr, "not running\n")
		} else {
			fmt.Fprintf(p.Stderr, "FirewallD is not running\n")
		}
		return 252
	case "iptables":
		if strings.HasPrefix(args, "-S") {
			p.Printf("-P INPUT ACCEPT\n-P FORWARD ACCEPT\n-P OUTPUT ACCEPT\n")
		}
	}
	return 0
}

// Generate runs netplan's generator, early in the boot. If a file is invalid, it writes nothing for any interface
// (canonical/netplan, LP 1746842).
func (c *Config) Generate() {
	if !c.Netplan {
		return
	}
	if s, err := netplan.Load(c.FS, ""); err == nil {
		_ = s.Generate() // what cannot be written is missing
	}
}

func (c *Config) netplan(ctx context.Context, p *sh.Proc) int {
	o, err := p.Options("debug help root-dir:")
	if err != nil || len(o.Args) == 0 {
		fmt.Fprintf(p.Stderr, "usage: netplan [-h] [--debug] {help,apply,generate,get,info,ip,rebind,set,try} ...\n")
		return 2
	}
	what, root := o.Args[0], strings.TrimSuffix(o.Value("root-dir"), "/")
	if !slices.Contains([]string{"apply", "generate"}, what) {
		fmt.Fprintf(p.Stderr, "usage: netplan [-h] [--debug] {help,apply,generate,get,info,ip,rebind,set,try} ...\n"+
			"netplan: error: argument {help,apply,generate,get,info,ip,rebind,set,try}: invalid choice: '%s'\n", what)
		return 2
	}
	if root == "" && !p.Root() {
		fmt.Fprintf(p.Stderr, "ERROR: cannot create file /run/systemd/network/10-netplan.network: Permission denied\n")
		return 1
	}
	// Like netplan-apply(8), generate the files below /run first, then make the programs read them.
	if what == "apply" && !p.Spend(ctx, "netplan parse") {
		return 1
	}
	failed := 78
	if what == "generate" {
		failed = 1
	}
	s, err := netplan.Load(c.FS, root)
	if err == nil {
		c.warn(p, s)
		err = s.Generate()
	}
	if err != nil {
		fmt.Fprintf(p.Stderr, "%v\n", err)
		return failed
	}
	if what == "apply" {
		if !p.Spend(ctx, "netplan restart") {
			return 1
		}
		c.Networkd()
		c.NetworkManager()
	}
	return 0
}

func (c *Config) warn(p *sh.Proc, s *netplan.State) {
	warn := func(text string) {
		fmt.Fprintf(p.Stderr, "\n** (generate:%d): WARNING **: %s: %s\n", p.PID, c.Now().UTC().Format("15:04:05.000"), text)
	}
	for _, file := range s.Open {
		if c.Strict {
			warn("Permissions for " + file + " are too open. Netplan configuration should NOT be accessible by others.")
		}
	}
	for _, key := range s.Gateways {
		warn("`" + key +
			"` has been deprecated, use default routes instead.\nSee the 'Default routes' section of the documentation for more details.")
	}
	if text := s.Conflicts(); text != "" {
		warn(
			"Problem encountered while validating default route consistency.Please set up multiple routing tables and use `routing-policy` " +
				"instead.\nError: " + text)
	}
}
