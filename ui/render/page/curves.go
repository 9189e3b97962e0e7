package page

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/checks/perftest"
	"github.com/rdma-setup/rdma-setup/ui/plain"
	"github.com/rdma-setup/rdma-setup/ui/theme"
)

// keepLines is the largest number of pairs that each have a curve. With more, the range of all pairs, its median and the worst
// pairs that are not good are drawn.
const keepLines = 4

// curve draws one test over message sizes, with a table of the figures. Pairs on one host are left out.
func curve(name string, some []perftest.Measurement, latency bool) (*Chart, Table) {
	var shown []perftest.Measurement
	for _, m := range some {
		if len(m.Rows) > 0 && m.Verdict != perftest.VerdictNotApplicable {
			shown = append(shown, m)
		}
	}
	if len(shown) == 0 {
		return nil, Table{}
	}
	if latency {
		return latencyCurve(name, shown)
	}
	return bandwidthCurve(name, shown)
}

// A Shape is a summary of a curve: the median by message size.
type Shape struct {
	Values  []float64 // 0 to 1; times span decades, so their logarithm is used
	Span    [2]string // its smallest and largest message
	Highest string    // value at the top of the scale
}

// shapeLeast is the smallest number of message sizes for which a curve is drawn.
const shapeLeast = 4

// ShapeOf returns the shape of tests of one kind; it has no values if fewer than four message sizes were measured.
func ShapeOf(some ...perftest.Measurement) (out Shape) {
	met := slices.DeleteFunc(slices.Clone(some), func(m perftest.Measurement) bool { return m.Verdict == perftest.VerdictNotApplicable })
	latency := len(met) > 0 && isLatency(met[0])
	value, unit := func(r perftest.Row) float64 { return r.AvgGbps }, "Gb/s"
	if latency {
		value, unit = func(r perftest.Row) float64 { return cmp.Or(r.TypicalUs, r.AvgUs) }, "us"
	}
	s := spreadOf(met, value)
	if len(s.sizes) < shapeLeast {
		return out
	}
	low, high := slices.Min(s.mid), slices.Max(s.mid)
	for _, v := range s.mid {
		share := v / high
		if latency && high > low {
			share = math.Log(v/low) / math.Log(high/low)
		}
		out.Values = append(out.Values, share)
	}
	out.Span, out.Highest = [2]string{size(s.sizes[0]), size(s.sizes[len(s.sizes)-1])}, three(high)+" "+unit
	return out
}

// Line formats the shape between its smallest and largest size: "2 B ▁▄█ 8 MiB"; "" if there is none.
func (s Shape) Line(t theme.Theme) string {
	if len(s.Values) == 0 {
		return ""
	}
	return s.Span[0] + " " + t.Spark(s.Values) + " " + s.Span[1]
}

// Points are the values as the points of a polyline in a box of 100 x 16.
func (s Shape) Points() string {
	var b strings.Builder
	for i, v := range s.Values {
		fmt.Fprintf(&b, "%.1f,%.1f ", float64(i)*100/float64(len(s.Values)-1), 15-14*v)
	}
	return strings.TrimSuffix(b.String(), " ")
}

// A spread is the range of several pairs by message size.
type spread struct {
	sizes          []int64
	low, mid, high []float64
}

func spreadOf(some []perftest.Measurement, value func(perftest.Row) float64) spread {
	by := map[int64][]float64{}
	for _, m := range some {
		for _, r := range m.Rows {
			if v := value(r); v > 0 && r.Bytes > 0 {
				by[r.Bytes] = append(by[r.Bytes], v)
			}
		}
	}
	var s spread
	s.sizes = slices.Sorted(maps.Keys(by))
	for _, b := range s.sizes {
		s.low, s.mid, s.high = append(s.low, slices.Min(by[b])), append(s.mid, median(by[b])), append(s.high, slices.Max(by[b]))
	}
	return s
}

func bandwidthCurve(name string, some []perftest.Measurement) (*Chart, Table) {
	rate := func(r perftest.Row) float64 { return r.AvgGbps }
	all := spreadOf(some, rate)
	if len(all.sizes) == 0 {
		return nil, Table{}
	}
	c := newChart(name + ": bandwidth against message size")
	c.YLabel = "Gb/s"
	x := c.sizes(all.sizes[0], all.sizes[len(all.sizes)-1])
	top := slices.Max(all.high)
	lines, wanted := levels(some, func(m perftest.Measurement) float64 { return m.LinkGbps }),
		levels(some, func(m perftest.Measurement) float64 { return m.ExpectedGbps })
	y := c.rates(max(top, slices.Max(append(lines, 1)), slices.Max(append(wanted, 1))))
	for _, v := range lines {
		c.rule("line-rate", fmt.Sprintf("line rate %g Gb/s", v), y(v), false)
	}
	for _, v := range wanted {
		c.rule("expected", fmt.Sprintf("expected %.1f Gb/s", v), y(v), true)
	}
	c.lines(x, y, some, all, rate)
	c.Desc = fmt.Sprintf("%s. At %s the slowest pair reached %s, the median %s, the fastest %s Gb/s.", plain.Counted(len(some), "pair"),
		size(all.sizes[len(all.sizes)-1]), three(all.low[len(all.low)-1]), three(all.mid[len(all.mid)-1]), three(top))
	t := Table{Caption: name + " by message size, Gb/s", Head: []string{"message", "slowest pair", "median", "fastest pair"}}
	for i, b := range all.sizes {
		if kept(i, len(all.sizes)) {
			t.Rows = append(t.Rows, []string{size(b), three(all.low[i]), three(all.mid[i]), three(all.high[i])})
		}
	}
	return c, t
}

