package perftest

import (
	"fmt"
	"slices"
	"strings"
)

// What a pair uses instead of RDMA if a host has no RDMA card (vSphere Networking 7.0, Using RDMA in vSphere): "For virtual
// machines that run on the same ESXi host with or without a physical RDMA device, the data transfer is a memcpy", and "when at
// least one of the hosts does not have a physical RDMA device, the communication falls back to a TCP-based channel".
const (
	InsteadMemory = "memory"
	InsteadTCP    = "tcp"
)

// without returns the hosts of a pair that have no RDMA card.
func (p Pair) without() []string {
	var out []string
	for _, n := range []Node{p.Client, p.Server} {
		if n.NoHCA && !slices.Contains(out, n.Host) {
			out = append(out, n.Host)
		}
	}
	return out
}

// apart reports whether no network connects a pair: a host without an RDMA card has no uplink either.
func (p Pair) apart() bool {
	lone := func(n Node) bool { return n.NoHCA && n.Port == "" }
	return !p.SameHost() && (lone(p.Client) || lone(p.Server))
}

// connected removes the pairs that no network connects, and adds neighbours on hosts without an RDMA card, where PVRDMA copies
// memory.
func connected(pairs []Pair, nodes []Node) []Pair {
	pairs = slices.DeleteFunc(pairs, Pair.apart)
	last := map[string]Node{}
	for _, n := range nodes {
		if !n.NoHCA {
			continue
		}
		before, there := last[n.Host]
		last[n.Host] = n
		both := func(p Pair) bool {
			return p.Client.VM == before.VM && p.Server.VM == n.VM || p.Client.VM == n.VM && p.Server.VM == before.VM
		}
		if there && !slices.ContainsFunc(pairs, both) {
			pairs = append(pairs, Pair{before, n})
		}
	}
	return pairs
}

// mixed returns a ring of the nodes with RDMA, so that hosts without an RDMA card do not displace a measurement of RDMA, and for
// each other node one pair with a node on another host, preferably with RDMA.
func mixed(nodes []Node) []Pair {
	plain := func(n Node) bool { return n.NoHCA }
	able := slices.DeleteFunc(slices.Clone(nodes), plain)
	pairs := ring(able)
	for i, n := range nodes {
		if !n.NoHCA {
			continue
		}
		peers := slices.DeleteFunc(slices.Clone(able), func(p Node) bool { return p.Host == n.Host })
		if len(peers) == 0 {
			peers = slices.DeleteFunc(slices.Clone(nodes), func(p Node) bool { return Pair{n, p}.apart() || p.Host == n.Host })
		}
		if len(peers) > 0 {
			pairs = append(pairs, Pair{n, peers[i%len(peers)]})
		}
	}
	return connected(pairs, nodes)
}

// instead marks a measurement of a pair that does not use RDMA because a host has no RDMA card: it is not judged.
func (m *Measurement) instead(f Fabric) {
	m.Verdict, m.ExpectedGbps, m.ExpectedUs, m.Hint = VerdictNotApplicable, 0, 0, ""
	lacks := strings.Join(f.NoHCA, " and ") + " " + map[bool]string{true: "has", false: "have"}[len(f.NoHCA) == 1] + " no RDMA card"
	m.Instead, m.Why = InsteadTCP, fmt.Sprintf("TCP, not RDMA: %s", lacks)
	if f.SameHost {
		m.Instead, m.Why = InsteadMemory, "memory on one host, not RDMA: "+lacks
	}
}
