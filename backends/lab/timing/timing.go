// Package timing defines how long the commands of the lab's guests and hosts take. By default they take no time; with
// real command times, each takes as long as the real program, times a scale.
package timing

import (
	"context"
	"path"
	"slices"
	"strings"
	"time"
)

// A Clock defines how long commands take. The zero Clock takes no time. It may be copied.
type Clock struct {
	Real  bool    // commands take the times of the table
	Scale float64 // of all times; 0 is 1
}

// Of returns the duration for a row of the table with the clock applied.
func (c Clock) Of(row string) time.Duration {
	if !c.Real {
		return 0
	}
	return c.scaled(durations[row].time)
}

// Command returns the time of a command line, and whether its program spends it by itself, between its steps.
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

// Sleep waits and reports whether ctx is still alive.
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

// find returns the row with the longest name that the command line begins with; options do not count.
func find(args []string) duration {
	if len(args) == 0 {
		return duration{}
	}
	words := []string{path.Base(args[0])}
	if words[0] == "dpkg" && !slices.ContainsFunc(args[1:], func(a string) bool {
		return slices.Contains([]string{"-i", "--install", "--unpack", "--configure", "-r", "--remove", "-P", "--purge"}, a)
	}) {
		words[0] = "dpkg-query" // it passes prompts on
	}
	if words[0] == "flint" && slices.ContainsFunc(args[1:], func(a string) bool { return a == "b" || a == "burn" }) {
		words[0] = "flint burn" // its keyword comes last
	}
	for _, a := range args[1:] {
		if len(words) == 4 {
			break
		}
		if !strings.HasPrefix(a, "-") {
			if len(a) > 40 { // no row's name has such a word, and a script would be copied here each time
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
