package fabric

import (
	"hash/fnv"
	"math"
	"strconv"
)

// The model's constants. The shape of the curve over message sizes follows the measurement of a ConnectX-5 100G
// between VMs (VMware's RoCE SR-IOV study): 2.8 Gb/s at 64 B, 44 at 1 KiB, 88 at 4 KiB, 94 at 8 KiB, 96.7 from 64 KiB.
const (
	frameOverhead = 82    // bytes of a RoCE v2 packet in addition to its payload
	vlanTag       = 4     // bytes
	efficiency    = 0.985 // fraction of the wire's capacity
	knee          = 2.3   // how sharply the curve bends

	messageRate     = 5.4 // million a second
	fallbackRate    = 0.25
	fallbackGbps    = 22.0
	fallbackShare   = 0.9 // maximum fraction of the link
	memoryRate      = 4.0
	memoryGbps      = 64.0
	rdmaLatency     = 4.1 // microseconds, half a round trip of a small message
	vfLatency       = 2.0 // likewise, between VFs
	fallbackLatency = 38.0
	memoryLatency   = 2.9
	copyLatency     = 0.6  // added above the inline size
	inlineSize      = 220  // bytes
	jitter          = 0.01 // of everything
	hopLatency      = 0.5  // of each further switch
	largeFrom       = 64 << 10
)

// Gbps returns the rate of a stream of messages of size bytes that has the given share (0 to 1] of the ports. ibMTU is
// the active MTU that both ends agreed on. salt makes runs differ slightly, but reproducibly.
func (p Path) Gbps(size, ibMTU int, share float64, salt string) float64 {
	top, rate := 0.0, messageRate
	switch {
	case !p.Reachable:
		return 0
	case p.SameHost:
		top, rate = memoryGbps, memoryRate
	case !p.RDMA:
		top, rate = min(fallbackGbps*segment(p.MTU), fallbackShare*float64(p.LinkMbps)/1000), fallbackRate
	default:
		overhead := frameOverhead
		if p.Tagged {
			overhead += vlanTag
		}
		top = efficiency * float64(p.LinkMbps) / 1000 * float64(ibMTU) / float64(ibMTU+overhead)
		if p.Small > 0 {
			rate *= p.Small
		}
		if p.Large > 0 && size > largeFrom {
			top *= p.Large
		}
	}
	top *= share
	if p.SlotGbps > 0 && p.RDMA && !p.SameHost {
		top = min(top, p.SlotGbps)
	}
	bound := rate * float64(size) * 8 / 1000
	got := math.Pow(math.Pow(bound, -knee)+math.Pow(top, -knee), -1/knee)
	return got * wobble(salt, size)
}

// segment returns the TCP rate with small segments, relative to 9000-byte packets.
func segment(mtu int) float64 { return min(1, 0.55+0.05*float64(mtu)/1000) }

// Latency returns half the round trip of a message of size bytes in microseconds.
func (p Path) Latency(size, ibMTU int, share float64, salt string) float64 {
	base := rdmaLatency
	switch {
	case p.SameHost:
		base = memoryLatency
	case !p.RDMA:
		base = fallbackLatency
	case p.VF:
		base = vfLatency
	}
	if size > inlineSize {
		base += copyLatency
	}
	base += hopLatency * float64(p.Hops)
	transfer := float64(size) * 8 / 1000 / max(p.Gbps(1<<20, ibMTU, share, salt), 0.001)
	return (base + transfer) * wobble(salt+"lat", size)
}

// wobble returns 1 with a small deviation that depends only on its arguments.
func wobble(salt string, size int) float64 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(salt + "/" + strconv.Itoa(size)))
	return 1 + jitter*(float64(h.Sum32()%2000)/1000-1)/2
}

// Carries reports whether packets of an RDMA message of size bytes pass the switches. Traffic of the TCP fallback, and on the
// same host, does not depend on the fabric's frame size.
func (p Path) Carries(size, ibMTU int) bool {
	const headers = 44 // IP, UDP, BTH and ICRC inside the frame
	return p.SameHost || !p.RDMA || min(size, ibMTU)+headers <= p.MTU
}
