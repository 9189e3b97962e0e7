package world

import (
	"fmt"
	"slices"
	"strings"
)

// A SwitchPort is the physical switch port of a pNIC. The zero value is a port that is configured as the guides recommend: it
// trusts DSCP, sends pause frames for the host's lossless priorities, marks packets when its queue fills up, and forwards
// packets of up to 9216 bytes.
type SwitchPort struct {
	Leaf    string // name of the switch; "": leaf-01
	NoTrust bool   // resets the priority and the DSCP of every packet to 0
	NoPFC   bool   // sends no pause frames for any priority
	NoECN   bool   // does not mark packets that it sends
	MTU     int    // size of the largest IP packet in bytes; 0: 9216
}

// Switch is the name of the switch.
func (p SwitchPort) Switch() string {
	if p.Leaf == "" {
		return "leaf-01"
	}
	return p.Leaf
}

// Largest returns the size in bytes of the largest IP packet that the port forwards.
func (p SwitchPort) Largest() int {
	if p.MTU == 0 {
		return 9216
	}
	return p.MTU
}

// PriorityCounters are the counters of a card's port for one priority since boot.
type PriorityCounters struct {
	RxBytes, TxBytes     int64
	RxPackets, TxPackets int64
	RxPause, TxPause     int64
}

// PortQoS contains a guest's QoS settings of a passed-through port; the zero value is the card's default.
type PortQoS struct {
	PFC          int      // mask of priorities with PFC
	Apps         [64]int8 // priority + 1 by DSCP; DSCP is trusted if there is an entry
	NPOff, RPOff int      // masks of priorities without ECN (notification point, reaction point)
}

// priorities is the number of Ethernet priorities.
const priorities = 8

// DSCPPriority returns the priority that a card assigns to a DSCP if it trusts DSCP. The default map assigns eight DSCP values
// to each priority (NVIDIA, "Priority Flow Control (PFC)", Trust State).
func DSCPPriority(dscp int) int { return dscp / priorities % priorities }

// TrustsDSCP reports whether the driver of a pNIC derives the priority of a packet from its DSCP: trust_state=2 since the last
// boot (NVIDIA, "VMware ESXi native driver user manual", nmlx5_core module parameters).
func (h *Host) TrustsDSCP(p *PNIC) bool {
	if slices.Contains(h.Detached, p) {
		return p.Guest.Apps != [64]int8{}
	}
	m := h.Module(p.Driver)
	return m != nil && m.Parameter("trust_state") != nil && m.Parameter("trust_state").Active == "2"
}

// Priority returns the priority that a pNIC assigns to a DSCP if it trusts DSCP.
func (h *Host) Priority(p *PNIC, dscp int) int {
	if slices.Contains(h.Detached, p) && p.Guest.Apps[dscp] > 0 {
		return int(p.Guest.Apps[dscp]) - 1
	}
	return DSCPPriority(dscp)
}

// Statistics returns the counters of each priority in the format of mlx5 and nmlx5, one per line, indented by indent (kernel
// mlx5 counters.rst).
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

// AddPriority adds c to the counters of one priority of a pNIC.
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

// Port returns a pNIC, including one that is passed through to a VM, or nil if there is none.
func (h *Host) Port(device string) *PNIC {
	if p := h.PNIC(device); p != nil {
		return p
	}
	return find(h.Detached, func(p *PNIC) bool { return p.Device == device })
}
