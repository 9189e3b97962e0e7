package perftest

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/rdma-setup/rdma-setup/wizard/sizing"
)

// Bytes that a test may add to a counter beyond its payload: headers of each packet of it or of its acknowledgement, and for a
// lost packet what is in flight until the sender learns of it, 1 MiB at most (80 us at 100 Gb/s); chosen by this project.
const (
	headersMost = 100
	againMost   = 1 << 20
)

// Other traffic below both is not worth a word; chosen by this project.
const (
	otherLeast = 1.0  // Gb/s
	otherShare = 0.05 // of the link
)

// carried returns the bytes that passed a port in one direction, "tx" or "rx", by the counter that saw most: the RDMA device of
// the host, the priorities of a port, or the device in the guest. port_xmit_data and port_rcv_data count in words of 4 bytes
// (kernel, Documentation/ABI/stable/sysfs-class-infiniband). The last sees the traffic of its own VM only.
func (c Counters) carried(direction string) (most int64, ok bool) {
	sums := map[string]int64{}
	for name, n := range c {
		switch {
		case name == "pnic_rdma_"+direction+"_bytes":
			sums["rdma"] = n
		case name == "pnic_nic_"+direction+"_bytes": // in idle windows only
			sums["nic"] = n
		case name == map[string]string{"tx": "port_xmit_data", "rx": "port_rcv_data"}[direction]:
			sums["guest"] = 4 * n
		case strings.HasSuffix(name, "_bytes") && strings.HasPrefix(name, "pnic_"+direction+"_prio"):
			sums["port"] += n
		case strings.HasSuffix(name, "_bytes") && strings.HasPrefix(name, direction+"_prio"):
			sums["whole port"] += n
		}
	}
	for _, n := range sums {
		most, ok = max(most, n), true
	}
	return most, ok
}

// other returns the traffic in Gb/s that passed the ports of a test beside its own, in the direction with the most; 0 if there was
// none worth a word, or none can be seen. took is the time between the two readings of the counters.
func (m *Measurement) other(took time.Duration, linkMbps int) float64 {
	if m.Counters == nil || len(m.Rows) == 0 {
		return 0
	}
	packets, bytes := m.sent()
	if strings.Contains(m.Test, " -q 4") {
		packets, bytes = 4*packets, 4*bytes // whether the iterations that are printed are those of all queue pairs is not documented
	}
	lost, _, _ := m.Lost()
	there := bytes + packets*headersMost + lost*againMost
	back := packets * headersMost
	if m.isLatency() || bothDirections(m.Test) {
		back = there
	}
	var most int64
	for _, end := range []struct {
		c    Counters
		way  string
		ours int64
	}{{m.Counters.From, "tx", there}, {m.Counters.To, "rx", there}, {m.Counters.From, "rx", back}, {m.Counters.To, "tx", back}} {
		if n, ok := end.c.carried(end.way); ok {
			most = max(most, n-end.ours)
		}
	}
	return worth(most, max(took.Seconds(), m.sending()), linkMbps)
}

// worth returns the rate of other traffic in Gb/s, 0 if it is not worth a word.
func worth(bytes int64, seconds float64, linkMbps int) float64 {
	link := float64(linkMbps) / 1000
	gbps := float64(bytes) * 8 / 1e9 / max(seconds, 1e-3)
	if gbps < max(otherLeast, otherShare*link) {
		return 0
	}
	if link > 0 {
		gbps = min(gbps, link)
	}
	return gbps
}

// sending returns for how long a test was sending, in seconds.
func (m *Measurement) sending() (seconds float64) {
	for _, r := range m.Rows {
		switch {
		case r.AvgGbps > 0:
			seconds += float64(r.Iterations*r.Bytes) * 8 / 1e9 / r.AvgGbps
		case r.TypicalUs > 0:
			seconds += float64(r.Iterations) * 2 * r.TypicalUs / 1e6
		}
	}
	return seconds * float64(max(1, m.Repeats))
}

// Beside returns the sentence about traffic that was not the test's: "measured beside other traffic: 48.1 Gb/s"; "" if none was seen.
func (m *Measurement) Beside() string {
	switch {
	case m.OtherGbps > 0:
		return fmt.Sprintf("measured beside other traffic: %.1f Gb/s", m.OtherGbps)
	case m.idleLoad() > 0:
		return fmt.Sprintf("measured beside other traffic: %.1f Gb/s while no test ran", m.idleLoad())
	}
	return ""
}

// judgeBeside names the traffic beside a bad result. It explains a failure if both together are what the link carries, unless losses are
// not counted: what is sent again is traffic, too, beyond what passed the ports while no test ran. It explains none that is far below
// the link also together. A class that is not lossless stays so.
func (m *Measurement) judgeBeside(b sizing.Bands) {
	const again = "; measure again without it"
	if m.Error != "" && m.idleLoad() > 0 && m.suspect() {
		m.Hint = m.Beside() + again
	}
	if m.Beside() == "" || m.Error != "" || m.Verdict != VerdictWarn && m.Verdict != VerdictFail ||
		m.Lossless != nil && m.Lossless.Verdict == VerdictFail ||
		strings.HasPrefix(m.Hint, "TCP fallback") {
		return
	}
	others := cmp.Or(m.OtherGbps, m.idleLoad())
	_, _, counted := m.Lost()
	if idle := m.idleLoad(); idle > 0 && !counted {
		others, counted = min(others, idle), true
	}
	both := m.AchievedGbps/factor(m.Test) + others
	switch {
	case m.Verdict == VerdictWarn:
		m.Hint = m.Beside() + again
	case m.isLatency():
		m.Verdict, m.Hint = VerdictUnknown, m.Beside()+again
	case both < b.WarnShare*m.LinkGbps:
		m.Hint = m.Beside() + ", which does not explain it: " + m.Hint
	case !counted:
		m.Verdict, m.Hint = VerdictUnknown, m.Beside()+", or sent again after losses, which nothing counts here"+again
	case both >= b.PassShare*m.LinkGbps && m.OtherGbps > 0:
		m.Verdict, m.Hint = VerdictWarn, m.Beside()+", which is what the link carries together with the test"+again
	default:
		m.Verdict, m.Hint = VerdictUnknown, m.Beside()+again
	}
}
