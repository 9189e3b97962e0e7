package sizing

import (
	"cmp"
	"fmt"
	"slices"
)

// A Sample is one message size of a measured curve. A test fills the fields that it prints; 0 is not printed.
type Sample struct {
	Bytes      int64
	Iterations int64
	Gbps       float64
	Us         float64 // typical
	P99Us      float64
	P999Us     float64
}

// A Fault is an anomaly of a measured curve. Hint says where and what to do.
type Fault struct {
	Verdict Verdict
	Hint    string
}

// Worst returns the worst fault, of equal ones the first; a zero Fault with verdict pass if there is none.
func Worst(faults []Fault) Fault {
	worst := Fault{Verdict: Pass}
	for _, f := range faults {
		if f.Verdict == Fail && worst.Verdict != Fail || f.Verdict == Warn && worst.Verdict == Pass {
			worst = f
		}
	}
	return worst
}

// Sizes between which parts of a curve are judged, in bytes.
const (
	plateauFrom = 64 << 10
	plateauTo   = 1 << 20
	fillFrom    = 4 << 10 // smaller messages are limited by the message rate
)

// Limits for the shape of a curve. The published curve of the SR-IOV performance study keeps a distance of at least 1.5 from
// every failing limit; the figures are this project's own choice.
const (
	inFlight = 4 // messages in flight per one-way latency, of the 128 that perftest posts at once (--tx-depth)

	dropWarn, dropFail   = 0.95, 0.80 // of the best smaller size, from 64 KiB
	dipWarn, dipFail     = 0.85, 0.67 // of the best smaller size, below 64 KiB
	slowWarn, slowFail   = 1.35, 2.0  // times the duration of a larger message
	floorWarn, floorFail = 1.0, 0.5   // of the limit by the message rate
	lateWarn, lateFail   = 2.2, 3.0   // times (latency of the smallest message + size / link)
	spikeWarn, spikeFail = 1.5, 2.5   // times the latency of a larger message
	tailWarn99           = 2.0        // times typical
	tailWarn999          = 3.0
	tailLeast            = 10_000 // number of messages from which p99.9 is not merely the slowest message
	aboveMost            = 1.0025 // of the bytes that the headers leave, with a margin for rounding
)

// Plateau returns the best bandwidth between 64 KiB and 1 MiB; if no such size was measured, the best of all.
func Plateau(samples []Sample) float64 {
	best, any := 0.0, 0.0
	for _, s := range samples {
		any = max(any, s.Gbps)
		if s.Bytes >= plateauFrom && s.Bytes <= plateauTo {
			best = max(best, s.Gbps)
		}
	}
	return cmp.Or(best, any)
}

// Fills reports whether a sample is large enough to show the capacity of the link.
func Fills(samples []Sample) bool {
	return slices.ContainsFunc(samples, func(s Sample) bool { return s.Bytes >= fillFrom })
}

// AboveHeaders returns the fault of a bandwidth that the headers at the RDMA MTU do not allow: the reported MTU or the speed of
// the link is wrong, and so are conclusions from it.
func AboveHeaders(gbps float64, l Link) []Fault {
	room := float64(l.SpeedMbps) / 1000 * Goodput(l.IBMTU, l.VLAN)
	if room <= 0 || gbps <= room*aboveMost {
		return nil
	}
	return []Fault{
		{Warn, fmt.Sprintf("%.1f Gb/s contradicts what is reported: with RDMA MTU %d a link of %g Gb/s leaves at most %.1f; compare active_mtu "+
			"in both guests with the speed of both host ports",
			gbps, l.IBMTU, float64(l.SpeedMbps)/1000, room)}}
}

// BandwidthShape returns the anomalies between the sizes of a bandwidth test. For every correct curve: a larger message never has
// less bandwidth, a smaller message never takes longer, and the rate of small messages follows from the latency. latencyUs is the
// measured latency of the smallest message; 0 means the limit of the mode. The first size of a sweep is ignored: without
// --perform_warm_up it suffers from cold caches and page tables.
func (b Bands) BandwidthShape(samples []Sample, latencyUs float64) []Fault {
	s := bySize(samples, func(s Sample) bool { return s.Gbps > 0 })
	if len(s) < 2 {
		return nil
	}
	s = s[1:]
	if latencyUs <= 0 {
		latencyUs = b.PassUs
	}
	var faults []Fault
	if at := starved(s, Plateau(s), latencyUs); at != nil && at.to > at.from {
		faults = append(faults,
			Fault{gradeOf(at.fails), fmt.Sprintf("the message rate collapses %s: %.2f Gb/s at %s, where a latency of %.1f us allows at "+
				"least %.2f; look at the power policy, CPU contention and NUMA placement of both ends, and at the interrupts of the device",
				at.words(s), s[at.low].Gbps, bytes(s[at.low].Bytes), latencyUs, s[at.low].Gbps/at.worst)})
	}
	for _, judge := range []func([]Sample) *span{lower, slower} {
		if at := judge(s); at != nil {
			faults = append(faults, at.fault(s))
		}
	}
	return faults
}

