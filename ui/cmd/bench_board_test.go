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

// TestBounds holds the program against its bounds and prints one table: make bench. What can be counted (calls, bytes,
// rounds) fails when it is over its bound; times are those of a machine that others may use, and are only told.
func TestBounds(t *testing.T) {
	b := &board{}
	for _, part := range []struct {
		name    string
		measure func(context.Context, *board)
		limit   time.Duration // many times what it takes on two free cores
	}{
		{"start", beginnings, 2 * time.Minute}, {"growth", growth, 8 * time.Minute}, {"reads", reads, 5 * time.Minute}, {"sets", sets, 5 * time.Minute},
		{"rails", railed, 5 * time.Minute}, {"apply", applies, 10 * time.Minute}, {"waves", waves, time.Minute}, {"rounds", rounds, time.Minute},
		{"rehearsal", rehearses, 20 * time.Minute}, {"keys", keyPresses, 5 * time.Minute}, {"screen", runScreen, 2 * time.Minute},
	} {
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

// A board gathers what was measured and holds it against the bounds.
type board struct {
	t    *testing.T
	ctx  context.Context // of the part that is measured: ends when it has taken too long
	rows [][5]string
}

// Verdicts. A slow row is a time over its bound: worth a look, but it may be the machine.
const (
	isGood = "ok"
	isSlow = "SLOW (time)"
	isOver = "OVER"
)

// serve starts a lab that ends with the part that is measured, and so do its commands.
func (b *board) serve(flags ...string) *site {
	b.t.Helper()
	return serveIn(b.ctx, b.t, flags...)
}

// tell is a row without a bound.
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

// count is for what does not depend on the machine.
func (b *board) count(what, at string, measured, bound int) {
	b.t.Helper()
	b.row(what, at, fmt.Sprintf("<= %d", bound), fmt.Sprint(measured), verdict(measured <= bound, isOver))
}

// share is a count that is not whole: a ratio of bytes.
func (b *board) share(what, at string, measured, bound float64) {
	b.t.Helper()
	b.row(what, at, fmt.Sprintf("<= %.2f", bound), fmt.Sprintf("%.2f", measured), verdict(measured <= bound, isOver))
}

// times is a ratio of times or of CPU.
func (b *board) times(what, at string, measured, bound float64) {
	b.t.Helper()
	b.row(what, at, fmt.Sprintf("<= %.1fx", bound), fmt.Sprintf("%.2fx", measured), verdict(measured <= bound, isSlow))
}

// takes is a time.
func (b *board) takes(what, at string, measured, bound time.Duration) {
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

// short is a duration to read: 12.3ms, 1.23s.
func short(d time.Duration) string {
	switch {
	case d > time.Second:
		return d.Round(10 * time.Millisecond).String()
	case d > 100*time.Millisecond:
		return d.Round(time.Millisecond).String()
	}
	return d.Round(100 * time.Microsecond).String()
}

// median of durations, and percentile 99; the slice is sorted.
func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}

func p99(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)*99/100]
}
