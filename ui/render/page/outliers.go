package page

import (
	"fmt"
	"strings"

	"github.com/rdma-setup/rdma-setup/checks/perftest"
	"github.com/rdma-setup/rdma-setup/ui/plain"
)

// An Outlier is a pair that differs from the others, or from the expectation.
type Outlier struct {
	Pair, Hosts, Figure, Why string
	below                    float64 // how much worse it is than the median, as a share of the median
}

// keepOutliers is the largest number of outliers that are listed individually.
const keepOutliers = 30

// outliers returns the indices of the measurements that are not good or much worse than the median: by more than
// three times the usual spread (median absolute deviation) and 3 % of bandwidth or 10 % of latency.
func outliers(some []perftest.Measurement, latency bool) map[int]*Outlier {
	var values []float64
	for _, m := range some {
		if v := achieved(m); v > 0 && m.Verdict != perftest.VerdictNotApplicable {
			values = append(values, v)
		}
	}
	middle := median(values)
	off := plain.Mapped(values, func(v float64) float64 { return max(v-middle, middle-v) })
	least := 0.03
	if latency {
		least = 0.10
	}
	limit := max(3*1.4826*median(off), least*middle)
	out := map[int]*Outlier{}
	for i, m := range some {
		v := achieved(m)
		bad := middle - v
		if latency {
			bad = v - middle
		}
		if m.Verdict == perftest.VerdictNotApplicable || m.Verdict == perftest.VerdictPass && (v <= 0 || bad <= limit) {
			continue
		}
		o := &Outlier{Pair: m.Pair(), Hosts: m.FromHost + " -> " + m.ToHost, Figure: figure(m),
			below: 1}
		if v > 0 && middle > 0 {
			o.below = bad / middle
		}
		o.Why = because(m, o.below, latency)
		out[i] = o
	}
	return out
}

func because(m perftest.Measurement, below float64, latency bool) string {
	var said []string
	if m.Verdict != perftest.VerdictPass {
		said = append(said, "verdict "+string(m.Verdict))
	}
	if achieved(m) > 0 && below > 0.005 {
		word := "below"
		if latency {
			word = "above"
		}
		said = append(said, fmt.Sprintf("%.0f %% %s the median of all pairs", below*100, word))
	}
	return strings.Join(said, ", ")
}

// suspects returns the nodes that are outliers in most of their pairs while hardly any others are: check these first.
func suspects(some []perftest.Measurement, odd map[int]*Outlier) map[string]string {
	host := map[string]string{}
	bad, all := map[string]int{}, map[string]int{}
	for i, m := range some {
		if m.Verdict == perftest.VerdictNotApplicable {
			continue
		}
		from, to := m.Names()
		host[from], host[to] = m.FromHost, m.ToHost
		for _, name := range []string{from, to} {
			all[name]++
			if odd[i] != nil {
				bad[name]++
			}
		}
	}
	out := map[string]string{}
	for name := range host {
		if all[name] >= 3 && 3*bad[name] >= 2*all[name] {
			out[name] = fmt.Sprintf("%s on %s: %d of its %d pairs", name, host[name], bad[name], all[name])
		}
	}
	if len(out)*2 > len(host) {
		return nil // too many for an exception: they have a common cause
	}
	return out
}
