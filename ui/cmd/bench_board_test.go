//go:build bench

package cmd_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"
)

// large are the parts that only make bench-large has: sites of 500 hosts, and the twin of a large site.
var large = []string{"reads", "rehearsal"}

// sizes returns the numbers of hosts; only make bench-large has the last.
func sizes() []int {
	if testing.Short() {
		return []int{10, 100}
	}
	return []int{10, 100, 1000}
}

// TestBounds compares the program with its bounds and prints one table (make bench). Counts (calls, bytes, rounds) fail if they
// exceed their bound; durations depend on the machine and its load, and are only reported.
func TestBounds(t *testing.T) {
	b := &board{}
	for _, part := range []struct {
		name    string
		measure func(context.Context, *board)
		limit   time.Duration // many times the duration on two idle cores
	}{
		{"start", beginnings, 2 * time.Minute}, {"growth", growth, 8 * time.Minute}, {"reads", reads, 5 * time.Minute},
		{"sets", sets, 5 * time.Minute},
		{"rails", railed, 5 * time.Minute}, {"apply", applies, 10 * time.Minute}, {"waves", waves, time.Minute}, {"rounds", rounds, time.Minute},
		{"rehearsal", rehearses, 20 * time.Minute}, {"keys", keyPresses, 5 * time.Minute}, {"screen", runScreen, 2 * time.Minute},
	} {
		if testing.Short() && slices.Contains(large, part.name) {
			continue
		}
		t.Run(part.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), part.limit)
			defer cancel()
			b.t, b.ctx = t, ctx
			t.Cleanup(func() { // also after a Fatal
				if context.Cause(ctx) == context.DeadlineExceeded {
					b.row(part.name, "", "<= "+part.limit.String(), "not finished", isOver)
				}
			})
			begin := time.Now()
			part.measure(ctx, b)
			t.Logf("%s", time.Since(begin).Round(100*time.Millisecond))
		})
	}
	b.print()
}

// A board collects measurements and compares them with their bounds.
type board struct {
	t    *testing.T
	ctx  context.Context // context of the current part; it ends if the part takes too long
	rows [][5]string
}

// Verdicts. A slow row is a duration over its bound; the machine may be the cause.
const (
	isGood = "ok"
	isSlow = "SLOW (time)"
	isOver = "OVER"
)

// serve starts a lab that ends, with its commands, at the end of the current part.
func (b *board) serve(flags ...string) *site {
	b.t.Helper()
	return serveIn(b.ctx, b.t, flags...)
}

// tell adds a row without a bound.
func (b *board) tell(what, at, measured string) {
	b.rows = append(b.rows, [5]string{what, at, "", measured, ""})
}

func (b *board) row(what, at, bound, measured, verdict string) {
	b.t.Helper()
	b.rows = append(b.rows, [5]string{what, at, bound, measured, verdict})
	if verdict == isOver {
		b.t.Errorf("%s, %s: %s, bound %s", what, at, measured, bound)
	}
}

// count adds a row for a number that does not depend on the machine.
func (b *board) count(what, at string, measured, bound int) {
	b.t.Helper()
	b.row(what, at, fmt.Sprintf("<= %d", bound), fmt.Sprint(measured), verdict(measured <= bound, isOver))
}

// share adds a row for a ratio of bytes.
func (b *board) share(what, at string, measured, bound float64) {
	b.t.Helper()
	b.row(what, at, fmt.Sprintf("<= %.2f", bound), fmt.Sprintf("%.2f", measured), verdict(measured <= bound, isOver))
}

// times adds a row for a ratio of durations or CPU times.
func (b *board) times(what, at string, measured, bound float64) {
	b.t.Helper()
	b.row(what, at, fmt.Sprintf("<= %.1fx", bound), fmt.Sprintf("%.2fx", measured), verdict(measured <= bound, isSlow))
}

// duration adds a row for a duration.
func (b *board) duration(what, at string, measured, bound time.Duration) {
	b.t.Helper()
	b.row(what, at, "<= "+bound.String(), short(measured), verdict(measured <= bound, isSlow))
}

func verdict(good bool, bad string) string {
	if good {
		return isGood
	}
	return bad
}

// print writes the table.
func (b *board) print() {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	for _, r := range append([][5]string{{"what", "at", "bound", "measured", "verdict"}}, b.rows...) {
		fmt.Fprintln(w, strings.TrimRight(strings.Join(r[:], "\t"), "\t"))
	}
	_ = w.Flush() // to stdout
}

// short formats a duration: 12.3ms, 1.23s.
func short(d time.Duration) string {
	switch {
	case d > time.Second:
		return d.Round(10 * time.Millisecond).String()
	case d > 100*time.Millisecond:
		return d.Round(time.Millisecond).String()
	}
	return d.Round(100 * time.Microsecond).String()
}

// median returns the median of durations, and p99 their 99th percentile; both sort the slice.
func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}

func p99(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)*99/100]
}