// A span is a run of neighbouring sizes that are too low.
type span struct {
	from, to, low int // indexes; low is the worst
	before        int // the size that low is compared with
	worst         float64
	fails         bool
}

// lower returns the sizes with less bandwidth than a smaller one.
func lower(s []Sample) *span {
	best := 0
	return find(s, func(i int) (float64, int, bool, bool) {
		if s[i].Gbps >= s[best].Gbps {
			best = i
			return 1, i, false, false
		}
		warn, fail := dipWarn, dipFail
		if s[i].Bytes > plateauFrom {
			warn, fail = dropWarn, dropFail
		}
		share := s[i].Gbps / s[best].Gbps
		return share, best, share < warn, share < fail
	})
}

// slower returns the sizes that take longer than a larger one.
func slower(s []Sample) *span {
	return find(s, func(i int) (float64, int, bool, bool) {
		own, least, at := float64(s[i].Bytes)/s[i].Gbps, 0.0, i
		for k := i + 1; k < len(s); k++ {
			if took := float64(s[k].Bytes) / s[k].Gbps; least == 0 || took < least {
				least, at = took, k
			}
		}
		if least == 0 {
			return 1, i, false, false
		}
		return least / own, at, own > slowWarn*least, own > slowFail*least
	})
}

// starved returns the sizes below 64 KiB with a lower rate than latency and plateau together allow.
func starved(s []Sample, plateau, latencyUs float64) *span {
	if plateau <= 0 {
		return nil
	}
	return find(s, func(i int) (float64, int, bool, bool) {
		if s[i].Bytes >= plateauFrom {
			return 1, i, false, false
		}
		bits := float64(s[i].Bytes) * 8 / 1000 // Gb/s x us
		share := s[i].Gbps / (bits / (latencyUs/inFlight + bits/plateau))
		return share, i, share < floorWarn, share < floorFail
	})
}

// find returns the span around the worst size that judge rejects, preferring failures to warnings; nil if there is none.
func find(s []Sample, judge func(i int) (share float64, against int, bad, fails bool)) *span {
	var worst, now *span
	worse := func(a, b *span) bool {
		return b == nil || a.fails && !b.fails || a.fails == b.fails && a.worst < b.worst
	}
	for i := range s {
		share, against, bad, fails := judge(i)
		if !bad {
			now = nil
			continue
		}
		if now == nil {
			now = &span{from: i, low: i, before: against, worst: share}
		}
		now.to, now.fails = i, now.fails || fails
		if share < now.worst {
			now.low, now.before, now.worst = i, against, share
		}
		if worse(now, worst) {
			worst = now
		}
	}
	return worst
}

func (at span) fault(s []Sample) Fault {
	f := Fault{Verdict: gradeOf(at.fails)}
	low, than := s[at.low], s[at.before]
	where := fmt.Sprintf("%.2f Gb/s at %s, %.2f at %s", low.Gbps, bytes(low.Bytes), than.Gbps, bytes(than.Bytes))
	switch {
	case at.to == len(s)-1 && low.Bytes > plateauFrom:
		f.Hint = fmt.Sprintf(
			"bandwidth drops %s: %s; look for loss under sustained load (PFC, ECN, buffers), a narrow PCIe slot, and huge pages and IOMMU "+
				"settings in the guests", at.words(s), where)
	case low.Bytes < plateauFrom:
		f.Hint = fmt.Sprintf(
			"the curve has a hole %s: %s; repeat the test, then look for packets lost at that size (MTU of every hop), the power policy and CPU "+
				"contention", at.words(s), where)
	default:
		f.Hint = fmt.Sprintf(
			"the curve has a hole %s: %s; repeat the test, then look for loss (PFC, ECN, buffers) and for traffic beside the test", at.words(s),
			where)
	}
	return f
}

// words describe a span: "at 64 B", "from 128 B to 32 KiB".
func (at span) words(s []Sample) string {
	switch {
	case at.from == at.to:
		return "at " + bytes(s[at.from].Bytes)
	case at.to == len(s)-1:
		return "from " + bytes(s[at.from].Bytes) + " on"
	}
	return "from " + bytes(s[at.from].Bytes) + " to " + bytes(s[at.to].Bytes)
}

func gradeOf(fails bool) Verdict {
	if fails {
		return Fail
	}
	return Warn
}

func bySize(samples []Sample, keep func(Sample) bool) []Sample {
	out := slices.DeleteFunc(slices.Clone(samples), func(s Sample) bool { return !keep(s) || s.Bytes <= 0 })
	slices.SortStableFunc(out, func(a, b Sample) int { return cmp.Compare(a.Bytes, b.Bytes) })
	return out
}

// bytes formats a message size: "64 B", "32 KiB", "8 MiB".
func bytes(n int64) string {
	switch {
	case n >= 1<<20 && n%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", n>>20)
	case n >= 1<<10 && n%(1<<10) == 0:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d B", n)
}
