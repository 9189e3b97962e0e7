package netif

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/lab/shell/sh"
)

// ipView contains the display options of ip.
type ipView struct {
	brief, oneline bool
	family         int // 4, 6 or both
}

func (v ipView) wants(a netip.Addr) bool {
	return v.family == 0 || v.family == 4 && a.Is4() || v.family == 6 && a.Is6()
}

// addresses returns the addresses of a link, with the link-local one last.
func addresses(l Link) []Addr {
	list := append([]Addr(nil), l.Addrs...)
	if l.Running() {
		list = append(list, Addr{Prefix: netip.PrefixFrom(LinkLocal(l.MAC), 64)})
	}
	return list
}

func flags(l Link) []string {
	f := []string{"BROADCAST", "MULTICAST"}
	if l.Up && !l.Connected {
		f = append([]string{"NO-CARRIER"}, f...)
	}
	if l.Up {
		f = append(f, "UP")
	}
	if l.Running() {
		f = append(f, "LOWER_UP")
	}
	return f
}

func state(l Link) string {
	if l.Running() {
		return "UP"
	}
	return "DOWN"
}

func loopback() Link {
	return Link{Name: "lo", Index: 1, MTU: 65536, Up: true, Port: Port{MAC: "00:00:00:00:00:00", Connected: true},
		Addrs: []Addr{{Prefix: netip.MustParsePrefix("127.0.0.1/8")}, {Prefix: netip.MustParsePrefix("::1/128")}}}
}

func (c *Config) show(p *sh.Proc, v ipView, args []string, addrs bool) int {
	set, rest := words(args, "dev", "type", "scope")
	dev, onlyUp := set["dev"], false
	for _, word := range rest {
		if word == "up" {
			onlyUp = true
		} else if dev == "" {
			dev = word
		}
	}
	links := append([]Link{loopback()}, c.Stack.Links()...)
	if dev != "" {
		l, ok := c.Stack.Link(dev)
		if dev == "lo" {
			l, ok = loopback(), true
		}
		if !ok {
			fmt.Fprintf(p.Stderr, "Device \"%s\" does not exist.\n", dev)
			return 1
		}
		links = []Link{l}
	}
	for _, l := range links {
		switch {
		case onlyUp && !l.Up:
		case v.brief:
			briefLine(p, l, v, addrs)
		default:
			fullLines(p, l, v, addrs)
		}
	}
	return 0
}

func scope(a netip.Addr) string {
	switch {
	case a.IsLoopback():
		return "host"
	case a.IsLinkLocalUnicast():
		return "link"
	}
	return "global"
}

func operstate(l Link) string {
	if l.Name == "lo" {
		return "UNKNOWN"
	}
	return state(l)
}

func briefLine(p *sh.Proc, l Link, v ipView, addrs bool) {
	p.Printf("%-16s %-14s ", l.Name, operstate(l))
	if !addrs {
		f := flags(l)
		if l.Name == "lo" {
			f = []string{"LOOPBACK", "UP", "LOWER_UP"}
		}
		p.Printf("%s <%s> \n", l.MAC, strings.Join(f, ","))
		return
	}
	for _, a := range shown(l) {
		if v.wants(a.Addr()) {
			p.Printf("%s ", a.Prefix)
		}
	}
	p.Printf("\n")
}

func shown(l Link) []Addr {
	if l.Name == "lo" {
		return l.Addrs
	}
	return addresses(l)
}

func fullLines(p *sh.Proc, l Link, v ipView, addrs bool) {
	f, kind, brd := flags(l), "ether", "ff:ff:ff:ff:ff:ff"
	queue := "mq"
	if l.Name == "lo" {
		f, kind, brd, queue = []string{"LOOPBACK", "UP", "LOWER_UP"}, "loopback", "00:00:00:00:00:00", "noqueue"
	}
	if v.oneline && addrs {
		for _, a := range shown(l) {
			if v.wants(a.Addr()) {
				dynamic, life := a.lifetime()
				p.Printf("%d: %s    %s%s scope %s %s%s\\       valid_lft %s preferred_lft %s\n",
					l.Index, l.Name, inet(a), broadcast(l, a), scope(a.Addr()), dynamic, l.Name, life, life)
			}
		}
		return
	}
	p.Printf("%d: %s: <%s> mtu %d qdisc %s state %s group default qlen 1000\n", l.Index, l.Name, strings.Join(f, ","), l.MTU, queue,
		operstate(l))
	if v.family == 0 || !addrs {
		p.Printf("    link/%s %s brd %s\n", kind, l.MAC, brd)
		if l.Name != "lo" {
			p.Printf("    altname %s\n", altname(l))
		}
	}
	if !addrs {
		return
	}
	for _, a := range shown(l) {
		if !v.wants(a.Addr()) {
			continue
		}
		dynamic, life := a.lifetime()
		label := ""
		if a.Addr().Is4() {
			label = l.Name
		}
		p.Printf("    %s%s scope %s %s%s\n       valid_lft %s preferred_lft %s\n", inet(a), broadcast(l, a), scope(a.Addr()), dynamic, label,
			life, life)
	}
}

// lifetime returns ip addr's text for the lifetime of an address.
func (a Addr) lifetime() (dynamic, life string) {
	if a.DHCP {
		return "dynamic ", "86313sec"
	}
	return "", "forever"
}

func altname(l Link) string {
	name := fmt.Sprintf("enp%ds0", Bus(l.Slot))
	if l.Paired {
		name += "f0"
	}
	return name
}

func inet(a Addr) string {
	if a.Addr().Is4() {
		return "inet " + a.String()
	}
	return "inet6 " + a.String()
}

func broadcast(l Link, a Addr) string {
	if !a.Addr().Is4() || l.Name == "lo" || a.Bits() > 30 {
		return ""
	}
	b := a.Masked().Addr().As4()
	for i := a.Bits(); i < 32; i++ {
		b[i/8] |= 1 << (7 - i%8)
	}
	return " brd " + netip.AddrFrom4(b).String()
}
