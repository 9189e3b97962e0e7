package netif

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/lab/shell/sh"
	"github.com/rdma-setup/rdma-setup/backends/lab/shell/vfs"
)

func (c *Config) host() string {
	data, _ := c.FS.ReadFile(vfs.Root(), "/etc/hostname")
	return strings.TrimSpace(string(data))
}

// reload makes networkd read its files.
func (c *Config) reload() {
	list := units(c.FS, ".network", true)
	c.mu.Lock()
	c.networks = list
	c.mu.Unlock()
}

// networkOf returns the first file that networkd has read for an interface; nil: it does not manage the interface.
func (c *Config) networkOf(l Link) *unit {
	c.mu.Lock()
	list := c.networks
	c.mu.Unlock()
	host := c.host()
	if i := slices.IndexFunc(list, func(u *unit) bool { return u.fits(l, "Name", host) }); i >= 0 {
		return list[i]
	}
	return nil
}

// current returns the file by which networkd has configured an interface.
func (c *Config) current(link string) *unit {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.configured[link]
}

// networkd configures all interfaces, or only those whose file has changed (networkctl(1), reload).
func (c *Config) networkd(changed bool) {
	for _, l := range c.Stack.Links() {
		was, is := c.current(l.Name), c.networkOf(l)
		if changed && (was == nil && is == nil || was != nil && is != nil && was.file == is.file && was.text == is.text) {
			continue
		}
		c.configure(l, is)
	}
}

// configure applies a file to an interface. Without one, what networkd has configured there before is dropped.
func (c *Config) configure(l Link, u *unit) {
	c.mu.Lock()
	was := c.configured[l.Name]
	if c.configured == nil {
		c.configured = map[string]*unit{}
	}
	c.configured[l.Name] = u
	c.mu.Unlock()
	switch {
	case u == nil && was == nil, u != nil && isYes(u.get("Link", "Unmanaged")):
		return
	case u == nil:
		_ = c.Stack.Configure(l.Name, nil, 0) // the interface is there
		c.follow(l.Name, policies{})
		return
	}
	policy := u.get("Link", "ActivationPolicy")
	if policy == "always-down" || policy == "down" {
		_ = c.Stack.SetUp(l.Name, false)
		return
	}
	master := ""
	for _, key := range []string{"Bond", "Bridge", "VRF"} {
		master += u.get("Network", key)
	}
	_ = c.Stack.change(l.Name, func(l *Link) error { l.Master = master; return nil })
	mtu, _ := strconv.Atoi(u.get("Link", "MTUBytes"))
	addrs := c.addresses(l, u)
	// networkd logs an error and continues if the device rejects an MTU.
	if err := c.Stack.Configure(l.Name, addrs, mtu); errors.Is(err, ErrMTU) {
		_ = c.Stack.Configure(l.Name, addrs, 0)
	}
	if policy == "manual" && !l.Up {
		_ = c.Stack.SetUp(l.Name, false)
	}
	c.follow(l.Name, u.policies())
}

func (c *Config) addresses(l Link, u *unit) (addrs []Addr) {
	if dhcp := u.get("Network", "DHCP"); l.Connected && (isYes(dhcp) || slices.Contains([]string{"ipv4", "both", "v4"}, dhcp)) {
		if p, ok := c.DHCP(l.MAC); ok {
			routes := u.get("DHCPv4", "UseRoutes") + u.get("DHCP", "UseRoutes")
			addrs = append(addrs, Addr{Prefix: p, DHCP: true, NoRoutes: routes != "" && !isYes(routes)})
		}
	}
	list := u.all("Network", "Address")
	for _, s := range u.sections {
		if s.name == "Address" {
			list = append(list, s.get("Address"))
		}
	}
	for _, text := range list {
		if p, err := netip.ParsePrefix(text); err == nil && !slices.ContainsFunc(addrs, func(a Addr) bool { return a.Prefix == p }) {
			addrs = append(addrs, Addr{Prefix: p})
		}
	}
	return addrs
}

// policies returns the rules, and the routes with a table, of a file. networkd adds both with the protocol static.
func (u *unit) policies() (out policies) {
	for _, s := range u.sections {
		table, _ := tableOf(s.get("Table"))
		if table == 0 {
			continue
		}
		switch s.name {
		case "Route":
			r := TableRoute{Table: table, Proto: "static"}
			r.To, _ = prefixOf(s.get("Destination"))
			r.Src, _ = netip.ParseAddr(s.get("PreferredSource"))
			if r.To.IsValid() {
				out.routes = append(out.routes, r)
			}
		case "RoutingPolicyRule":
			r := Rule{Table: table, Proto: "static"}
			r.From, _ = prefixOf(s.get("From"))
			r.Priority, _ = strconv.Atoi(s.get("Priority"))
			out.rules = append(out.rules, r)
		}
	}
	return out
}

func isYes(s string) bool {
	return slices.Contains([]string{"yes", "true", "on", "1", "y", "t"}, strings.ToLower(s))
}

// networkctl implements networkctl: reload reads the files, reconfigure applies them to interfaces.
func (c *Config) networkctl(_ context.Context, p *sh.Proc) int {
	o, err := p.Options("a json: lines: no-pager no-legend")
	if err != nil {
		return p.Usage(1, err)
	}
	what, rest := verb(o.Args, "list")
	if slices.Contains([]string{"reload", "reconfigure", "renew", "up", "down"}, what) && !p.Root() {
		fmt.Fprintf(p.Stderr, "Failed to %s network settings: Interactive authentication required.\n", what)
		return 1
	}
	var links []Link
	for _, name := range rest {
		l, ok := c.Stack.Link(name)
		if !ok {
			fmt.Fprintf(p.Stderr, "Interface \"%s\" not found.\n", name)
			return 1
		}
		links = append(links, l)
	}
	switch what {
	case "reload":
		c.reload()
		c.networkd(true)
	case "reconfigure":
		for _, l := range links {
			c.configure(l, c.networkOf(l))
		}
	case "status":
		for _, l := range links {
			file := "n/a"
			if u := c.current(l.Name); u != nil {
				file = u.file
			}
			p.Printf("* %d: %s\n             Network File: %s\n", l.Index, l.Name, file)
		}
	default:
		c.list(p)
	}
	return 0
}

func (c *Config) list(p *sh.Proc) {
	p.Printf("IDX LINK   TYPE     OPERATIONAL SETUP\n  1 lo     loopback carrier     unmanaged\n")
	for _, l := range c.Stack.Links() {
		oper, setup := "off", "unmanaged"
		switch u := c.current(l.Name); {
		case len(l.Addrs) > 0:
			oper = "routable"
		case l.Running():
			oper = "degraded"
		case u != nil && l.Up:
			oper = "no-carrier"
		}
		if u := c.current(l.Name); u != nil && !isYes(u.get("Link", "Unmanaged")) {
			setup = "configured"
		}
		p.Printf("%3d %s %s %s %s\n", l.Index, l.Name, "ether", oper, setup)
	}
}
