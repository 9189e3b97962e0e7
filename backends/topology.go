package backends

import (
	"cmp"
	"slices"
	"strings"
)

// Nearness says by what path two PCI devices of a host reach each other.
type Nearness string

// The paths, the best first. Peer-to-peer works below one switch or root port (NVIDIA GPU Operator, GPUDirect RDMA: "the
// same PCIe IO root complex"); between root ports of one root complex it is for the chipset to say, and most do not;
// between root complexes no setting gives it.
const (
	OneSwitch      Nearness = "one PCIe switch"
	OneRootPort    Nearness = "one root port"
	OneRootComplex Nearness = "one root complex, different root ports"
	DifferentRoots Nearness = "different root complexes"
	PathUnknown    Nearness = "path not known"
)

// PeerToPeer reports whether devices so far apart can reach each other's memory: yes, doubtful, no, unknown.
func (n Nearness) PeerToPeer() string {
	switch n {
	case OneSwitch, OneRootPort:
		return "yes"
	case OneRootComplex:
		return "doubtful"
	case DifferentRoots:
		return "no"
	}
	return "unknown"
}

func (n Nearness) rank() int {
	return slices.Index([]Nearness{OneSwitch, OneRootPort, OneRootComplex, PathUnknown, DifferentRoots}, n)
}

// Compare orders paths: negative where n is the better one.
func (n Nearness) Compare(other Nearness) int { return n.rank() - other.rank() }

// A Match is a GPU and the RDMA card that it is used with.
type Match struct {
	GPU  *GPU
	NIC  string // PCI address of the card's function
	Path Nearness
}

// Match finds for each GPU the nearest of some cards, known by PCI address. Of cards equally near it takes one on the NUMA node
// of the GPU, then one that fewer GPUs have been given: two GPUs and two cards on one switch make two pairs. given counts the
// GPUs of each card, and is added to. Without cards it returns none.
func (h *Host) Match(gpus []*GPU, nics []string, given map[string]int) []Match {
	var out []Match
	for _, g := range gpus {
		var best *Pair
		for _, p := range h.Pair(g) {
			if !slices.Contains(nics, p.NIC) {
				continue
			}
			if best == nil || cmp.Or(p.Path.Compare(best.Path), cmp.Compare(far(p), far(*best)), cmp.Compare(given[p.NIC], given[best.NIC])) < 0 {
				best = &p
			}
		}
		if best != nil {
			given[best.NIC]++
			out = append(out, Match{GPU: g, NIC: best.NIC, Path: best.Path})
		}
	}
	return out
}

// A Pair is a GPU's way to an RDMA card of its host.
type Pair struct {
	NIC      string   `json:"nic"`              // PCI address of the card's function
	Device   string   `json:"device,omitempty"` // vmnic2; "" if the function is passed through
	Path     Nearness `json:"path"`
	SameNUMA bool     `json:"same_numa"`
	P2P      string   `json:"p2p"` // yes, doubtful, no, unknown
}

// Bridges are the PCI bridges above a device, nearest first; the last one is the root port. Empty where the path was not
// read.
func (h *Host) Bridges(address string) []string {
	parent := make(map[string]string, len(h.PCI))
	for _, d := range h.PCI {
		parent[d.Address] = d.Parent
	}
	var out []string
	for at := parent[address]; at != "" && !slices.Contains(out, at); at = parent[at] {
		if _, listed := parent[at]; listed {
			out = append(out, at)
		}
	}
	return out
}

// Near tells how far apart two paths are (Bridges), and the bridge nearest to both devices that they share.
func Near(a, b []string) (path Nearness, shared string) {
	if len(a) == 0 || len(b) == 0 {
		return PathUnknown, ""
	}
	rootA, rootB := a[len(a)-1], b[len(b)-1]
	for _, bridge := range a {
		if !slices.Contains(b, bridge) {
			continue
		}
		if bridge == rootA {
			return OneRootPort, bridge
		}
		return OneSwitch, bridge
	}
	if bus(rootA) == bus(rootB) {
		return OneRootComplex, ""
	}
	return DifferentRoots, ""
}

// bus is segment and bus of a PCI address: root ports of one root complex share it.
func bus(address string) string {
	return address[:max(0, strings.LastIndexByte(address, ':'))]
}

// Path is the chain of bridges above a GPU, nearest first, as Bridges gives it.
func (g *GPU) Path() []string {
	if g.RootPort == "" {
		return nil
	}
	out := append([]string{g.RootPort}, g.Switches...)
	slices.Reverse(out)
	return out
}

// Cards are the PCI functions of a host that could carry RDMA beside a GPU: Mellanox network functions, be they pNICs or
// passed through. VFs are left out, and what leads to NVSwitches.
func (h *Host) Cards() []PCIDevice {
	var out []PCIDevice
	for _, d := range h.PCI {
		if strings.HasPrefix(d.Class, networkClass) && d.Vendor == mellanox && !strings.Contains(d.Name, "Virtual Function") && !h.LeadsToNVSwitch(d.Address) {
			out = append(out, d)
		}
	}
	return out
}

const (
	networkClass = "02" // PCI base class of network controllers
	mellanox     = "15b3"
)

// Pair works out the way from a GPU to each RDMA card of the host, the nearest first.
func (h *Host) Pair(g *GPU) []Pair {
	var out []Pair
	for _, c := range h.Cards() {
		p := Pair{NIC: c.Address, SameNUMA: c.NUMA >= 0 && c.NUMA == g.NUMA}
		p.Path, _ = Near(g.Path(), h.Bridges(c.Address))
		p.P2P = p.Path.PeerToPeer()
		for _, n := range h.NICs {
			if strings.EqualFold(n.PCI, c.Address) {
				p.Device = n.Device
			}
		}
		out = append(out, p)
	}
	slices.SortStableFunc(out, func(x, y Pair) int {
		return cmp.Or(cmp.Compare(x.Path.rank(), y.Path.rank()), cmp.Compare(far(x), far(y)), strings.Compare(x.NIC, y.NIC))
	})
	return out
}

func far(p Pair) int {
	if p.SameNUMA {
		return 0
	}
	return 1
}
