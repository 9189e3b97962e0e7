package perftest

import (
	"fmt"
	"slices"
	"strings"
)

// A Class is the configured traffic class of RDMA.
type Class struct {
	Priority     int
	TrafficClass int // DSCP << 2 | ECN, the byte of the IP header
}

// A Proof is an additional verdict of a measurement: pass is proven, fail is disproven, unknown is neither.
type Proof struct {
	Verdict  Verdict `json:"verdict"`
	Evidence string  `json:"evidence"`
	Hint     string  `json:"hint,omitempty"`
}

// option returns perftest's option for the class. Ordinary QPs put --tclass into the address vector of the QP; QPs of RDMA CM
// (-R) would use -T instead (linux-rdma/perftest, src/perftest_parameters.c: "Set the Traffic Class in GRH (if GRH is in use)",
// "Set <tos_value> to RDMA-CM QPs. available only with -R flag"). The default of rdma_cm in configfs affects only the latter
// (kernel ABI configfs-rdma_cm, default_roce_tos), and no test here uses them.
func (c *Class) option() string {
	if c == nil {
		return ""
	}
	return fmt.Sprintf(" --tclass=%d", c.TrafficClass)
}

const notProven = "class configured, not proven: "

// carried is the share of the bytes sent by which a priority's counter must have increased: other traffic adds to it, and the
// last reading may be slightly early.
const carried = 0.9

// proveClass compares the bytes sent with the counters of each priority at both ends. With -b each end sends as many: perftest
// prints the iterations of one direction (linux-rdma/perftest, print_report: twice the size, not twice the iterations).
func (m *Measurement) proveClass(c Class) *Proof {
	_, bytes := m.sent()
	if m.isLatency() || bytes == 0 {
		return &Proof{VerdictUnknown, notProven + "only a bandwidth test moves enough bytes", ""}
	}
	from, to := Counters(nil), Counters(nil)
	if m.Counters != nil {
		from, to = m.Counters.From, m.Counters.To
	}
	sent, sends := busiest(from, "tx")
	got, gets := busiest(to, "rx")
	in := func(k Counters, way string) int64 { return k.bytes(way, c.Priority) }
	enough := func(n int64) bool { return float64(n) >= carried*float64(bytes) }
	switch {
	case !sends && !gets:
		return &Proof{VerdictUnknown,
			notProven + "neither end shows the counters of each priority (a VF and PVRDMA do not see those of the port)", ""}
	case m.Senders > 1 && gets && enough(in(to, "rx")) && enough(to.besides("rx", c.Priority)):
		return &Proof{VerdictUnknown,
			fmt.Sprintf("%snot all data from %d senders to %s arrived in priority %d: %d bytes, and %d in another priority", notProven,
				m.Senders, m.To, c.Priority, in(to, "rx"), to.besides("rx", c.Priority)),
			"the port of one sender may not trust DSCP: measure the pairs one by one, with bench --pairs all"}
	case gets && enough(in(to, "rx")) && (!sends || enough(in(from, "tx"))):
		return &Proof{VerdictPass, fmt.Sprintf("rx_prio%d_bytes of %s moved by %d for %d bytes sent", c.Priority, m.To, in(to, "rx"), bytes), ""}
	case sends && !enough(in(from, "tx")) && enough(from.bytes("tx", sent)):
		return &Proof{VerdictFail, fmt.Sprintf("%s sent in priority %d: tx_prio%d_bytes +%d, tx_prio%d_bytes +%d", m.From, sent, c.Priority,
			in(from, "tx"), sent, from.bytes("tx", sent)),
			"set the trust of the sender's NIC to DSCP and map the DSCP to the priority"}
	case gets && !enough(in(to, "rx")) && enough(to.bytes("rx", got)):
		return &Proof{VerdictFail, fmt.Sprintf("%s sent in priority %d, %s received in priority %d: rx_prio%d_bytes +%d, rx_prio%d_bytes +%d",
			m.From,
			c.Priority, m.To, got, c.Priority, in(to, "rx"), got, to.bytes("rx", got)),
			"the switch does not keep the class: set every port of the path to trust DSCP, and the receiver's NIC too"}
	}
	return &Proof{VerdictUnknown, notProven + "the counters of the priorities increased by less than was sent", ""}
}

// busiest returns the priority with most bytes in one direction; ok is false if no priority was counted.
func busiest(c Counters, way string) (priority int, ok bool) {
	most := int64(0)
	for p := range 8 {
		if n := c.bytes(way, p); n > most {
			priority, most, ok = p, n, true
		}
	}
	return priority, ok
}

// besides returns the bytes in one direction in the busiest of the other priorities.
func (c Counters) besides(way string, priority int) (most int64) {
	for p := range 8 {
		if p != priority {
			most = max(most, c.bytes(way, p))
		}
	}
	return most
}

// bytes returns the bytes in one direction in a priority, from the guest's own port or the host's.
func (c Counters) bytes(way string, priority int) int64 {
	name := fmt.Sprintf("%s_prio%d_bytes", way, priority)
	return max(c[name], c["pnic_"+name])
}

// paused returns how many pause frames of a priority reached the sender, from its own port or the host's.
func (c Counters) paused(priority int) (n int64) {
	for _, name := range pauseNames(priority) {
		n = max(n, c[name])
	}
	return n
}

