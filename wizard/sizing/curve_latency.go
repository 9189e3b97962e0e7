package sizing

import "fmt"

// LatencyShape returns the anomalies between the sizes of a latency test: a message takes the latency of the smallest one plus
// its transfer time on the link, with a margin for the copy at both ends and for each further switch; and a smaller message never
// takes longer.
func (b Bands) LatencyShape(samples []Sample, l Link) []Fault {
	s := bySize(samples, func(s Sample) bool { return s.Us > 0 })
	if len(s) == 0 {
		return nil
	}
	var faults []Fault
	if rate := Expect(l).Gbps; rate > 0 {
		base := s[0].Us
		late := find(s, func(i int) (float64, int, bool, bool) {
			if i == 0 {
				return 1, 0, false, false
			}
			allowed := base + float64(s[i].Bytes)*8/1000/rate + float64(max(0, l.Hops))*float64(min(s[i].Bytes, int64(l.IBMTU)))*8/1000/rate
			share := s[i].Us / allowed
			return -share, i, share > lateWarn, share > lateFail
		})
		if late != nil {
			faults = append(faults,
				Fault{gradeOf(late.fails), fmt.Sprintf("latency is too high %s: %.2f us at %s, %.1f times what %.2f us and the time of the "+
					"bytes on the link give; look for loss and retransmission, the power policy and CPU contention of both ends, and at the MTU",
					late.words(s), s[late.low].Us, bytes(s[late.low].Bytes), -late.worst, base)})
		}
	}
	spike := find(s, func(i int) (float64, int, bool, bool) {
		least, at := 0.0, i
		for k := i + 1; k < len(s); k++ {
			if least == 0 || s[k].Us < least {
				least, at = s[k].Us, k
			}
		}
		if least == 0 {
			return -1, i, false, false
		}
		return -s[i].Us / least, at, s[i].Us > spikeWarn*least, s[i].Us > spikeFail*least
	})
	if spike != nil {
		faults = append(faults,
			Fault{gradeOf(spike.fails), fmt.Sprintf("the curve has a hole %s: %.2f us at %s, but %.2f at %s; repeat the test, then look "+
				"for loss and for what interrupts the VMs",
				spike.words(s), s[spike.low].Us, bytes(s[spike.low].Bytes), s[spike.before].Us, bytes(s[spike.before].Bytes))})
	}
	return append(faults, tail(s[0])...)
}

// tail compares p99 and p99.9 of the smallest message with the typical value. It only warns: PAIR-LAT-TAIL-009 judges it.
func tail(s Sample) []Fault {
	for _, t := range []struct {
		name  string
		us    float64
		limit float64
		least int64
	}{{"p99.9", s.P999Us, tailWarn999, tailLeast}, {"p99", s.P99Us, tailWarn99, 1000}} {
		if s.Iterations >= t.least && t.us > t.limit*s.Us {
			return []Fault{
				{Warn,
					fmt.Sprintf("the tail is long: %s of %s is %.2f us, typical is %.2f; reserve CPU and memory and set latency sensitivity to high: "+
						"something interrupts the VM",
						t.name, bytes(s.Bytes), t.us, s.Us)}}
		}
	}
	return nil
}
