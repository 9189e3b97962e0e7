package perflog

import "math"

// row is one line of a table: the number of every column that was read.
type row struct {
	set    uint16 // bit by column
	n      int    // numbers read so far
	blank  bool   // a cell says nan or inf
	values [columns]float64
}

func (r *row) has(c column) bool { return r.set&(1<<c) != 0 }

func (r *row) put(c column, v float64) {
	r.values[c] = v
	r.set |= 1 << c
}

func (t *table) unitReported() *string {
	if t.unit == "" {
		return nil
	}
	return &t.unit
}

func (t *table) bandwidthRows() []BandwidthRow {
	out := make([]BandwidthRow, 0, len(t.rows))
	for _, r := range t.rows {
		factor := 1.0
		if t.unit == "MB/s" || t.unit == "" && r.inMiB() {
			factor = mibToGbps
		}
		b := BandwidthRow{SizeBytes: int64(r.values[size]), Iterations: int64(r.values[iterations]),
			BWAvgGbps: r.of(average, factor), MsgRateMpps: r.of(rate, 1)}
		if r.values[peak] != 0 {
			b.BWPeakGbps = r.of(peak, factor)
		}
		out = append(out, b)
	}
	return out
}

// mibToGbps turns perftest's MB/sec, which is 2^20 bytes, into 10^9 bit/s.
const mibToGbps = (1 << 20) * 8 / 1e9

// inMiB determines the unit of a row without a heading: size times message rate is the bandwidth.
func (r *row) inMiB() bool {
	expect := r.values[size] * r.values[rate] * 8e-3
	if expect <= 0 || r.values[average] <= 0 {
		return false
	}
	return math.Abs(math.Log(r.values[average]*mibToGbps/expect)) < math.Abs(math.Log(r.values[average]/expect))
}

// of returns the number of a column times a factor, nil if it was not read.
func (r *row) of(c column, factor float64) *float64 {
	if !r.has(c) {
		return nil
	}
	return new(r.values[c] * factor)
}

func (t *table) latencyRows() []LatencyRow {
	out := make([]LatencyRow, 0, len(t.rows))
	for _, r := range t.rows {
		out = append(out, LatencyRow{int64(r.values[size]), int64(r.values[iterations]), r.of(tMin, 1), r.of(tMax, 1),
			r.of(tTypical, 1), r.of(tAvg, 1), r.of(tStdev, 1), r.of(p99, 1), r.of(p999, 1), r.of(tps, 1)})
	}
	return out
}
