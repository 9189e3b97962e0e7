package perftest

import "time"

// The overhead of a test: logging in, starting both ends, the exchange of keys.
const startUp = 2 * time.Second

// unknownMbps is the assumed speed of a path of unknown speed.
const unknownMbps = 10_000

// swept is how many bytes a sweep sends in one direction: a thousand messages of each size up to 8 MiB.
const swept = 1000 * (16 << 20)

// lasting estimates how long one test takes between two ends.
func lasting(p Pair, test string) time.Duration {
	mbps := p.linkMbps()
	if mbps <= 0 {
		mbps = unknownMbps
	}
	once := time.Duration(swept * 8 / float64(mbps) * float64(time.Microsecond))
	switch test {
	case SendManyQPs:
		return startUp + 4*once
	case SendLatency:
		return 2*startUp + 2*once + time.Second // both directions, and the sample for the tail
	case SendLatencyGPU, SendLatencyContainer:
		return startUp + 2*once
	}
	return startUp + once
}

// remaining estimates the remaining time after that many tests: the initial estimate, scaled by the pace so far.
func (r *Runner) remaining(pairs []Pair, total int) func(done int) time.Duration {
	estimated := r.Estimate(pairs)
	if r.Now == nil {
		return func(done int) time.Duration {
			return estimated * time.Duration(total-done) / time.Duration(max(1, total))
		}
	}
	began := r.Now()
	return func(done int) time.Duration {
		if done == 0 {
			return estimated
		}
		return r.Now().Sub(began) * time.Duration(total-done) / time.Duration(done)
	}
}

// Estimate returns about how long Measure takes: the longest pair of each round.
func (r *Runner) Estimate(pairs []Pair) time.Duration {
	var sum time.Duration
	for _, round := range r.rounds(pairs) {
		var longest time.Duration
		for _, p := range round {
			d := startUp + 2*askTime + idleGap // for the pings, and the counters around them while no test runs
			for _, test := range r.tests(p) {
				d += lasting(p, test) * time.Duration(max(1, r.Repeat))
			}
			longest = max(longest, d)
		}
		sum += longest
	}
	return sum
}
