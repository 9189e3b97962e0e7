package netif

import (
	"bufio"
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/rdma-setup/rdma-setup/backends/lab/shell/sh"
	"github.com/rdma-setup/rdma-setup/backends/lab/shell/vfs"
)

const generated = "/run/systemd/network"

// generate writes the files for networkd and removes generated files of interfaces that are no longer defined.
func (c *Config) generate(defs map[string]*definition) {
	root := vfs.Root()
	_ = c.FS.RemoveAll(root, generated)
	if err := c.FS.MkdirAll(root, generated, 0o755); err != nil {
		return
	}
	for _, id := range slices.Sorted(maps.Keys(defs)) {
		d := defs[id]
		var b strings.Builder
		match := "Name=" + d.id
		if d.mac != "" {
			match = "PermanentMACAddress=" + d.mac
		}
		fmt.Fprintf(&b, "[Match]\n%s\n\n", match)
		if d.mtu != 0 {
			fmt.Fprintf(&b, "[Link]\nMTUBytes=%d\n\n", d.mtu)
		}
		fmt.Fprintf(&b, "[Network]\n")
		if d.dhcp {
			fmt.Fprintf(&b, "DHCP=ipv4\n")
		}
		fmt.Fprintf(&b, "LinkLocalAddressing=ipv6\n")
		for _, a := range d.addrs {
			fmt.Fprintf(&b, "Address=%s\n", a)
		}
		for _, r := range d.routes {
			fmt.Fprintf(&b, "\n[Route]\nDestination=%s\nScope=link\nPreferredSource=%s\nTable=%d\n", r.To, r.Src, r.Table)
		}
		for _, r := range d.rules {
			fmt.Fprintf(&b, "\n[RoutingPolicyRule]\nFrom=%s\nTable=%d\nPriority=%d\n", strings.TrimSuffix(r.From.String(), "/32"), r.Table, r.Priority)
		}
		_ = c.FS.WriteFile(root, generated+"/10-netplan-"+id+".network", []byte(b.String()), 0o640) // the directory is new
	}
	c.mu.Lock()
	c.pending = defs
	c.mu.Unlock()
}

// networkctl implements networkctl: reload reads the generated files, reconfigure applies them to one interface.
func (c *Config) networkctl(_ context.Context, p *sh.Proc) int {
	o, err := p.Options("a json: no-pager no-legend")
	if err != nil {
		return p.Usage(1, err)
	}
	what, rest := verb(o.Args, "list")
	switch what {
	case "reload", "reconfigure", "renew", "up", "down":
		if !p.Root() {
			fmt.Fprintf(p.Stderr, "Failed to %s network settings: Interactive authentication required.\n", what)
			return 1
		}
	}
	switch what {
	case "reload":
		c.mu.Lock()
		c.loaded = c.pending
		c.mu.Unlock()
		return 0
	case "reconfigure":
		c.mu.Lock()
		defs := c.loaded
		c.mu.Unlock()
		for _, name := range rest {
			l, ok := c.Stack.Link(name)
			if !ok {
				fmt.Fprintf(p.Stderr, "Interface \"%s\" not found.\n", name)
				return 1
			}
			c.applyOne(defs, l)
		}
		return 0
	}
	p.Printf("IDX LINK   TYPE     OPERATIONAL SETUP\n  1 lo     loopback carrier     unmanaged\n")
	for _, l := range c.Stack.Links() {
		oper, setup := "off", "unmanaged"
		if l.Running() {
			oper = "degraded"
		}
		if len(l.Addrs) > 0 {
			oper, setup = "routable", "configured"
		}
		p.Printf("%3d %s %s %s %s\n", l.Index, l.Name, "ether", oper, setup)
	}
	return 0
}

