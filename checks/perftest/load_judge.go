package perftest

import (
	"fmt"

	"github.com/rdma-setup/rdma-setup/wizard/sizing"
)

// Shares by which a flow under load is judged; chosen by this project.
const (
	fairShare     = 0.5  // of each sender's fair share
	collapseShare = 0.7  // of the expected sum at the receiver's port
	stuckShare    = 0.02 // of the fair share: no progress
	stormFrames   = 1000 // number of pause frames from which a standstill is a pause storm
	apartShare    = 1.02 // of the capacity of the receiver's port: flows with a higher sum did not all send at the same time
)

// judgeLoad judges the flows of a round: each against its fair share of the receiver's port, the class, and losslessness by the
// counters. stalled are the flows that were interrupted while sending: their counters count like those of the others.
func (r *Runner) judgeLoad(round []Pair, flows []Measurement, stalled []bool) {
	sums, offered := map[string]float64{}, map[string]float64{} // per port: what arrived, and what the senders' links allow
	for i, p := range round {
		m := &flows[i]
		offered[p.Server.hostPort()] += sizing.Expect(p.fabric().link(m.MTU)).Gbps
		if m.Error == "" && len(m.Rows) > 0 {
			m.AchievedGbps = m.Rows[len(m.Rows)-1].AvgGbps
			sums[p.Server.hostPort()] += m.AchievedGbps
		}
	}
	for i, p := range round {
		m := &flows[i]
		f := p.fabric()
		if m.Error != "" {
			if r.Class != nil {
				m.Class, m.Lossless = &Proof{VerdictUnknown, notProven + "the test was interrupted", ""}, m.proveBroken(*r.Class, p, stalled[i])
			}
			continue
		}
		m.LinkGbps, m.Verdict = float64(f.LinkMbps)/1000, VerdictUnknown
		if f.LinkMbps > 0 {
			want := sizing.Expect(f.link(m.MTU))
			port := sizing.Expect(sizing.Link{SpeedMbps: p.Server.LinkMbps, IBMTU: m.MTU, VLAN: f.VLAN}) // the receiver's
			m.ExpectedGbps, m.Why = want.Gbps, want.Why
			if fair := port.Gbps / float64(m.Senders); fair < m.ExpectedGbps {
				m.ExpectedGbps = fair
				m.Why = port.Why + fmt.Sprintf(", shared by %d senders", m.Senders)
			}
			m.judgeShare(sums[p.Server.hostPort()], min(port.Gbps, offered[p.Server.hostPort()]), port.Gbps)
		} else {
			m.Hint = "the speed of the host port is not known"
		}
		if r.Class == nil {
			if lost, counter, _ := m.senderLost(); lost > 0 {
				m.Verdict = VerdictWarn
				m.Hint = fmt.Sprintf("%s: packets of %s were lost (%s +%d), and no lossless class is configured: set qos.lossless", m.summary(), m.From,
					counter, lost)
			}
			continue
		}
		m.Class, m.Lossless = m.proveClass(*r.Class), m.proveLoaded(*r.Class, p)
		m.ClassProven = m.Class.Verdict == VerdictPass
		if m.Class.Verdict == VerdictFail { // losses in another class are a consequence
			m.Verdict, m.Hint = VerdictFail, m.Class.Evidence+"; "+m.Class.Hint
			if m.Lossless.Verdict == VerdictFail {
				m.Lossless.Hint = "traffic outside the class is never paused: " + m.Class.Hint
			}
		} else if m.Lossless.Verdict == VerdictFail {
			m.Verdict, m.Hint = VerdictFail, m.Lossless.Evidence+"; "+m.Lossless.Hint
		} else if m.Verdict == VerdictPass && m.Class.Hint != "" && m.Class.Verdict == VerdictUnknown {
			m.Verdict, m.Hint = VerdictWarn, m.Class.Evidence+"; "+m.Class.Hint
		} else if (m.Verdict == VerdictPass || m.Apart) && m.unmarked(*r.Class) {
			m.Verdict = VerdictWarn
			m.Hint = fmt.Sprintf(
				"%s: the sender was paused, but %s received no packet marked by ECN: ECN is configured but not active; enable ECN marking "+
					"of priority %d on the switch ports", m.summary(), m.To, r.Class.Priority)
		}
	}
}