// pauseRead reports whether any counter of these pause frames was read.
func (c Counters) pauseRead(priority int) bool {
	return slices.ContainsFunc(pauseNames(priority), func(name string) bool { _, ok := c[name]; return ok })
}

func pauseNames(priority int) []string {
	name := fmt.Sprintf("rx_prio%d_pause", priority)
	return []string{name, "pnic_" + name, fmt.Sprintf("pnic_pfc_received_prio%d", priority)}
}

// proveLossless judges by the counters. One sender does not congest a port: then the absence of loss proves nothing.
func (m *Measurement) proveLossless(c Class) *Proof {
	lost, where, ok := m.Lost()
	switch {
	case lost > 0 && !m.lostIn(c.Priority):
		return &Proof{VerdictUnknown, "lossless not proven: a port dropped packets, which may or may not belong to the class: " + where, ""}
	case lost > 0:
		return &Proof{VerdictFail, "packets were lost in the class: " + where, "check PFC of priority " + fmt.Sprint(c.Priority) +
			" and trust of DSCP on every hop"}
	case !ok:
		return &Proof{VerdictUnknown, "lossless not proven: the counters of lost packets could not be read", ""}
	case !m.lossReadAtBothEnds():
		return &Proof{VerdictUnknown, "lossless not proven: the counters of lost packets could be read at one end only", ""}
	case m.Counters.From.paused(c.Priority) > 0:
		return &Proof{VerdictPass, fmt.Sprintf("the sender received %d pause frames of priority %d and nothing was lost",
			m.Counters.From.paused(c.Priority), c.Priority), ""}
	}
	return &Proof{VerdictUnknown,
		"lossless not proven: nothing was lost, but there was no congestion either: a single sender does not fill a queue", ""}
}

// prove fills in the class that a test ran in and what its counters prove.
func (m *Measurement) prove(c *Class) {
	if c == nil || m.Verdict == VerdictNotApplicable || m.Error != "" {
		return
	}
	m.Class, m.Lossless = m.proveClass(*c), m.proveLossless(*c)
	m.ClassProven = m.Class.Verdict == VerdictPass
}

// Proofs summarizes class and losslessness over all measurements: the worst of each. Losslessness is proven by one test under
// load, because the others cannot prove it; the class is proven if each test proves its own. They are nil if no class is
// configured.
func Proofs(all []Measurement) (class, lossless *Proof) {
	worse := func(a, b *Proof) *Proof {
		if a == nil || b != nil && proofRank[b.Verdict] > proofRank[a.Verdict] {
			return b
		}
		return a
	}
	tests, proven := 0, 0
	pairs := map[string]bool{} // pairs whose bandwidth test proves the class
	for _, m := range all {
		if m.Class != nil && m.Class.Verdict == VerdictPass {
			pairs[m.Pair()] = true
		}
	}
	var open *Measurement // the first that does not prove its class
	for i, m := range all {
		class, lossless = worse(class, m.Class), worse(lossless, m.Lossless)
		switch {
		case m.Class == nil, m.isLatency() && m.Class.Verdict == VerdictUnknown && pairs[m.Pair()]:
			continue // it runs with the same option between the same two, and transfers too few bytes for counters
		case m.Class.Verdict == VerdictPass:
			proven++
		case open == nil:
			open = &all[i]
		}
		tests++
	}
	if class != nil && class.Verdict == VerdictPass && proven < tests {
		class = &Proof{VerdictUnknown, fmt.Sprintf("class configured, not proven by each test: %d of %d prove theirs, and %s (%s) does not: %s",
			proven, tests, open.Pair(), open.Test, strings.TrimPrefix(open.Class.Evidence, "class configured, not proven: ")), ""}
	}
	return class, lossless
}

var proofRank = map[Verdict]int{VerdictUnknown: 1, VerdictPass: 2, VerdictFail: 3}

// Disproven reports whether the counters of any test contradict the configuration.
func Disproven(all []Measurement) bool {
	class, lossless := Proofs(all)
	return class != nil && class.Verdict == VerdictFail || lossless != nil && lossless.Verdict == VerdictFail
}

// atRate is the share of the expected rate from which a test works, whatever its counters show about class and loss; chosen by
// this project.
const atRate = 0.8

// OnlyDisproven reports whether a test under load fails only because of its counters of class or losslessness, although it
// reached its rate.
func (m *Measurement) OnlyDisproven() bool {
	failed := func(p *Proof) bool { return p != nil && p.Verdict == VerdictFail }
	return m.Load != "" && m.Verdict == VerdictFail && m.Error == "" && (failed(m.Class) || failed(m.Lossless)) &&
		m.ExpectedGbps > 0 && m.AchievedGbps >= atRate*m.ExpectedGbps
}

// Words returns the text of the proof in a report: "class proven", "class configured, not proven", "class wrong: ...".
func (p *Proof) Words(name string) string {
	switch {
	case p == nil:
		return ""
	case p.Verdict == VerdictPass:
		return name + " proven: " + p.Evidence
	case p.Verdict == VerdictFail && p.Hint != "":
		return name + " disproven: " + p.Evidence + "; " + p.Hint
	case p.Verdict == VerdictFail:
		return name + " disproven: " + p.Evidence
	}
	return p.Evidence
}
