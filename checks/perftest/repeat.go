package perftest

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/rdma-setup/rdma-setup/backends/transcript/perflog"
	"github.com/rdma-setup/rdma-setup/wizard/sizing"
)

// repeated runs a test as often as requested and judges the median. A failed test ends the series and is reported.
func (r *Runner) repeated(ctx context.Context, p Pair, test string, port int) (Measurement, Fabric) {
	m, f := r.measure(ctx, p, test, port)
	runs := []Measurement{m}
	for len(runs) < r.Repeat && m.Error == "" && ctx.Err() == nil {
		next, _ := r.measure(ctx, p, test, port)
		if next.Error != "" {
			return next, f
		}
		runs = append(runs, next)
	}
	if len(runs) > 1 && m.Error == "" {
		m = median(runs)
		r.judge(&m, f)
	}
	return m, f
}

// median returns the measurement whose rows are the median of those of all runs; counters and packets are summed.
func median(runs []Measurement) Measurement {
	m := runs[0]
	m.Repeats = len(runs)
	m.Rows = slices.Clone(m.Rows)
	for i := range m.Rows {
		of := func(field func(Row) float64) float64 {
			var all []float64
			for _, run := range runs {
				if i < len(run.Rows) && run.Rows[i].Bytes == m.Rows[i].Bytes {
					all = append(all, field(run.Rows[i]))
				}
			}
			return middle(all)
		}
		row := &m.Rows[i]
		row.PeakGbps, row.AvgGbps = of(func(r Row) float64 { return r.PeakGbps }), of(func(r Row) float64 { return r.AvgGbps })
		row.TypicalUs, row.AvgUs = of(func(r Row) float64 { return r.TypicalUs }), of(func(r Row) float64 { return r.AvgUs })
		row.P99Us, row.P999Us = of(func(r Row) float64 { return r.P99Us }), of(func(r Row) float64 { return r.P999Us })
	}
	var figures []float64
	for _, run := range runs {
		if m.isLatency() {
			figures = append(figures, run.Rows[0].TypicalUs)
		} else {
			figures = append(figures, sizing.Plateau(samples(run.Rows)))
		}
	}
	if mid := middle(figures); mid > 0 {
		m.Spread = 100 * (slices.Max(figures) - slices.Min(figures)) / mid
	}
	beside := []float64{m.OtherGbps}
	for _, run := range runs[1:] {
		m.Counters, beside = m.Counters.plus(run.Counters), append(beside, run.OtherGbps)
		if m.Packets != nil && run.Packets != nil {
			m.Packets = new(*m.Packets + *run.Packets)
		}
	}
	m.OtherGbps = middle(beside)
	return m
}

// middle returns the median; of an even number the mean of the middle two.
func middle(all []float64) float64 {
	if len(all) == 0 {
		return 0
	}
	all = slices.Sorted(slices.Values(all))
	n := len(all) / 2
	if len(all)%2 == 1 {
		return all[n]
	}
	return (all[n-1] + all[n]) / 2
}

// plus adds two series of counters; nil if one was not read.
func (s *Sides) plus(t *Sides) *Sides {
	if s == nil || t == nil {
		return nil
	}
	return &Sides{From: s.From.plus(t.From), To: s.To.plus(t.To)}
}

const (
	tailMost  = 100_000         // number of messages from which p99.9 is meaningful
	tailLeast = 10_000          // with fewer messages it is little more than the slowest one
	tailTime  = 5 * time.Second // limit of the sample on a slow path
)

// tail measures the smallest message again, often enough for a p99.9, and replaces the sweep's thousand samples. If that fails
// the sweep's result stays.
func (r *Runner) tail(ctx context.Context, p Pair, port int, m *Measurement) {
	if len(m.Rows) == 0 || m.Rows[0].TypicalUs <= 0 {
		return
	}
	first := &m.Rows[0]
	there := time.Duration(2 * first.TypicalUs * float64(time.Microsecond)) // in both directions
	n := max(tailLeast, min(tailMost, int(tailTime/max(there, 1))))
	out, err := r.exchange(ctx, p, SendLatency, fmt.Sprintf("-s %d -n %d", first.Bytes, n), port, m)
	if err != nil || out.Exit != 0 {
		return
	}
	res := perflog.Latency(SendLatency, out.Stdout)
	if len(res.Errors) > 0 || len(res.Rows) != 1 || res.Rows[0].SizeBytes != first.Bytes || value(res.Rows[0].TTypicalUs) <= 0 {
		return
	}
	*first = latencyRow(res.Rows[0])
}

func latencyRow(row perflog.LatencyRow) Row {
	return Row{
		Bytes: row.SizeBytes, Iterations: row.Iterations, TypicalUs: value(row.TTypicalUs), AvgUs: value(row.TAvgUs),
		P99Us: value(row.P99Us), P999Us: value(row.P999Us),
	}
}
