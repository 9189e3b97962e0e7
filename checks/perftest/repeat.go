package perftest

import (
	"context"
	"slices"

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
	for _, run := range runs[1:] {
		m.Counters = m.Counters.plus(run.Counters)
		if m.Packets != nil && run.Packets != nil {
			m.Packets = new(*m.Packets + *run.Packets)
		}
	}
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
