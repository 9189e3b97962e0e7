package netif

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/rdma-setup/rdma-setup/backends/lab/shell/sh"
	"github.com/rdma-setup/rdma-setup/backends/lab/timing"
)

const (
	ipHeaders   = 28 // IPv4 and ICMP headers
	replyWithin = time.Second
)

// pause waits for the interval between two packets. The lab waits a tenth of the real interval, with the same behaviour.
func pause(ctx context.Context, p *sh.Proc, d time.Duration) {
	timing.Sleep(ctx, p.Sys.Clock.OfSleep(d/10))
}

// ping implements ping of iputils for IPv4.
func (c *Config) ping(ctx context.Context, p *sh.Proc) int {
	o, err := p.Options("c: s: W: I: M: i: w: n q 4 6 D O A f t: v")
	if err != nil || len(o.Args) != 1 {
		fmt.Fprintf(p.Stderr, "ping: usage error: Destination address required\n")
		return 2
	}
	number := func(name string, def int) int {
		if n, err := strconv.Atoi(o.Value(name)); err == nil {
			return n
		}
		return def
	}
	size, count := number("s", 56), number("c", math.MaxInt)
	target, err := netip.ParseAddr(o.Args[0])
	if err != nil {
		fmt.Fprintf(p.Stderr, "ping: %s: Temporary failure in name resolution\n", o.Args[0])
		return 2
	}
	link, from, routed, why := c.outgoing(o.Value("I"), target)
	if why != "" {
		fmt.Fprintf(p.Stderr, "ping: %s\n", why)
		return 2
	}
	p.Printf("PING %s (%s) ", target, target)
	if o.Has("I") {
		p.Printf("from %s %s: ", from, o.Value("I"))
	}
	p.Printf("%d(%d) bytes of data.\n", size, size+ipHeaders)
	deadline := math.MaxInt
	if w := number("w", 0); w > 0 {
		deadline = w
	}
	sent, got, failed := 0, 0, 0
	var rtts []float64
	for sent < count && sent < deadline && ctx.Err() == nil {
		if sent > 0 {
			pause(ctx, p, time.Second)
		}
		sent++
		rtt, line := c.echo(link, target, size, o.Value("M") == "do", routed, sent, from)
		switch {
		case rtt > 0:
			got++
			rtts = append(rtts, rtt)
			p.Printf("%d bytes from %s: icmp_seq=%d ttl=64 time=%s ms\n", size+8, target, sent, ms(rtt))
		case line != "":
			failed++
			p.Printf("%s\n", line)
		default:
			pause(ctx, p, time.Duration(number("W", 1))*replyWithin)
		}
	}
	p.Printf("\n--- %s ping statistics ---\n%d packets transmitted, %d received, ", target, sent, got)
	if failed > 0 {
		p.Printf("+%d errors, ", failed)
	}
	p.Printf("%s%% packet loss, time %dms\n", strconv.FormatFloat(100*float64(sent-got)/float64(max(sent, 1)), 'g', 6, 64),
		(max(sent, 1)-1)*1001)
	if got > 0 {
		lo, hi, sum := rtts[0], rtts[0], 0.0
		for _, r := range rtts {
			lo, hi, sum = min(lo, r), max(hi, r), sum+r
		}
		p.Printf("rtt min/avg/max/mdev = %.3f/%.3f/%.3f/%.3f ms\n", lo, sum/float64(got), hi, (hi-lo)/2)
		return 0
	}
	p.Printf("\n")
	return 1
}

