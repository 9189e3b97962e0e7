package fabric

import (
	"hash/fnv"
	"math"
	"strconv"
)

// Constants of the model. The shape of the curve over message sizes follows a measurement of a ConnectX-5 100G between VMs
// (VMware's RoCE SR-IOV study): 2.8 Gb/s at 64 B, 44 at 1 KiB, 88 at 4 KiB, 94 at 8 KiB, 96.7 from 64 KiB.
const (
	frameOverhead = 82    // bytes of a RoCE v2 packet in addition to its payload
	vlanTag       = 4     // bytes
	efficiency    = 0.985 // fraction of the wire rate
	knee          = 2.3   // steepness of the curve

	messageRate     = 5.4 // million messages per second
	fallbackRate    = 0.25
	fallbackGbps    = 22.0
	fallbackShare   = 0.9 // maximum fraction of the link rate
	memoryRate      = 4.0
	memoryGbps      = 64.0
	rdmaLatency     = 4.1 // microseconds, half the round trip of a small message
	vfLatency       = 2.0 // the same, between VFs
	fallbackLatency = 38.0
	memoryLatency   = 2.9
	copyLatency     = 0.6  // added for messages above the inline size
	inlineSize      = 220  // bytes
	jitter          = 0.01 // relative deviation of all results
	hopLatency      = 0.5  // for each further switch
	largeFrom       = 64 << 10
)

// Gbps returns the rate of a stream of messages of size bytes. share, in (0, 1], is its fraction of the port capacity. ibMTU is
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

// segment returns the TCP rate with small segments, relative to the rate with 9000-byte packets.
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

// Carries reports whether the switches forward the packets of an RDMA message of size bytes. Traffic of the TCP fallback, and on
// the same host, does not depend on the MTU of the fabric.
func (p Path) Carries(size, ibMTU int) bool {
	const headers = 44 // headers of IP, UDP, BTH and ICRC in the frame
	return p.SameHost || !p.RDMA || min(size, ibMTU)+headers <= p.MTU
}
