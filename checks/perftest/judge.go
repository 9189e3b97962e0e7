package perftest

import (
	"fmt"
	"strings"

	"github.com/rdma-setup/rdma-setup/wizard/sizing"
)

// Fabric is the known data about the path between two nodes besides the measurement itself.
type Fabric struct {
	SameHost  bool
	NoHCA     []string // which of the two hosts have no RDMA card
	LinkMbps  int      // the slower of the two host ports; 0 unknown
	VLAN      bool     // frames are tagged
	Hops      int      // switches after the first
	Slot      Slot     // the narrower PCIe slot of the two host ports
	LatencyUs float64  // measured latency of the smallest message between the two; 0 unknown
	Counted   bool     // Packets is known
	Packets   int64    // increase of the RDMA counters of the client's host during the test
}

// link returns the known facts of the path for an IB MTU in bytes.
func (f Fabric) link(ibMTU int) sizing.Link {
	return sizing.Link{SpeedMbps: f.LinkMbps, IBMTU: ibMTU, VLAN: f.VLAN, PCIeGbps: f.Slot.Gbps(), Hops: f.Hops}
}

// A Slot is the PCIe link of a host port; the zero Slot is unknown.
type Slot struct {
	Host, Device string
	Gen, Lanes   int
}

// Gbps returns the capacity of the slot in one direction; 0 unknown.
func (s Slot) Gbps() float64 { return sizing.PCIeGbps(s.Gen, s.Lanes) }

// narrower returns the slot with the lower capacity; an unknown slot counts as unlimited.
func (s Slot) narrower(t Slot) Slot {
	if t.Gbps() > 0 && (s.Gbps() == 0 || t.Gbps() < s.Gbps()) {
		return t
	}
	return s
}

// Judge sets verdict, expectation and hint of a measurement that has rows. Bandwidth is the best average from 64 KiB to 1 MiB
// compared with the link's speed less RoCE v2's headers; latency is the typical value of the smallest message. The shape of the
// curve over all sizes is judged too; the worse of the two verdicts counts.
func Judge(m *Measurement, mode string, f Fabric) {
	b := sizing.BandsFor(mode)
	link := f.link(m.MTU)
	m.LinkGbps, m.Verdict, m.Hint = float64(f.LinkMbps)/1000, VerdictUnknown, ""
	var level sizing.Verdict
	if m.isLatency() {
		first := m.smallest()
		m.AchievedUs, m.ExpectedUs = first.TypicalUs, b.PassUs+float64(f.Hops)
		m.Why = fmt.Sprintf("the expected latency of %s is at most %.0f us", mode, b.PassUs)
		if f.Hops > 0 {
			m.Why += fmt.Sprintf(", 1 us more for each of %d further switches", f.Hops)
		}
		if first.Bytes <= smallMost {
			level = b.Latency(m.AchievedUs, link)
		}
	} else {
		m.AchievedGbps = sizing.Plateau(samples(m.Rows))
		if f.LinkMbps > 0 {
			want := sizing.Expect(link)
			m.ExpectedGbps, m.Why = want.Gbps*factor(m.Test), want.Why
			if bothDirections(m.Test) {
				m.Why += fmt.Sprintf(", both ways %.1f times that", bothWays)
			}
			if sizing.Fills(samples(m.Rows)) {
				level = b.Bandwidth(m.AchievedGbps/factor(m.Test), link)
			}
		}
	}
	shape := sizing.Worst(m.shape(b, link, f.LatencyUs))
	switch {
	case len(f.NoHCA) > 0:
		m.instead(f)
		return
	case f.SameHost:
		m.Verdict, m.ExpectedGbps, m.ExpectedUs, m.Why = VerdictNotApplicable, 0, 0, "both on one host: this is memory, not the fabric"
		m.Hint = "move one of the VMs to another host to measure the fabric"
		return
	case m.isLatency() && m.AchievedUs <= 0:
		m.Hint = "the test printed no typical latency"
	case level == "" && shape.Verdict != sizing.Fail && m.isLatency():
		m.Hint = "these messages are too large to show the latency: measure every size with -a"
	case level == "" && shape.Verdict != sizing.Fail && f.LinkMbps > 0:
		m.Hint = "these messages are too small to fill the link: measure every size with -a"
	case level == "" && shape.Verdict != sizing.Fail:
		m.Hint = "the speed of the host port is not known"
	case !m.isLatency() && f.LinkMbps > 0 && m.AchievedGbps > m.LinkGbps*directions(m.Test):
		m.Hint = fmt.Sprintf(
			"%.1f Gb/s is more than a link of %g Gb/s carries: not a measurement of this link; check the speed of both host ports", m.AchievedGbps,
			m.LinkGbps)
	default:
		m.Verdict = Verdict(level)
		m.slotLimits(f.Slot, b, link)
		if rank(shape.Verdict) >= rank(sizing.Verdict(m.Verdict)) {
			m.Verdict, m.Hint = Verdict(shape.Verdict), shape.Hint
		}
	}
	fallback(m, mode, f)
	hint(m, f, b)
}

