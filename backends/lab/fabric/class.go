package fabric

import "github.com/rdma-setup/rdma-setup/backends/lab/world"

// A Flow describes the traffic that one test has sent.
type Flow struct {
	TrafficClass   int // byte of the IP header: DSCP << 2 | ECN
	Bytes, Packets int64
	Crowd          float64 // fraction of the time in which other ports sent to the same receiver
}

// An Effect describes what happens to a flow in the queues of the switch, as the counters of both ends show it.
type Effect struct {
	SentIn, ArrivedIn int   // priorities in which the cards of the sender and the receiver count the flow
	Paused            int64 // pause frames of priority SentIn that stopped the sender
	Lost              int64 // packets dropped by the switch
	Marked            int64 // packets marked with "congestion experienced"
	Left              float64
}

// Fractions of the packets of a flow to a congested port. These are estimates of this project. DCQCN slows senders down before
// the buffer is full, so pause frames are rare if the switch marks packets (Zhu et al., "Congestion Control for Large-Scale RDMA
// Deployments", SIGCOMM 2015).
const (
	markedPart      = 1.0 / 40
	pausedPart      = 1.0 / 20
	pausedPartWith  = 1.0 / 400 // with ECN
	lostPart        = 1.0 / 50
	lostPartWith    = 1.0 / 500
	leftAfterPauses = 0.97
	leftAfterLoss   = 0.45 // go-back-N sends a window again for each lost packet
)

// Transmit computes what happens to a flow from the first to the second port of the path. The sender's card sets the priority of
// a packet. The packet keeps its priority at the switch if the sender's switch port trusts DSCP; otherwise the switch moves it
// to priority 0 and clears its DSCP (Cisco, "Configuring QoS", untrusted ports). If a queue fills up, the switch pauses the
// priority at the ingress port (IEEE 802.1Qbb). If the priority is not paused there, or the card ignores pause frames, packets
// are dropped.
func (p Path) Transmit(s *world.State, f Flow) Effect {
	e := Effect{Left: 1}
	if len(p.Ports) < 2 {
		return e
	}
	from, to := s.Host(p.Ports[0].Host), s.Host(p.Ports[1].Host)
	a, b := from.Port(p.Ports[0].PNIC), to.Port(p.Ports[1].PNIC)
	if a == nil || b == nil {
		return e
	}
	dscp := f.TrafficClass >> 2
	if from.TrustsDSCP(a) {
		e.SentIn = from.Priority(a, dscp)
	}
	within := e.SentIn
	if a.Cable.NoTrust {
		dscp, within = 0, 0
	}
	if to.TrustsDSCP(b) {
		e.ArrivedIn = to.Priority(b, dscp)
	}
	if f.Crowd <= 0 {
		return e
	}
	part := func(share float64) int64 { return max(1, int64(f.Crowd*share*float64(f.Packets))) }
	ecn := f.TrafficClass&3 != 0 && !b.Cable.NoECN && !a.Cable.NoTrust // the queue of priority 0 does not mark packets
	if ecn {
		e.Marked = part(markedPart)
	}
	obeys, _ := from.Pause(a)
	lossless := !a.Cable.NoPFC && (from.PFC(a)>>within&1 == 1 || obeys)
	switch {
	case lossless && ecn:
		e.Paused, e.Left = part(pausedPartWith), leftAfterPauses
	case lossless:
		e.Paused, e.Left = part(pausedPart), leftAfterPauses
	case ecn:
		e.Lost, e.Left = part(lostPartWith), 1-f.Crowd*(1-leftAfterLoss)
	default:
		e.Lost, e.Left = part(lostPart), 1-f.Crowd*(1-leftAfterLoss)
	}
	return e
}

// Count adds the effect of a flow to the port counters of both cards.
func (p Path) Count(w *world.World, f Flow, e Effect) {
	if len(p.Ports) < 2 {
		return
	}
	from, to := p.Ports[0], p.Ports[1]
	w.AddPriority(from.Host, from.PNIC, e.SentIn, world.PriorityCounters{TxBytes: f.Bytes, TxPackets: f.Packets, RxPause: e.Paused})
	w.AddPriority(to.Host, to.PNIC, e.ArrivedIn, world.PriorityCounters{RxBytes: f.Bytes, RxPackets: f.Packets - e.Lost})
}