func (c *Config) netplan(ctx context.Context, p *sh.Proc) int {
	o, err := p.Options("timeout: config-file: debug help root-dir:")
	if err != nil || len(o.Args) == 0 {
		fmt.Fprintf(p.Stderr, "usage: netplan [-h] [--debug] {help,apply,generate,get,info,ip,rebind,set,try} ...\n")
		return 2
	}
	what := o.Args[0]
	if !slices.Contains([]string{"apply", "generate", "try", "get"}, what) {
		fmt.Fprintf(p.Stderr, "usage: netplan [-h] [--debug] {help,apply,generate,get,info,ip,rebind,set,try} ...\n"+
			"netplan: error: argument {help,apply,generate,get,info,ip,rebind,set,try}: invalid choice: '%s'\n", what)
		return 2
	}
	if what != "get" && !p.Root() {
		fmt.Fprintf(p.Stderr, "ERROR: cannot create file /run/systemd/network/10-netplan.network: Permission denied\n")
		return 1
	}
	if what == "get" {
		return c.planGet(p, o.Args[1:])
	}
	c.warn(p)
	// Like netplan-apply(8), generate the files for systemd-networkd below /run first, then make it read them.
	if what != "generate" && !p.Spend(ctx, "netplan parse") {
		return 1
	}
	defs, err := c.load()
	if err != nil {
		fmt.Fprintf(p.Stderr, "%v\n", err)
		if what == "generate" {
			return 1
		}
		return 78
	}
	c.generate(defs)
	switch what {
	case "apply":
		if !p.Spend(ctx, "netplan restart") {
			return 1
		}
		c.apply(defs)
	case "try":
		return c.planTry(ctx, p, defs, o.Value("timeout"))
	}
	return 0
}

func (c *Config) warn(p *sh.Proc) {
	if !c.Strict {
		return
	}
	list, err := c.FS.ReadDir(vfs.Root(), netplanDir)
	if err != nil {
		return
	}
	for _, i := range list {
		if strings.HasSuffix(i.Name(), ".yaml") && i.Mode()&0o077 != 0 {
			fmt.Fprintf(p.Stderr, "\n** (generate:%d): WARNING **: %s: Permissions for %s are too open. Netplan configuration should NOT be accessible by others.\n",
				p.PID, c.Now().UTC().Format("15:04:05.000"), path.Join(netplanDir, i.Name()))
		}
	}
}

// planTry waits for ENTER and reverts all changes on timeout.
func (c *Config) planTry(ctx context.Context, p *sh.Proc, defs map[string]*definition, limit string) int {
	seconds := 120
	if n, err := strconv.Atoi(limit); err == nil {
		seconds = n
	}
	before := c.Stack.Links()
	c.apply(defs)
	p.Printf("Do you want to keep these settings?\n\n\nPress ENTER before the timeout to accept the new configuration\n\n\nChanges will revert in %d seconds\n", seconds)
	ctx, cancel := context.WithTimeout(ctx, time.Duration(seconds)*time.Second)
	defer cancel()
	entered := make(chan bool, 1)
	go func() {
		_, err := bufio.NewReader(p.Stdin).ReadString('\n')
		entered <- err == nil
	}()
	for {
		select {
		case ok := <-entered:
			if ok {
				p.Printf("Configuration accepted.\n")
				return 0
			}
			entered = nil // end of input: nobody can confirm
		case <-ctx.Done():
			for _, l := range before {
				_ = c.Stack.Configure(l.Name, l.Addrs, l.MTU) // the links have not changed
				_ = c.Stack.SetUp(l.Name, l.Up)
			}
			p.Printf("\nReverting.\n")
			return 78
		}
	}
}

func (c *Config) planGet(p *sh.Proc, args []string) int {
	defs, err := c.load()
	if err != nil {
		fmt.Fprintf(p.Stderr, "%v\n", err)
		return 78
	}
	ethernets := map[string]any{}
	for id, d := range defs {
		e := map[string]any{}
		if d.mac != "" {
			e["match"] = map[string]any{"macaddress": d.mac}
		}
		if d.dhcp {
			e["dhcp4"] = true
		}
		if d.mtu != 0 {
			e["mtu"] = d.mtu
		}
		if d.addrs != nil {
			var list []string
			for _, a := range d.addrs {
				list = append(list, a.String())
			}
			e["addresses"] = list
		}
		ethernets[id] = e
	}
	var tree any = map[string]any{"network": map[string]any{"version": 2, "ethernets": ethernets}}
	for _, arg := range args {
		for _, key := range strings.Split(arg, ".") {
			if key == "all" {
				continue
			}
			m, ok := tree.(map[string]any)
			if !ok || m[key] == nil {
				p.Printf("null\n")
				return 0
			}
			tree = m[key]
		}
	}
	out, err := yaml.Marshal(tree)
	if err != nil {
		return p.Errorf("%v", err)
	}
	p.Printf("%s", out)
	return 0
}
