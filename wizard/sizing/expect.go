package sizing

import "fmt"

// A Verdict is the result of judging a number.
type Verdict string

// The verdicts, with the same words as the statuses of checks.
const (
	Pass Verdict = "pass"
	Warn Verdict = "warn"
	Fail Verdict = "fail"
)

// Link is the known data about the path between two guests.
type Link struct {
	SpeedMbps int     // the slower of the two ports
	IBMTU     int     // active RDMA MTU, bytes
	VLAN      bool    // frames are tagged
	PCIeGbps  float64 // of the narrower slot; 0: unknown
	Hops      int     // switches after the first
}

// An Expectation is the expected result of a measurement, with the reason.
type Expectation struct {
	Gbps float64
	Why  string
}

// Expect computes the bandwidth in Gbps that a link allows: the smaller of link x goodput and 0.87 x PCIe. Goodput is
// mtu/(mtu+82): the headers of RoCEv2 (InfiniBand Architecture, Annex A17) and of Ethernet with its preamble and gap (IEEE
// 802.3). The factor of PCIe is an estimate of this project.
func Expect(l Link) Expectation {
	gbps := float64(l.SpeedMbps) / 1000
	net := gbps * Goodput(l.IBMTU, l.VLAN)
	why := fmt.Sprintf("%g Gbps x %.1f %% goodput at RDMA MTU %d", gbps, 100*Goodput(l.IBMTU, l.VLAN), l.IBMTU)
	if l.VLAN {
		why += " with a VLAN tag"
	}
	if slot := l.PCIeGbps * PCIeUsable; slot > 0 && slot < net {
		return Expectation{slot, fmt.Sprintf("%.0f %% of the slot's %.1f Gbps (%s would be %.1f)", 100*PCIeUsable, l.PCIeGbps, why, net)}
	}
	return Expectation{net, why}
}

// Bands are the limits for bandwidth (share of the link's speed, messages of 64 KiB to 1 MiB, one QP) and for latency (typical at
// 2 bytes, microseconds). The limits are this project's own choice.
type Bands struct {
	PassShare, WarnShare float64
	PassUs, WarnUs       float64
}

// BandsFor returns the bands of a mode: pvrdma has a software layer, sriov and gpudirect do not.
func BandsFor(mode string) Bands {
	if mode == "pvrdma" {
		return Bands{PassShare: 0.85, WarnShare: 0.5, PassUs: 8, WarnUs: 20}
	}
	return Bands{PassShare: 0.93, WarnShare: 0.80, PassUs: 3, WarnUs: 10}
}

// Bandwidth judges a result as a share of the link's negotiated speed.
func (b Bands) Bandwidth(achievedGbps float64, l Link) Verdict {
	speed := float64(l.SpeedMbps) / 1000
	if speed <= 0 {
		return Fail
	}
	switch share := achievedGbps / speed; {
	case share >= b.PassShare:
		return Pass
	case share >= b.WarnShare:
		return Warn
	}
	return Fail
}

// Latency judges the typical latency of the smallest message in microseconds; every further switch may add one microsecond.
func (b Bands) Latency(us float64, l Link) Verdict {
	more := float64(max(0, l.Hops))
	switch {
	case us <= b.PassUs+more:
		return Pass
	case us <= b.WarnUs+more:
		return Warn
	}
	return Fail
}