func latencyCurve(name string, some []perftest.Measurement) (*Chart, Table) {
	typical := func(r perftest.Row) float64 { return cmp.Or(r.TypicalUs, r.AvgUs) }
	all := spreadOf(some, typical)
	if len(all.sizes) == 0 {
		return nil, Table{}
	}
	p99 := spreadOf(some, func(r perftest.Row) float64 { return r.P99Us })
	p999 := spreadOf(some, func(r perftest.Row) float64 { return r.P999Us })
	c := newChart(name + ": latency against message size")
	c.YLabel = "microseconds"
	x := c.sizes(all.sizes[0], all.sizes[len(all.sizes)-1])
	wanted := levels(some, func(m perftest.Measurement) float64 { return m.ExpectedUs })
	y := c.times(slices.Min(all.low), slices.Max(slices.Concat(all.high, p99.high, p999.high, wanted)))
	for _, v := range wanted {
		c.rule("expected", fmt.Sprintf("smallest message good up to %g us", v), y(v), false)
	}
	c.lines(x, y, some, all, typical)
	for _, extra := range []struct {
		spread
		class, label string
	}{{p99, "p99", "99 % of messages within"}, {p999, "p999", "99.9 % of messages within"}} {
		if len(extra.sizes) > 0 {
			c.Lines = append(c.Lines, Line{extra.class, points(x, y, extra.sizes, extra.mid), extra.label + " (median of pairs)"})
		}
	}
	c.Desc = fmt.Sprintf("%s. The smallest message takes %s to %s us, the median pair %s us.", plain.Counted(len(some), "pair"),
		three(all.low[0]), three(all.high[0]), three(all.mid[0]))
	t := Table{Caption: name + " by message size, us", Head: []string{"message", "fastest pair", "median", "slowest pair", "99 % median",
		"99.9 % median", "99.9 % worst"}}
	for i, b := range all.sizes {
		if kept(i, len(all.sizes)) {
			t.Rows = append(t.Rows, []string{size(b), three(all.low[i]), three(all.mid[i]), three(all.high[i]), three(p99.at(b, p99.mid)),
				three(p999.at(b, p999.mid)), three(p999.at(b, p999.high))})
		}
	}
	return c, t
}

// at returns the value for a message size.
func (s spread) at(bytes int64, values []float64) float64 {
	if i, ok := slices.BinarySearch(s.sizes, bytes); ok {
		return values[i]
	}
	return 0
}

// lines draws each pair if there are few, otherwise the range of all pairs, its median and the worst pairs.
func (c *Chart) lines(x, y scale, some []perftest.Measurement, all spread, value func(perftest.Row) float64) {
	own := func(i int, m perftest.Measurement) {
		s := spreadOf([]perftest.Measurement{m}, value)
		c.Lines = append(c.Lines, Line{fmt.Sprintf("l%d", i), points(x, y, s.sizes, s.mid), m.Pair()})
	}
	if len(some) <= keepLines {
		for i, m := range some {
			own(i, m)
		}
		return
	}
	c.Band, c.BandLabel = between(x, y, all.sizes, all.low, all.high), fmt.Sprintf("all %d pairs, slowest to fastest", len(some))
	c.Lines = append(c.Lines, Line{"l0", points(x, y, all.sizes, all.mid), "median of all pairs"})
	bad := slices.DeleteFunc(slices.Clone(some), func(m perftest.Measurement) bool { return m.Verdict == perftest.VerdictPass })
	slices.SortStableFunc(bad, func(a, b perftest.Measurement) int { return cmp.Compare(goodness(a), goodness(b)) })
	for i, m := range bad[:min(len(bad), keepLines-1)] {
		own(i+1, m)
	}
}

// levels returns the different values that measurements are compared with, at most three.
func levels(some []perftest.Measurement, of func(perftest.Measurement) float64) []float64 {
	var out []float64
	for _, m := range some {
		if v := of(m); v > 0 && !slices.Contains(out, v) && len(out) < 3 {
			out = append(out, v)
		}
	}
	return out
}

// kept shortens a table of sizes to every second row, counted from the largest message.
func kept(i, n int) bool { return n <= 12 || (n-1-i)%2 == 0 || i == 0 }