// smallMost is the largest size, in bytes, of a small message: beyond it the transfer time dominates.
const smallMost = 256

// smallest returns the row of the smallest message that was timed; if none was, the first.
func (m *Measurement) smallest() Row {
	at := 0
	for i, r := range m.Rows {
		if r.TypicalUs > 0 && (m.Rows[at].TypicalUs <= 0 || r.Bytes < m.Rows[at].Bytes) {
			at = i
		}
	}
	return m.Rows[at]
}

// rank orders verdicts, the worst highest; an unknown one is below all.
func rank(v sizing.Verdict) int {
	return map[sizing.Verdict]int{sizing.Pass: 1, sizing.Warn: 2, sizing.Fail: 3}[v]
}

func (m *Measurement) isLatency() bool {
	tool, _, _ := strings.Cut(m.Test, " ")
	return strings.HasSuffix(tool, "_lat")
}

// shape returns the anomalies of the curve over message sizes, and contradictory figures.
func (m *Measurement) shape(b sizing.Bands, link sizing.Link, latencyUs float64) []sizing.Fault {
	if m.isLatency() {
		return b.LatencyShape(samples(m.Rows), link)
	}
	gbps := m.AchievedGbps
	if bothDirections(m.Test) {
		gbps /= 2
	}
	return append(sizing.AboveHeaders(gbps, link), b.BandwidthShape(samples(m.Rows), latencyUs)...)
}

// misshapen reports whether the curve fails because of its shape, whatever its level.
func (m *Measurement) misshapen(mode string) bool {
	return sizing.Worst(m.shape(sizing.BandsFor(mode), sizing.Link{}, 0)).Verdict == sizing.Fail
}

func samples(rows []Row) []sizing.Sample {
	out := make([]sizing.Sample, len(rows))
	for i, r := range rows {
		out[i] = sizing.Sample{Bytes: r.Bytes, Iterations: r.Iterations, Gbps: r.AvgGbps, Us: r.TypicalUs, P99Us: r.P99Us, P999Us: r.P999Us}
	}
	return out
}

// slotLimits names the PCIe slot if it explains a bandwidth below the link's.
func (m *Measurement) slotLimits(s Slot, b sizing.Bands, link sizing.Link) {
	wide := link
	wide.PCIeGbps = 0
	want := sizing.Expect(link).Gbps
	if m.Verdict == VerdictPass || m.isLatency() || want <= 0 || want >= sizing.Expect(wide).Gbps ||
		m.AchievedGbps/factor(m.Test) < b.WarnShare*want {
		return
	}
	m.Verdict = VerdictWarn
	m.Hint = fmt.Sprintf(
		"the PCIe slot limits the bandwidth: %s of %s runs as Gen%d x%d, which carries %.1f Gb/s for a link of %g; move the card to a "+
			"wider slot, or check lanes and bifurcation in the BIOS",
		s.Device, s.Host, s.Gen, s.Lanes, s.Gbps(), m.LinkGbps)
}

// bothWays is the factor for both directions together if slot and CPU are no limit (PAIR-BW-BIDIR-007).
const bothWays = 1.8

// factor returns the expected factor of a test over one direction.
func factor(test string) float64 {
	if bothDirections(test) {
		return bothWays
	}
	return 1
}

// directions returns in how many directions a test sends.
func directions(test string) float64 {
	if bothDirections(test) {
		return 2
	}
	return 1
}

// bothFlag is perftest's option for both directions at once.
const bothFlag = " -b"

func bothDirections(test string) bool { return strings.HasSuffix(test, bothFlag) }

// slowShare of the expected bandwidth is the limit below which large messages visibly take longer; chosen by this project.
const slowShare = 0.8

