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
)

// ip implements the program ip of iproute2: addresses, links, routes and neighbours.
func (c *Config) ip(_ context.Context, p *sh.Proc) int {
	v := ipView{}
	args := p.Args[1:]
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		switch strings.TrimLeft(args[0], "-") {
		case "br", "brief":
			v.brief = true
		case "4":
			v.family = 4
		case "6":
			v.family = 6
		case "o", "oneline":
			v.oneline = true
		case "d", "details", "p", "pretty", "s", "stats", "c", "color", "N":
		case "V", "Version":
			p.Printf("ip utility, iproute2-5.15.0, libbpf 0.5.0\n")
			return 0
		default:
			fmt.Fprintf(p.Stderr, "Option \"%s\" is unknown, try \"ip -help\".\n", args[0])
			return 255
		}
		args = args[1:]
	}
	if len(args) == 0 {
		fmt.Fprintf(p.Stderr, "Usage: ip [ OPTIONS ] OBJECT { COMMAND | help }\n")
		return 255
	}
	object := args[0]
	args = args[1:]
	switch {
	case strings.HasPrefix("address", object):
		return c.ipAddress(p, v, args)
	case strings.HasPrefix("link", object):
		return c.ipLink(p, v, args)
	case strings.HasPrefix("route", object):
		return c.ipRoute(p, args)
	case strings.HasPrefix("rule", object):
		return c.ipRule(p, args)
	case strings.HasPrefix("neighbour", object), object == "neighbor":
		return c.ipNeigh(p, args)
	}
	fmt.Fprintf(p.Stderr, "Object \"%s\" is unknown, try \"ip help\".\n", object)
	return 1
}

// rtnl prints the kernel's netlink error for err.
func rtnl(p *sh.Proc, err error) int {
	text := "Invalid argument"
	switch {
	case err == nil:
		return 0
	case errors.Is(err, ErrExists):
		text = "File exists"
	case errors.Is(err, ErrNoAddr):
		text = "Cannot assign requested address"
	case errors.Is(err, ErrMTU):
		fmt.Fprintf(p.Stderr, "Error: mtu greater than device maximum.\n")
		return 2
	case errors.Is(err, ErrNoDevice):
		text = "No such device"
	case errors.Is(err, errNoRule):
		text = "No such file or directory"
	case errors.Is(err, errNoRoute):
		text = "No such process"
	case errors.Is(err, errPrefSrc):
		fmt.Fprintf(p.Stderr, "Error: Invalid prefsrc address.\n")
		return 2
	case errors.Is(err, errDown):
		fmt.Fprintf(p.Stderr, "Error: Device for nexthop is not up.\n")
		return 2
	}
	fmt.Fprintf(p.Stderr, "RTNETLINK answers: %s\n", text)
	return 2
}

func notPermitted(p *sh.Proc) int {
	fmt.Fprintf(p.Stderr, "RTNETLINK answers: Operation not permitted\n")
	return 2
}

// words parses KEY VALUE pairs. Words that are not keys are returned as the object.
func words(args []string, keys ...string) (map[string]string, []string) {
	set := map[string]string{}
	var rest []string
	for i := 0; i < len(args); i++ {
		if slices.Contains(keys, args[i]) && i+1 < len(args) {
			set[args[i]] = args[i+1]
			i++
			continue
		}
		rest = append(rest, args[i])
	}
	return set, rest
}

func verb(args []string, fallback string) (string, []string) {
	if len(args) == 0 {
		return fallback, nil
	}
	return args[0], args[1:]
}

func (c *Config) ipAddress(p *sh.Proc, v ipView, args []string) int {
	what, rest := verb(args, "show")
	switch {
	case slices.Contains([]string{"show", "sh", "s", "list", "ls", "l"}, what):
		return c.show(p, v, rest, true)
	case slices.Contains([]string{"add", "a", "replace", "change", "del", "delete", "d"}, what):
		return c.changeAddress(p, what, rest)
	}
	fmt.Fprintf(p.Stderr, "Command \"%s\" is unknown, try \"ip address help\".\n", what)
	return 255
}

