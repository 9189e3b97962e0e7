package perftest

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
)

// A Node is one end of a measurement: the RDMA device in a guest, and the host port of its traffic.
type Node struct {
	VM       string
	Rail     string // "": only one rail
	Host     string
	Port     string // pNIC of the host that carries the traffic; "" unknown
	IP       string // address of the RDMA interface
	MAC      string // of that interface, in lower case
	Device   string // verbs device in the guest
	GID      int    // index of the RoCE v2 + IPv4 entry
	MTU      int    // active_mtu of the port, bytes
	LinkMbps int    // negotiated speed of the host port
	GPU      *GPU   // nil: only host memory is measured
	Engine   string // docker, podman or nerdctl, which runs Image; "" none
	Image    string // container image for additional measurements; "" none
	Version  string // version of perftest; "" unknown
	Dir      string // directory of perftest's programs; "": the PATH
	Bind     string // command that runs perftest on the CPUs near the device, such as taskset -c 8-15; "": not needed or not available
	User     bool   // the login user may lock enough memory without sudo
	FrameMTU int    // MTU that the fabric of its rail must support, in bytes; 0: the runner's
	VLAN     bool   // frames of the RDMA network are tagged
	Leaf     string // switch that the host port receives over LLDP or CDP; "" unknown
	Slot     Slot   // PCIe link of the host port

	Card       string // PCI address of the first function of the card, which is common to its ports; "" unknown
	PCIeSwitch string // PCI address of the PCIe switch above the card; "" none, or unknown

	Unread, Remedy string // why its guest could not be read, and what to do

	NoHCA bool // the host has no RDMA card, which pvrdma.allow_no_hca allows; without a Port it has no uplink either

	Idle *float64 // in the client of a pair: traffic of others in Gb/s on the ports of both while no test ran; nil: not known

	PFC *int // bit mask of priorities with PFC on the host port; nil: not read
}

// hostPort returns what two concurrent tests must not share; VMs of one host share its port.
func (n Node) hostPort() string { return n.Host + "/" + n.Port }

// name distinguishes a node from others of its VM.
func (n Node) name() string { return onRail(n.VM, n.Rail) }

// onRail names the interface of a VM on a rail; without rails it has only one.
func onRail(vm, rail string) string {
	if rail == "" {
		return vm
	}
	return vm + " (" + rail + ")"
}

// A Pair is one measurement, from the client to the server.
type Pair struct{ Client, Server Node }

// SameHost reports whether both ends are on one host: such traffic does not use the fabric.
func (p Pair) SameHost() bool { return p.Client.Host == p.Server.Host }

// linkMbps returns the speed of the slower of the two host ports; 0 if one is not known.
func (p Pair) linkMbps() int { return min(p.Client.LinkMbps, p.Server.LinkMbps) }

// fabric returns what the nodes' data shows about the path between them. Between two leaves are at least a spine and the other
// leaf.
func (p Pair) fabric() Fabric {
	f := Fabric{SameHost: p.SameHost(), NoHCA: p.without(), LinkMbps: p.linkMbps(), VLAN: p.Client.VLAN || p.Server.VLAN,
		Slot: p.Client.Slot.narrower(p.Server.Slot)}
	if p.Client.Leaf != "" && p.Server.Leaf != "" && p.Client.Leaf != p.Server.Leaf {
		f.Hops = leafSpine
	}
	return f
}

// leafSpine is the number of switches after the first on a path between two leaves: a spine and the other leaf.
const leafSpine = 2

func (p Pair) String() string { return p.Client.name() + " -> " + p.Server.name() }

// Pairs returns what to measure: "ring" (each node to the next one, so that every node sends once and receives once), "all"
// (every two nodes once), or "A:B" (one pair by VM name). In the ring, neighbours are on different hosts if possible, because a
// pair on one host does not test the fabric.
func Pairs(nodes []Node, how string) ([]Pair, error) {
	switch how {
	case "", "ring":
		return mixed(nodes), nil
	case "all":
		var pairs []Pair
		for i, a := range nodes {
			for _, b := range nodes[i+1:] {
				pairs = append(pairs, Pair{a, b})
			}
		}
		return connected(pairs, nodes), nil
	}
	from, to, ok := strings.Cut(how, ":")
	if !ok {
		return nil, fmt.Errorf("pairs %q: use ring, all or VM:VM", how)
	}
	a, b := node(nodes, from), node(nodes, to)
	switch {
	case a == nil:
		return nil, fmt.Errorf("pairs %q: %q is not among the VMs", how, from)
	case b == nil:
		return nil, fmt.Errorf("pairs %q: %q is not among the VMs", how, to)
	case a == b:
		return nil, fmt.Errorf("pairs %q: a VM is not measured against itself", how)
	case Pair{*a, *b}.apart():
		return nil, fmt.Errorf("pairs %q: no network connects the two: one of their hosts has no RDMA card and no uplink", how)
	}
	return []Pair{{*a, *b}}, nil
}

// Once returns the few pairs in which each end occurs: once, or twice if it is the only one left for another. That is half of a ring,
// and n/2 of all pairs of n VMs.
func Once(pairs []Pair) []Pair {
	used := map[string]bool{}
	var some []Pair
	for _, enough := range []bool{false, true} {
		for _, p := range pairs {
			a, b := used[p.Client.name()], used[p.Server.name()]
			if a && b || (a || b) != enough {
				continue
			}
			used[p.Client.name()], used[p.Server.name()] = true, true
			some = append(some, p)
		}
	}
	return some
}