// judgeShare judges a flow's share of its receiver's port: sum is the measured total of all its senders, total the expected one,
// and carried the capacity of the port. perftest measures each flow over its own time, so a sum above the capacity means that
// they did not overlap.
func (m *Measurement) judgeShare(sum, total, carried float64) {
	m.Verdict = VerdictWarn
	switch {
	case m.Senders > 1 && sum > apartShare*carried:
		m.Verdict, m.Apart = VerdictUnknown, true
		m.Hint = fmt.Sprintf(
			"inconclusive: %s show %.1f Gb/s together, more than the %.1f that the port of %s can carry: not all flows ran at the same time; "+
				"repeat the load",
			m.summary(), sum, carried, m.ToHost)
	case m.Senders > 1 && sum < collapseShare*total && m.AchievedGbps >= fairShare*sum/float64(m.Senders):
		m.Hint = fmt.Sprintf(
			"%s: %s takes %.1f of %.1f Gb/s from all senders together, and none of them stands out: check the port and the PCIe slot of %s",
			m.summary(), m.To, sum, total, m.ToHost)
	case m.AchievedGbps < fairShare*m.ExpectedGbps:
		m.Hint = fmt.Sprintf("%s: %s gets %.1f of a fair share of %.1f Gb/s; check for loss or pause frames at the port of %s", m.summary(),
			m.From, m.AchievedGbps, m.ExpectedGbps, m.FromHost)
	case sum < collapseShare*total:
		m.Hint = fmt.Sprintf("%s: %s takes %.1f of %.1f Gb/s from all senders together", m.summary(), m.To, sum, total)
	default:
		m.Verdict = VerdictPass
	}
}

// unmarked reports whether the class uses ECN, the sender was paused, and its receiver saw no marks.
func (m *Measurement) unmarked(c Class) bool {
	if c.TrafficClass&3 == 0 || m.Counters == nil || m.Counters.From.paused(c.Priority) == 0 {
		return false
	}
	marks, read := m.Counters.To["np_ecn_marked_roce_packets"]
	return read && marks == 0
}

// proveLoaded judges losslessness of several simultaneous senders by the counters. Pause frames at the sender without loss prove
// it; neither proves nothing; loss without pause frames means that a port does not pause; a standstill with pause frames suggests
// a PFC deadlock (Guo et al., "RDMA over Commodity Ethernet at Scale", SIGCOMM 2016, sections 4.2 and 4.3).
func (m *Measurement) proveLoaded(c Class, p Pair) *Proof {
	lost, counter, ok := m.senderLost()
	paused := int64(0)
	if m.Counters != nil {
		paused = m.Counters.From.paused(c.Priority)
	}
	pair := m.From + " -> " + m.To
	switch {
	case paused >= stormFrames && (m.Error != "" || m.ExpectedGbps > 0 && m.AchievedGbps < stuckShare*m.ExpectedGbps):
		return &Proof{VerdictFail, fmt.Sprintf("%s made no progress while %s received %d pause frames of priority %d", pair, m.FromHost, paused,
			c.Priority),
			"a PFC deadlock is suspected: check for a loop of pauses between switches and for a card that pauses permanently, and enable the PFC " +
				"watchdog of the switches"}
	case lost > 0 && !m.Counters.From.pauseRead(c.Priority):
		return &Proof{VerdictFail, fmt.Sprintf("%s lost packets (%s +%d); pause frames that %s received could not be read", pair, counter, lost,
			m.FromHost),
			fmt.Sprintf("check PFC of priority %d and trust of DSCP at both ends of the cable of %s %s, and the headroom of the switch", c.Priority,
				p.Client.Host, p.Client.Port)}
	case lost > 0 && paused == 0:
		return &Proof{VerdictFail, fmt.Sprintf("%s lost packets (%s +%d) and %s received no pause frame of priority %d", pair, counter, lost,
			m.FromHost, c.Priority),
			"PFC is not active " + p.unpaused(c) + ", or that port does not trust DSCP"}
	case lost > 0:
		return &Proof{VerdictFail, fmt.Sprintf("%s lost packets (%s +%d) although %s received %d pause frames of priority %d", pair, counter,
			lost, m.FromHost, paused, c.Priority),
			"check the headroom of the lossless buffers, and PFC on the hops beyond the first switch"}
	case !ok:
		return &Proof{VerdictUnknown, "lossless not proven: the counters of lost packets of " + m.From + " could not be read", ""}
	case paused > 0:
		return &Proof{VerdictPass, fmt.Sprintf("%s: %s received %d pause frames of priority %d and nothing was lost", m.summary(), m.FromHost,
			paused, c.Priority), ""}
	}
	why := "ECN or deep buffers absorbed it"
	if m.Apart {
		why = "not all flows ran at the same time"
	} else if !m.Counters.From.pauseRead(c.Priority) {
		why = "pause frames that " + m.FromHost + " received could not be read"
	}
	return &Proof{VerdictUnknown, "lossless not proven: " + m.summary() + " neither paused nor lost anything: " + why, ""}
}

