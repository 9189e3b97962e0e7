package fabric

import (
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

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

// A Peer describes direct access between a GPU and a NIC of one VM, without the memory of the host.
type Peer struct {
	OK       bool    // direct access works; if false, the IOMMU blocks it
	Share    float64 // fraction of the NIC's rate with host memory
	Micros   float64 // added to the latency, in microseconds
	Distance world.Distance
	Why      string
}

// The rate of a card with GPU memory as a fraction of its rate with host memory. Below one PCIe switch both rates are nearly
// equal. Across root ports, reads are limited by the buffers of the processor; across sockets, by the link between them.
const (
	switchShare = 0.985
	treeShare   = 0.97
	portsShare  = 0.42
	socketShare = 0.16
	acsShare    = 0.45 // below one switch, if ACS redirects all requests to the root port
)

// peerToPeer is the first hardware version in which devices can access each other without a configuration key.
const peerToPeer = 22

// PeerOf computes how the GPU at a PCI address of the host accesses the port with a MAC address of the VM. The configuration
// keys are those of NVIDIA's GPU Operator guide: allowP2P maps the devices to each other, and RelaxACSforP2P lets a switch route
// requests directly between them.
func PeerOf(s *world.State, vm, gpu, mac string) Peer {
	v := s.VM(vm)
	if v == nil || s.Host(v.Host) == nil {
		return Peer{Why: "no such VM"}
	}
	h := s.Host(v.Host)
	nic := ""
	if p := s.WholeOf(v, mac); p != nil {
		nic = p.PCI
	} else if a := v.Adapter(mac); a != nil && a.Type == world.SRIOV {
		if p, _ := h.PortOf(a); p != nil {
			nic = p.PCI
		}
	}
	switch {
	case gpu == "":
		return Peer{Why: "there is no GPU"}
	case h.PCIDevice(gpu) != nil && !h.PCIDevice(gpu).PassthruActive && !vgpuPeers(h.PCIDevice(gpu).GPU, v):
		return Peer{Why: "GPUDirect RDMA is not supported with this vGPU"}
	case nic == "":
		return Peer{Why: "the adapter is no function of a card"}
	}
	p := Peer{Distance: h.Distance(gpu, nic)}
	if !strings.EqualFold(v.Setting("pciPassthru.allowP2P"), "TRUE") && v.Hardware < peerToPeer {
		p.Why = "pciPassthru.allowP2P is not TRUE"
		return p
	}
	p.OK = true
	near := p.Distance == world.OneSwitch || p.Distance == world.SwitchTree
	relaxed := strings.EqualFold(v.Setting("pciPassthru.RelaxACSforP2P"), "TRUE") || translated(h, nic)
	switch {
	case near && !relaxed:
		p.Share, p.Micros, p.Why = acsShare, 0.9, "pciPassthru.RelaxACSforP2P is not TRUE"
	case p.Distance == world.OneSwitch:
		p.Share, p.Micros = switchShare, 0.3
	case near:
		p.Share, p.Micros = treeShare, 0.4
	case p.Distance == world.RootPorts:
		p.Share, p.Micros, p.Why = portsShare, 1.1, "different root ports"
	default:
		p.Share, p.Micros, p.Why = socketShare, 2.6, "different sockets"
	}
	return p
}

// vgpuPeers reports whether a card can access the memory of a VM's vGPUs. This requires vGPUs of the C series on GPUs with
// SR-IOV, which are Ampere and later (NVIDIA AI Enterprise, "GPUDirect RDMA and GPUDirect Storage", vGPU support).
func vgpuPeers(g *world.GPU, v *world.VM) bool {
	if g == nil || slices.Contains([]string{"Kepler", "Maxwell", "Pascal", "Volta", "Turing"}, g.Architecture) {
		return false
	}
	return !slices.ContainsFunc(v.Devices, func(d *world.Passthrough) bool { return d.Profile != "" && !strings.HasSuffix(d.Profile, "c") })
}

// translated reports whether the card requests translated addresses from the IOMMU (ATS). A PCIe switch can then route its
// requests directly.
func translated(h *world.Host, nic string) bool {
	c := h.Card(nic)
	return c != nil && c.Setting("ATS_ENABLED") != nil && c.Setting("ATS_ENABLED").Current == 1
}
