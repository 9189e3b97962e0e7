// Package timing defines how long the commands of the lab's guests and hosts take. By default they take no time. With real
// command times, each command takes as long as the real program, multiplied by a scale.
package timing

import (
	"context"
	"path"
	"slices"
	"strings"
	"time"
)

// A Clock defines how long commands take. With the zero Clock, they take no time. A Clock can be copied.
type Clock struct {
	Real  bool    // commands take the times in the table
	Scale float64 // factor for all times; 0 means 1
	// SleepScale is the factor for the time of programs that are not in the table because they always wait: sleep, ping, arping and
	// tests of perftest; 0 means 1.
	SleepScale float64
}

// OfSleep returns how long a program waits that always waits, here for d.
func (c Clock) OfSleep(d time.Duration) time.Duration {
	if c.SleepScale > 0 {
		d = time.Duration(float64(d) * c.SleepScale)
	}
	return d
}

// Of returns the time in a row of the table, as scaled by the clock.
func (c Clock) Of(row string) time.Duration {
	if !c.Real {
		return 0
	}
	return c.scaled(durations[row].time)
}

// Command returns the time of a command line, and whether its program waits by itself, between its steps.
func (c Clock) Command(args []string) (d time.Duration, itself bool) {
	row := find(args)
	if !c.Real {
		return 0, row.steps
	}
	return c.scaled(row.time), row.steps
}

func (c Clock) scaled(d time.Duration) time.Duration {
	if c.Scale > 0 {
		d = time.Duration(float64(d) * c.Scale)
	}
	return d
}

// Sleep waits and reports whether ctx is still active afterwards.
func Sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// Long reports whether a command is in the table and so takes noticeable time.
func Long(args []string) bool {
	d := find(args)
	return d.steps || d.time >= 50*time.Millisecond
}

// find returns the row with the longest name that is a prefix of the command line. Options are ignored.
func find(args []string) duration {
	if len(args) == 0 {
		return duration{}
	}
	words := []string{path.Base(args[0])}
	if words[0] == "dpkg" && !slices.ContainsFunc(args[1:], func(a string) bool {
		return slices.Contains([]string{"-i", "--install", "--unpack", "--configure", "-r", "--remove", "-P", "--purge"}, a)
	}) {
		words[0] = "dpkg-query" // passes queries to dpkg-query
	}
	if words[0] == "flint" && slices.ContainsFunc(args[1:], func(a string) bool { return a == "b" || a == "burn" }) {
		words[0] = "flint burn" // its subcommand is the last word
	}
	for _, a := range args[1:] {
		if len(words) == 4 {
			break
		}
		if !strings.HasPrefix(a, "-") {
			if len(a) > 40 { // no row has such a long word, and a script would be copied here each time
				break
			}
			words = append(words, a)
		}
	}
	for n := len(words); n > 0; n-- {
		if d, ok := durations[strings.Join(words[:n], " ")]; ok {
			return d
		}
	}
	return duration{}
}