// proveBroken judges an interrupted flow: losses and a standstill under pause frames explain it, and nothing is proven if neither
// was counted.
func (m *Measurement) proveBroken(c Class, p Pair, stalled bool) *Proof {
	proof := &Proof{VerdictUnknown, "lossless not proven: the test of " + m.From + " was interrupted", ""}
	if !stalled {
		return proof
	}
	if seen := m.proveLoaded(c, p); seen.Verdict == VerdictFail {
		proof, m.Hint = seen, seen.Evidence+"; "+seen.Hint
	}
	return proof
}

// unpaused says where PFC is missing, according to the DCB state of the sender's host port.
func (p Pair) unpaused(c Class) string {
	switch {
	case p.Client.PFC == nil:
		return fmt.Sprintf("on one side of the cable of %s %s (its DCB state could not be read)", p.Client.Host, p.Client.Port)
	case *p.Client.PFC>>c.Priority&1 == 0:
		return fmt.Sprintf("at %s of %s: its DCB state does not have priority %d", p.Client.Port, p.Client.Host, c.Priority)
	}
	return fmt.Sprintf("at the switch port of %s %s: the host has it for priority %d", p.Client.Host, p.Client.Port, c.Priority)
}

// A Crowd is the result of one round of a load at one receiver with several senders.
type Crowd struct {
	Load         string  `json:"load"`
	To           string  `json:"to"`
	Senders      int     `json:"senders"`
	Raised       bool    `json:"raised,omitempty"`
	SumGbps      float64 `json:"sum_gbps"`        // of all senders
	ExpectedGbps float64 `json:"expected_gbps"`   // sum of all senders
	Fairness     float64 `json:"fairness"`        // of the senders' shares, 0 to 1: 1 if all are equal (Jain, Chiu and Hawe, DEC-TR-301, 1984)
	Apart        bool    `json:"apart,omitempty"` // the sum exceeds the port's capacity: not all sent at the same time
	Lost         int64   `json:"lost_packets"`
	Verdict      Verdict `json:"verdict"` // the worst of the flows
	// Lossless covers all flows together: pause frames at one sender prove it if no flow lost packets; nil: no class is
	// configured.
	Lossless *Proof `json:"lossless,omitempty"`
	Worst    string `json:"least"` // the sender with the lowest rate
}

// Crowds groups the flows of loads by their receivers, in the order of measurement.
func Crowds(all []Measurement) []Crowd {
	var out []Crowd
	at, squares := map[string]int{}, map[string]float64{}
	least, proven := map[string]float64{}, map[string]int{}
	for _, m := range all {
		if m.Load != LoadIncast {
			continue
		}
		key := fmt.Sprint(m.To, m.Raised)
		i, ok := at[key]
		if !ok {
			i = len(out)
			at[key] = i
			out = append(out, Crowd{Load: m.Load, To: m.To, Raised: m.Raised, Verdict: m.Verdict})
		}
		c := &out[i]
		c.Senders++
		c.SumGbps += m.AchievedGbps
		c.ExpectedGbps += m.ExpectedGbps
		squares[key] += m.AchievedGbps * m.AchievedGbps
		if c.Worst == "" || m.AchievedGbps < least[key] {
			c.Worst, least[key] = m.From, m.AchievedGbps
		}
		if squares[key] > 0 {
			c.Fairness = c.SumGbps * c.SumGbps / (float64(c.Senders) * squares[key])
		}
		c.Apart = c.Apart || m.Apart
		lost, _, _ := m.Lost()
		c.Lost += lost
		if crowdRank[m.Verdict] > crowdRank[c.Verdict] {
			c.Verdict = m.Verdict
		}
		if rank := m.losslessRank(); rank > proven[key] {
			c.Lossless, proven[key] = m.Lossless, rank
		}
	}
	return out
}

// losslessRank ranks the results of the flows to one receiver: a loss outweighs everything else, an unreadable counter outweighs
// a proof, and a flow without congestion proves nothing.
func (m *Measurement) losslessRank() int {
	_, _, read := m.senderLost()
	switch {
	case m.Lossless == nil:
		return 0
	case m.Lossless.Verdict == VerdictFail:
		return 4
	case !read || m.Error != "":
		return 3
	case m.Lossless.Verdict == VerdictPass:
		return 2
	}
	return 1
}

var crowdRank = map[Verdict]int{VerdictPass: 1, VerdictUnknown: 2, VerdictWarn: 3, VerdictFail: 4}
