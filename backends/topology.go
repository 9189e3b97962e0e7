package backends

import (
	"cmp"
	"slices"
	"strings"
)

// Nearness is the kind of path between two PCI devices of a host.
type Nearness string

// The paths, best first. Peer-to-peer works below one switch or root port (NVIDIA GPU Operator, GPUDirect RDMA: "the same PCIe IO
// root complex"). Between root ports of one root complex it depends on the chipset, and most do not support it. Between root
// complexes no setting enables it.
const (
	OneSwitch      Nearness = "one PCIe switch"
	OneRootPort    Nearness = "one root port"
	OneRootComplex Nearness = "one root complex, different root ports"
	DifferentRoots Nearness = "different root complexes"
	PathUnknown    Nearness = "path not known"
)

// PeerToPeer returns whether devices at this distance can reach each other's memory: yes, doubtful, no, unknown.
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

// Compare orders paths: negative if n is better.
func (n Nearness) Compare(other Nearness) int { return n.rank() - other.rank() }

// A Match is a GPU and the RDMA card it is used with.
type Match struct {
	GPU  *GPU
	NIC  string // PCI address of the card's function
	Path Nearness
}

// Match returns for each GPU the nearest of the given cards, identified by PCI address. Among equally near cards it prefers one
// on the NUMA node of the GPU, then one with fewer GPUs: two GPUs and two cards on one switch make two pairs. given is the number
// of GPUs of each card; Match adds to it. If there are no cards, it returns nil.
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

// A Pair is the path from a GPU to an RDMA card of its host.
type Pair struct {
	NIC      string   `json:"nic"`              // PCI address of the card's function
	Device   string   `json:"device,omitempty"` // vmnic2; "" if the function is passed through
	Path     Nearness `json:"path"`
	SameNUMA bool     `json:"same_numa"`
	P2P      string   `json:"p2p"` // yes, doubtful, no, unknown
}

// Bridges returns the PCI bridges above a device, nearest first; the last one is the root port. Empty if the path was not read.
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

// Near returns the kind of path between two devices, given their Bridges, and the nearest bridge that they share.
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

// bus returns segment and bus of a PCI address: root ports of one root complex share it.
func bus(address string) string {
	return address[:max(0, strings.LastIndexByte(address, ':'))]
}

// Path returns the chain of bridges above a GPU, nearest first, like Bridges.
func (g *GPU) Path() []string {
	if g.RootPort == "" {
		return nil
	}
	out := append([]string{g.RootPort}, g.Switches...)
	slices.Reverse(out)
	return out
}

// Cards returns the PCI functions of a host that could carry RDMA for a GPU: Mellanox network functions, as pNICs or passed
// through, without VFs and functions that lead to NVSwitches.
func (h *Host) Cards() []PCIDevice {
	var out []PCIDevice
	for _, d := range h.PCI {
		if strings.HasPrefix(d.Class, networkClass) && d.Vendor == mellanox && !strings.Contains(d.Name, "Virtual Function") &&
			!h.LeadsToNVSwitch(d.Address) {
			out = append(out, d)
		}
	}
	return out
}

const (
	networkClass = "02" // PCI base class of network controllers
	mellanox     = "15b3"
)

// Pair returns the paths from a GPU to each RDMA card of the host, nearest first; pNICs without an RDMA device are last.
func (h *Host) Pair(g *GPU) []Pair {
	var out []Pair
	without := map[string]int{}
	for _, c := range h.Cards() {
		p := Pair{NIC: c.Address, SameNUMA: c.NUMA >= 0 && c.NUMA == g.NUMA}
		p.Path, _ = Near(g.Path(), h.Bridges(c.Address))
		p.P2P = p.Path.PeerToPeer()
		for _, n := range h.NICs {
			if strings.EqualFold(n.PCI, c.Address) {
				p.Device = n.Device
				if n.RDMADevice == "" {
					without[p.NIC] = 1
				}
			}
		}
		out = append(out, p)
	}
	slices.SortStableFunc(out, func(x, y Pair) int {
		return cmp.Or(cmp.Compare(without[x.NIC], without[y.NIC]), cmp.Compare(x.Path.rank(), y.Path.rank()), cmp.Compare(far(x), far(y)),
			strings.Compare(x.NIC, y.NIC))
	})
	return out
}

func far(p Pair) int {
	if p.SameNUMA {
		return 0
	}
	return 1
}