func (c *Config) changeAddress(p *sh.Proc, what string, args []string) int {
	set, rest := words(args, "dev", "brd", "broadcast", "scope", "label")
	if len(rest) == 0 || set["dev"] == "" {
		fmt.Fprintf(p.Stderr, "Not enough information: \"dev\" argument is required.\n")
		return 255
	}
	if !strings.Contains(rest[0], "/") {
		rest[0] += "/32"
	}
	prefix, err := netip.ParsePrefix(rest[0])
	if err != nil {
		fmt.Fprintf(p.Stderr, "Error: any valid prefix is expected rather than \"%s\".\n", rest[0])
		return 1
	}
	if _, ok := c.Stack.Link(set["dev"]); !ok {
		fmt.Fprintf(p.Stderr, "Cannot find device \"%s\"\n", set["dev"])
		return 1
	}
	if !p.Root() {
		return notPermitted(p)
	}
	switch what[0] {
	case 'd':
		return rtnl(p, c.Stack.Delete(set["dev"], prefix))
	case 'r', 'c':
		if err := c.Stack.Add(set["dev"], Addr{Prefix: prefix}); err != nil && !errors.Is(err, ErrExists) {
			return rtnl(p, err)
		}
		return 0
	}
	return rtnl(p, c.Stack.Add(set["dev"], Addr{Prefix: prefix}))
}

func (c *Config) ipLink(p *sh.Proc, v ipView, args []string) int {
	what, rest := verb(args, "show")
	switch {
	case slices.Contains([]string{"show", "sh", "s", "list", "ls", "l"}, what) && !(what == "s" && len(rest) > 1):
		return c.show(p, v, rest, false)
	case what == "set" || what == "s":
		return c.setLink(p, rest)
	}
	fmt.Fprintf(p.Stderr, "Command \"%s\" is unknown, try \"ip link help\".\n", what)
	return 255
}

func (c *Config) setLink(p *sh.Proc, args []string) int {
	set, rest := words(args, "dev", "mtu")
	dev := set["dev"]
	if dev == "" && len(rest) > 0 {
		dev, rest = rest[0], rest[1:]
	}
	if _, ok := c.Stack.Link(dev); !ok && dev != "lo" {
		fmt.Fprintf(p.Stderr, "Cannot find device \"%s\"\n", dev)
		return 1
	}
	if !p.Root() {
		return notPermitted(p)
	}
	if m, ok := set["mtu"]; ok {
		mtu, err := strconv.Atoi(m)
		if err != nil {
			fmt.Fprintf(p.Stderr, "Error: argument \"%s\" is wrong: Invalid \"mtu\" value\n", m)
			return 255
		}
		if status := rtnl(p, c.Stack.SetMTU(dev, mtu)); status != 0 {
			return status
		}
	}
	for _, word := range rest {
		switch word {
		case "up", "down":
			if dev == "lo" {
				continue
			}
			if status := rtnl(p, c.Stack.SetUp(dev, word == "up")); status != 0 {
				return status
			}
			if word == "up" {
				c.carrier(dev)
			}
		default:
			fmt.Fprintf(p.Stderr, "Error: either \"dev\" is duplicate, or \"%s\" is a garbage.\n", word)
			return 255
		}
	}
	return 0
}

func (c *Config) ipRoute(p *sh.Proc, args []string) int {
	what, rest := verb(args, "show")
	if !slices.Contains([]string{"show", "list", "ls", "s"}, what) {
		return c.changeRoute(p, what, rest)
	}
	if set, _ := words(rest, "table"); set["table"] != "" {
		if status, only := c.showTable(p, set["table"]); only {
			return status
		}
	}
	for _, l := range c.Stack.Links() {
		for _, a := range l.Addrs {
			if !l.Up || !a.Addr().Is4() {
				continue
			}
			if a.DHCP && !a.NoRoutes {
				p.Printf("default via %s dev %s proto dhcp src %s metric 100 \n", gateway(a.Prefix), l.Name, a.Addr())
			}
			p.Printf("%s dev %s proto kernel scope link src %s \n", a.Masked(), l.Name, a.Addr())
		}
	}
	return 0
}

// gateway returns the first address of a network.
func gateway(p netip.Prefix) netip.Addr { return p.Masked().Addr().Next() }

func (c *Config) ipNeigh(p *sh.Proc, args []string) int {
	if what, _ := verb(args, "show"); what != "show" {
		fmt.Fprintf(p.Stderr, "Command \"%s\" is unknown, try \"ip neigh help\".\n", what)
		return 255
	}
	for _, n := range c.neigh.list() {
		p.Printf("%s dev %s lladdr %s REACHABLE\n", n.ip, n.dev, n.mac)
	}
	return 0
}
