package perftest

import (
	"fmt"

	"github.com/rdma-setup/rdma-setup/wizard/sizing"
)

// Fabric is what is known of the way between two nodes besides the measurement itself.
type Fabric struct {
	SameHost bool
	LinkMbps int   // the slower of the two host ports; 0 unknown
	VLAN     bool  // frames carry a tag
	Counted  bool  // Packets is known
	Packets  int64 // how far the RDMA counters of the client's host moved during the test
}

// Judge fills verdict, expectation and hint of a measurement that has rows. Bandwidth is the best average from 64 KiB
// to 1 MiB against the link's speed less RoCE v2's headers; latency is the typical value of the smallest message.
func Judge(m *Measurement, mode string, f Fabric) {
	b := sizing.BandsFor(mode)
	link := sizing.Link{SpeedMbps: f.LinkMbps, IBMTU: m.MTU, VLAN: f.VLAN}
	test, _ := fromContainer(m.Test)
	latency := test == SendLatency
	m.LinkGbps = float64(f.LinkMbps) / 1000
	if latency {
		m.AchievedUs, m.ExpectedUs = m.Rows[0].TypicalUs, b.PassUs
		m.Why = fmt.Sprintf("%s is expected to answer within %.0f us", mode, b.PassUs)
	} else {
		m.AchievedGbps = plateau(m.Rows)
		if f.LinkMbps > 0 {
			want := sizing.Expect(link)
			m.ExpectedGbps, m.Why = want.Gbps*factor(m.Test), want.Why
			if m.Test == SendBothWays {
				m.Why += fmt.Sprintf(", both ways %.1f times that", bothWays)
			}
		}
	}
	switch {
	case f.SameHost:
		m.Verdict, m.ExpectedGbps, m.ExpectedUs, m.Why = VerdictNotApplicable, 0, 0, "both on one host: this is memory, not the fabric"
		m.Hint = "move one of the VMs to another host to measure the fabric"
	case latency && m.AchievedUs <= 0:
		m.Verdict, m.Hint = VerdictUnknown, "the test printed no typical latency"
	case latency:
		m.Verdict = Verdict(b.Latency(m.AchievedUs, link))
	case m.ExpectedGbps == 0:
		m.Verdict, m.Hint = VerdictUnknown, "the speed of the host port is not known"
	default:
		m.Verdict = Verdict(b.Bandwidth(m.AchievedGbps/factor(m.Test), link))
	}
	if m.Verdict != VerdictNotApplicable {
		fallback(m, mode, f)
		hint(m, f, b)
	}
}

// bothWays is what both directions together give where slot and CPU are no limit (PAIR-BW-BIDIR-007).
const bothWays = 1.8

// factor is how much more than one direction a test is expected to give.
func factor(test string) float64 {
	if test == SendBothWays {
		return bothWays
	}
	return 1
}

// compare tells of one queue pair that is slow where several are not: the path is sound then.
func compare(all []Measurement) {
	many := map[[2]string]Measurement{}
	for _, m := range all {
		if m.Test == SendManyQPs && m.Verdict == VerdictPass {
			many[[2]string{m.From, m.To}] = m
		}
	}
	for i := range all {
		m := &all[i]
		best, ok := many[[2]string{m.From, m.To}]
		if ok && (m.Test == SendBandwidth || m.Test == WriteBandwidth) && (m.Verdict == VerdictWarn || m.Verdict == VerdictFail) && m.Error == "" {
			m.Verdict = VerdictWarn
			m.Hint = fmt.Sprintf("one queue pair does not fill this link, four do (%.1f Gb/s): the path is sound, let applications open several", best.AchievedGbps)
		}
	}
}

// plateau is the best average between 64 KiB and 1 MiB; where no such row was measured, the best of all.
func plateau(rows []Row) float64 {
	best, any := 0.0, 0.0
	for _, r := range rows {
		any = max(any, r.AvgGbps)
		if r.Bytes >= 64<<10 && r.Bytes <= 1<<20 {
			best = max(best, r.AvgGbps)
		}
	}
	if best == 0 {
		return any
	}
	return best
}

// fallback notices PVRDMA that silently took TCP: the counters of the host's RDMA device stand still under load.
// Bandwidth alone proves nothing, because TCP can fill most of a 25G link.
func fallback(m *Measurement, mode string, f Fabric) {
	switch {
	case mode != "pvrdma":
	case f.Counted && f.Packets == 0:
		m.Verdict = VerdictFail
		m.Hint = "TCP fallback: the RDMA counters of " + m.FromHost + " stood still during the test; look at the uplink, the firewall ruleset pvrdma and Net.PVRDMAVmknic on both hosts"
	case !f.Counted && m.AchievedUs > 20:
		m.Hint = "probably TCP fallback (the RDMA counters cannot be read): look at the uplink, the firewall ruleset pvrdma and Net.PVRDMAVmknic on both hosts"
	}
}

// hint names the likely cause of a figure that is not good.
func hint(m *Measurement, f Fabric, b sizing.Bands) {
	if m.Hint != "" || m.Verdict == VerdictPass || f.LinkMbps == 0 {
		return
	}
	share := m.AchievedGbps / factor(m.Test) / float64(f.LinkMbps) * 1000
	switch {
	case m.AchievedUs > 0:
		m.Hint = "look at the power policy, latency sensitivity, and whether RDMA is used at all"
	case m.MTU > 0 && m.MTU < 4096:
		m.Hint = fmt.Sprintf("the path runs with an IB MTU of %d: raise the Ethernet MTU to 9000 on switch, DVS and guest", m.MTU)
	case share > 0.90 && share < b.PassShare:
		m.Hint = "about 92 % is what an active MTU of 1024 gives: raise the Ethernet MTU on every hop"
	case m.MTU >= 4096 && share < b.WarnShare:
		m.Hint = "look for loss (PFC, ECN), a narrow PCIe slot, or traffic beside the test"
	default:
		m.Hint = "look at PCIe width, NUMA placement and power policy of both hosts"
	}
}
