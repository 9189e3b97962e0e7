package perflog

import (
	"iter"
	"math"
)

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
	out := make([]BandwidthRow, 0, t.rows.n)
	var values slab
	for r := range t.rows.all() {
		factor := 1.0
		if t.unit == "MB/s" || t.unit == "" && r.inMiB() {
			factor = mibToGbps
		}
		b := BandwidthRow{SizeBytes: int64(r.values[size]), Iterations: int64(r.values[iterations]),
			BWAvgGbps: values.of(r, average, factor), MsgRateMpps: values.of(r, rate, 1)}
		if r.values[peak] != 0 {
			b.BWPeakGbps = values.of(r, peak, factor)
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

// rowList keeps rows in chunks, so that long tables are not copied as they grow.
type rowList struct {
	chunks [][]row
	n      int
}

func (l *rowList) add(r *row) {
	const size = 256
	if l.n%size == 0 {
		l.chunks = append(l.chunks, make([]row, 0, min(size, 32+l.n)))
	}
	last := &l.chunks[len(l.chunks)-1]
	*last = append(*last, *r)
	l.n++
}

func (l *rowList) all() iter.Seq[*row] {
	return func(yield func(*row) bool) {
		for _, chunk := range l.chunks {
			for i := range chunk {
				if !yield(&chunk[i]) {
					return
				}
			}
		}
	}
}

// slab contains the numbers that rows point to: one allocation for many.
type slab []float64

func (s *slab) of(r *row, c column, factor float64) *float64 {
	if !r.has(c) {
		return nil
	}
	if len(*s) == cap(*s) {
		*s = make([]float64, 0, 512)
	}
	*s = append(*s, r.values[c]*factor)
	return &(*s)[len(*s)-1]
}

func (t *table) latencyRows() []LatencyRow {
	out := make([]LatencyRow, 0, t.rows.n)
	var v slab
	for r := range t.rows.all() {
		out = append(out, LatencyRow{int64(r.values[size]), int64(r.values[iterations]), v.of(r, tMin, 1), v.of(r, tMax, 1),
			v.of(r, tTypical, 1), v.of(r, tAvg, 1), v.of(r, tStdev, 1), v.of(r, p99, 1), v.of(r, p999, 1), v.of(r, tps, 1)})
	}
	return out
}