func ms(v float64) string {
	if v < 1 {
		return fmt.Sprintf("%.3f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

// outgoing returns the outgoing interface and the source address for a packet to ip.
func (c *Config) outgoing(via string, ip netip.Addr) (l Link, from netip.Addr, routed bool, why string) {
	if c.Stack.Owns(ip) {
		return loopback(), ip, false, ""
	}
	if via == "" {
		l, a, ok := c.Stack.Route(ip)
		if !ok {
			return l, from, false, "connect: Network is unreachable"
		}
		return l, a.Addr(), !a.Contains(ip), ""
	}
	if src, err := netip.ParseAddr(via); err == nil {
		if !c.Stack.Owns(src) {
			return l, from, false, "bind: Cannot assign requested address"
		}
		l, a, ok := c.Stack.RouteFrom(src, ip)
		if !ok {
			return l, from, false, "connect: Network is unreachable"
		}
		return l, src, !a.Contains(ip), ""
	}
	l, ok := c.Stack.Link(via)
	if !ok {
		return l, from, false, fmt.Sprintf("unknown iface %s", via)
	}
	for _, a := range l.Addrs {
		if a.Addr().Is4() {
			from = a.Addr()
			if a.Contains(ip) {
				return l, from, false, ""
			}
		}
	}
	if !from.IsValid() {
		return l, from, false, "connect: Cannot assign requested address"
	}
	return l, from, true, ""
}

// echo sends one echo request. It returns the round-trip time in ms, or an error line, or neither if the packet is lost.
func (c *Config) echo(l Link, ip netip.Addr, size int, dontFragment, routed bool, seq int, from netip.Addr) (float64, string) {
	if l.Name == "lo" {
		return 0.04, ""
	}
	if dontFragment && size+ipHeaders > l.MTU {
		return 0, fmt.Sprintf("ping: local error: message too long, mtu=%d", l.MTU)
	}
	if !l.Up {
		return 0, "ping: sendmsg: Network is unreachable"
	}
	peer, ok := c.Wire.Ask(l, ip, routed)
	if !ok {
		if routed {
			return 0, ""
		}
		return 0, fmt.Sprintf("From %s icmp_seq=%d Destination Host Unreachable", from, seq)
	}
	c.neigh.add(neighbour{ip.String(), l.Name, peer.MAC})
	// Without the flag, the kernel fragments the packet to the interface's MTU. Packets that the switches drop are lost in both
	// cases.
	packet := size + ipHeaders
	if !dontFragment {
		packet = min(packet, l.MTU)
	}
	if packet > peer.MTU {
		return 0, ""
	}
	return float64(peer.RTT.Microseconds())/1000 + 0.001*float64(seq%7), ""
}

// arping implements arping of iputils. With -D it checks for duplicate addresses.
func (c *Config) arping(ctx context.Context, p *sh.Proc) int {
	o, err := p.Options("c: I: w: D q f b s: U A i:")
	if err != nil || len(o.Args) != 1 {
		return p.Usage(2, errors.New("destination address required"))
	}
	if !p.Root() {
		return p.Fail(2, "socket: Operation not permitted")
	}
	ip, err := netip.ParseAddr(o.Args[0])
	if err != nil {
		return p.Fail(2, "%s: Name or service not known", o.Args[0])
	}
	l, ok := c.Stack.Link(o.Value("I"))
	switch {
	case !ok:
		return p.Fail(2, "Device %s not available.", o.Value("I"))
	case !l.Up:
		return p.Fail(2, "Interface \"%s\" is down", l.Name)
	}
	from := netip.IPv4Unspecified()
	if !o.Has("D") && !o.Has("s") && len(l.Addrs) > 0 {
		from = l.Addrs[0].Addr()
	}
	count := 3
	if n, err := strconv.Atoi(o.Value("c")); err == nil {
		count = n
	}
	probes := count
	if n, err := strconv.Atoi(o.Value("w")); err == nil {
		probes = min(probes, n) // one per second
	}
	p.Printf("ARPING %s from %s %s\n", ip, from, l.Name)
	got := 0
	for i := range probes {
		if i > 0 {
			pause(ctx, p, time.Second)
		}
		macs := c.Wire.ARP(l, ip)
		if !o.Has("b") && len(macs) > 1 {
			macs = macs[:1] // further requests go only to the first one that responded
		}
		for _, mac := range macs {
			got++
			p.Printf("Unicast reply from %s [%s]  0.%03dms\n", ip, strings.ToUpper(mac), 601+7*i)
			if o.Has("D") || o.Has("f") || got == count {
				p.Printf("Sent %d probes (%d broadcast(s))\nReceived %d response(s)\n", i+1, i+1, got)
				if o.Has("D") {
					return 1
				}
				return 0
			}
		}
	}
	p.Printf("Sent %d probes (%d broadcast(s))\nReceived %d response(s)\n", probes, probes, got)
	if o.Has("D") || got > 0 {
		return 0
	}
	return 1
}