func node(nodes []Node, vm string) *Node {
	if i := slices.IndexFunc(nodes, func(n Node) bool { return n.VM == vm }); i >= 0 {
		return &nodes[i]
	}
	return nil
}

func ring(nodes []Node) []Pair {
	if len(nodes) < 2 {
		return nil
	}
	laid := interleave(nodes)
	pairs := make([]Pair, 0, len(laid))
	for i, n := range laid {
		pairs = append(pairs, Pair{n, laid[(i+1)%len(laid)]})
	}
	return pairs
}

// interleave orders nodes so that neighbours on the ring are on different hosts as far as possible: nodes of the fullest hosts
// are placed first, on every second place, then on the places between.
func interleave(nodes []Node) []Node {
	hosts := grouped(nodes, func(n Node) string { return n.Host })
	slices.SortStableFunc(hosts, func(a, b []Node) int { return len(b) - len(a) })
	laid := make([]Node, len(nodes))
	place := 0
	for _, n := range slices.Concat(hosts...) {
		laid[place] = n
		if place += 2; place >= len(laid) {
			place = 1
		}
	}
	return laid
}

// Rounds distributes pairs over rounds in which no guest and no host port occurs twice, so that the pairs of a round can be
// measured concurrently without sharing bandwidth. N nodes on N hosts, all pairs: N-1 rounds, N rounds if N is odd. Pairs on one
// host use no port and share only their guests.
//
// Rails are measured one after the other, so that the result of one does not depend on the others.
func Rounds(pairs []Pair) [][]Pair {
	var out [][]Pair
	for _, rail := range grouped(pairs, func(p Pair) string { return p.Client.Rail }) {
		rounds, ok := circle(rail)
		if !ok {
			rounds = greedy(rail)
		}
		out = append(out, rounds...)
	}
	return out
}

// circle is the round-robin tournament: node 0 stays, the others move one place per round.
func circle(pairs []Pair) ([][]Pair, bool) {
	var names []string
	ports := map[string]bool{}
	find := map[[2]string]Pair{}
	for _, p := range pairs {
		for _, n := range []Node{p.Client, p.Server} {
			if !slices.Contains(names, n.VM) {
				names = append(names, n.VM)
				ports[n.hostPort()] = true
			}
		}
		find[[2]string{p.Client.VM, p.Server.VM}] = p
	}
	n := len(names)
	if n < 3 || len(ports) != n || len(pairs) != n*(n-1)/2 || len(find) != len(pairs) {
		return nil, false
	}
	if n%2 == 1 {
		names = append(names, "") // a node without a partner rests
		n++
	}
	rounds := make([][]Pair, 0, n-1)
	for r := range n - 1 {
		var round []Pair
		for i := range n / 2 {
			a, b := seat(r, i, n), seat(r, n-1-i, n)
			if p, ok := find[[2]string{names[a], names[b]}]; ok {
				round = append(round, p)
			} else if p, ok := find[[2]string{names[b], names[a]}]; ok {
				round = append(round, p)
			}
		}
		rounds = append(rounds, round)
	}
	return rounds, true
}

// seat returns the node on place i in round r of n: place 0 never moves.
func seat(r, i, n int) int {
	if i == 0 {
		return 0
	}
	return 1 + (i-1+r)%(n-1)
}

// greedy assigns each pair to the first round with room, the busiest ports first.
func greedy(pairs []Pair) [][]Pair {
	load := map[string]int{}
	for _, p := range pairs {
		load[p.Client.hostPort()]++
		load[p.Server.hostPort()]++
	}
	order := slices.Clone(pairs)
	slices.SortStableFunc(order, func(a, b Pair) int {
		weight := func(p Pair) int { return max(load[p.Client.hostPort()], load[p.Server.hostPort()]) }
		return weight(b) - weight(a)
	})
	return firstFit(order, func(p Pair) []string {
		keys := []string{"vm " + p.Client.VM, "vm " + p.Server.VM}
		if !p.SameHost() {
			keys = append(keys, p.Client.hostPort(), p.Server.hostPort())
		}
		return keys
	})
}

// firstFit assigns each item to the first round in which none of its keys occurs yet.
func firstFit[T any](items []T, keys func(T) []string) [][]T {
	var rounds [][]T
	var taken []map[string]bool
	for _, item := range items {
		own := keys(item)
		r := slices.IndexFunc(taken, func(round map[string]bool) bool {
			return !slices.ContainsFunc(own, func(k string) bool { return round[k] })
		})
		if r < 0 {
			r, rounds, taken = len(rounds), append(rounds, nil), append(taken, map[string]bool{})
		}
		rounds[r] = append(rounds[r], item)
		for _, k := range own {
			taken[r][k] = true
		}
	}
	return rounds
}

// inRounds runs items round by round; those of a round run concurrently, at most so many at once (0: all). It ends with the first
// error of a round, or with that of ctx.
func inRounds[T any](ctx context.Context, rounds [][]T, atOnce int, run func(round, at int, item T) error) error {
	for i, round := range rounds {
		var g errgroup.Group
		g.SetLimit(cmp.Or(atOnce, -1))
		for k, item := range round {
			g.Go(func() error {
				if err := ctx.Err(); err != nil {
					return err
				}
				return run(i, k, item)
			})
		}
		if err := g.Wait(); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// grouped groups items by their keys, in the order in which the keys occur.
func grouped[T any, K comparable](items []T, key func(T) K) [][]T {
	var out [][]T
	at := map[K]int{}
	for _, item := range items {
		i, known := at[key(item)]
		if !known {
			i = len(out)
			at[key(item)] = i
			out = append(out, nil)
		}
		out[i] = append(out[i], item)
	}
	return out
}
