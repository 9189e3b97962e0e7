package world

import (
	"fmt"
	"slices"
	"strings"
)

// A SwitchPort is the physical switch port of a pNIC. The zero value is a port as the guides configure it: it trusts DSCP,
// pauses the host's lossless priorities, marks packets when its queue fills up, and passes 9216 bytes.
type SwitchPort struct {
	Leaf    string // name of the switch; "": leaf-01
	NoTrust bool   // moves every packet to priority 0 and sets its DSCP to 0
	NoPFC   bool   // sends no pause frames for any priority
	NoECN   bool   // does not mark packets that leave through it
	MTU     int    // bytes of the largest IP packet; 0: 9216
}

// Switch is the name of the switch.
func (p SwitchPort) Switch() string {
	if p.Leaf == "" {
		return "leaf-01"
	}
	return p.Leaf
}

// Largest is the largest IP packet that the port passes, in bytes.
func (p SwitchPort) Largest() int {
	if p.MTU == 0 {
		return 9216
	}
	return p.MTU
}

// PriorityCounters are what a port of a card has counted in one priority since boot.
type PriorityCounters struct {
	RxBytes, TxBytes     int64
	RxPackets, TxPackets int64
	RxPause, TxPause     int64
}

// PortQoS contains a guest's settings of a passed-through port; the zero value is the card's default.
type PortQoS struct {
	PFC          int      // mask of priorities
	Apps         [64]int8 // priority + 1 by DSCP; DSCP is trusted while one is there
	NPOff, RPOff int      // masks of priorities without ECN
}

// priorities is how many priorities Ethernet has.
const priorities = 8

// DSCPPriority returns the priority that a card assigns to a DSCP while it trusts it: the default map has eight values for each
// (NVIDIA, "Priority Flow Control (PFC)", Trust State).
func DSCPPriority(dscp int) int { return dscp / priorities % priorities }

// TrustsDSCP reports whether the driver of a pNIC takes the priority of a packet from its DSCP: trust_state=2 since the last boot
// (NVIDIA, "VMware ESXi native driver user manual", nmlx5_core module parameters).
func (h *Host) TrustsDSCP(p *PNIC) bool {
	if slices.Contains(h.Detached, p) {
		return p.Guest.Apps != [64]int8{}
	}
	m := h.Module(p.Driver)
	return m != nil && m.Parameter("trust_state") != nil && m.Parameter("trust_state").Active == "2"
}

// Priority returns the priority that a pNIC assigns to a DSCP while it trusts it.
func (h *Host) Priority(p *PNIC, dscp int) int {
	if slices.Contains(h.Detached, p) && p.Guest.Apps[dscp] > 0 {
		return int(p.Guest.Apps[dscp]) - 1
	}
	return DSCPPriority(dscp)
}

// Statistics are the counters of each priority as mlx5 and nmlx5 print them, a line each after indent (kernel mlx5 counters.rst).
func (p *PNIC) Statistics(indent string) string {
	var b strings.Builder
	for n, c := range p.Priorities {
		for _, row := range []struct {
			name  string
			value int64
		}{{"rx_prio%d_bytes", c.RxBytes}, {"rx_prio%d_packets", c.RxPackets}, {"tx_prio%d_bytes", c.TxBytes}, {"tx_prio%d_packets", c.TxPackets},
			{"rx_prio%d_pause", c.RxPause}, {"tx_prio%d_pause", c.TxPause}} {
			fmt.Fprintf(&b, indent+row.name+": %d\n", n, row.value)
		}
	}
	return b.String()
}

// AddPriority adds to a pNIC's counters of a priority.
func (w *World) AddPriority(host, pnic string, priority int, c PriorityCounters) {
	w.mu.Lock()
	defer w.mu.Unlock()
	h := w.state.Host(host)
	if h == nil {
		return
	}
	p := h.Port(pnic)
	if p == nil || priority < 0 || priority >= priorities {
		return
	}
	have := &p.Priorities[priority]
	have.RxBytes += c.RxBytes
	have.TxBytes += c.TxBytes
	have.RxPackets += c.RxPackets
	have.TxPackets += c.TxPackets
	have.RxPause += c.RxPause
	have.TxPause += c.TxPause
}

// Port finds a pNIC, also one that is passed through as a whole; nil when there is none.
func (h *Host) Port(device string) *PNIC {
	if p := h.PNIC(device); p != nil {
		return p
	}
	return find(h.Detached, func(p *PNIC) bool { return p.Device == device })
}