// compare reports a single queue pair that is slow although several are not: then the path is not the cause. It also reports large
// messages whose latency follows from the bandwidth.
func compare(all []Measurement, mode string) {
	many, slow := map[string]Measurement{}, map[string]bool{}
	for _, m := range all {
		if m.Test == SendBandwidth && m.Error == "" && (m.Verdict == VerdictWarn || m.Verdict == VerdictFail) &&
			m.AchievedGbps < m.ExpectedGbps*slowShare {
			slow[m.Pair()] = true
		}
		if m.Test == SendManyQPs && m.Verdict == VerdictPass {
			many[m.Pair()] = m
		}
	}
	for i := range all {
		m := &all[i]
		if m.Test == SendLatency && m.Error == "" && m.Beside() == "" && m.Verdict != VerdictPass && slow[m.Pair()] &&
			m.AchievedUs <= m.ExpectedUs && m.lossless() {
			m.Hint = "small messages are fast enough; large ones are limited by the bandwidth of this pair: see " + SendBandwidth
		}
		best, ok := many[m.Pair()]
		if ok && (m.Test == SendBandwidth || m.Test == WriteBandwidth) && m.Error == "" && !m.misshapen(mode) &&
			(m.Verdict == VerdictWarn || m.Verdict == VerdictFail || m.Verdict == VerdictUnknown && m.Beside() != "") {
			m.Verdict = VerdictWarn
			m.Hint = fmt.Sprintf("one queue pair does not fill this link, but four do (%.1f Gb/s): the path is fine, let applications use several",
				best.AchievedGbps)
		}
	}
}

// fallback detects PVRDMA that silently used TCP: the counters of the host's RDMA device do not increase under load. Bandwidth
// alone proves nothing, because TCP can fill most of a 25G link.
func fallback(m *Measurement, mode string, f Fabric) {
	switch {
	case mode != "pvrdma":
	case f.Counted && f.Packets == 0:
		m.Verdict = VerdictFail
		m.Hint = "TCP fallback: the RDMA counters of " + m.FromHost +
			" did not change during the test; check the uplink, the firewall ruleset pvrdma and Net.PVRDMAVmknic on both hosts"
	case !f.Counted && m.AchievedUs > 20 && m.smallest().Bytes <= smallMost:
		m.Hint = "probably TCP fallback (the RDMA counters cannot be read): check the uplink, the firewall ruleset pvrdma and Net.PVRDMAVmknic " +
			"on both hosts"
	}
}

// lossless reports whether counters of lost packets were read at both ends and show none.
func (m *Measurement) lossless() bool {
	lost, _, _ := m.Lost()
	return m.lossReadAtBothEnds() && lost == 0
}

// slotOf returns the PCIe link whose capacity is close to a bandwidth; "" if there is none.
func slotOf(gbps float64) string {
	for _, lanes := range []int{1, 2, 4, 8, 16} {
		if raw := sizing.PCIeGbps(3, lanes); gbps <= raw && gbps >= 0.98*sizing.PCIeUsable*raw {
			if lanes == 1 {
				return fmt.Sprintf(" (%.1f Gb/s is about what Gen3 x1 carries)", gbps)
			}
			return fmt.Sprintf(" (%.1f Gb/s is about what Gen3 x%d or Gen4 x%d carries)", gbps, lanes, lanes/2)
		}
	}
	return ""
}

// hint names the likely cause of a bad figure.
func hint(m *Measurement, f Fabric, b sizing.Bands) {
	if m.Hint != "" || m.Verdict == VerdictPass || f.LinkMbps == 0 {
		return
	}
	share := m.AchievedGbps / factor(m.Test) / float64(f.LinkMbps) * 1000
	switch {
	case m.AchievedUs > 0:
		m.Hint = "check the power policy, latency sensitivity, and whether RDMA is used at all"
	case m.MTU > 0 && m.MTU < 4096:
		m.Hint = fmt.Sprintf("the path runs with an IB MTU of %d: raise the Ethernet MTU to 9000 on switch, DVS and guest", m.MTU)
	case m.MTU == 0 && share > 0.90 && share < b.PassShare:
		m.Hint = "about 92 % is typical of an active MTU of 1024: raise the Ethernet MTU on every hop"
	case m.MTU >= 4096 && share < b.WarnShare && m.lossless():
		m.Hint = "no packet was lost: check for a narrow PCIe slot in either host" + slotOf(m.AchievedGbps/factor(m.Test)) +
			", or other traffic during the test"
	case m.MTU >= 4096 && share < b.WarnShare:
		m.Hint = "check for loss (PFC, ECN), a narrow PCIe slot, or other traffic during the test"
	default:
		m.Hint = "check PCIe width, NUMA placement and power policy of both hosts"
	}
}
