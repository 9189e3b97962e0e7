package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// longest is the limit of an operation whose own limit only its setter knows: no kind has a longer one.
const longest = 2 * time.Hour

// told is how many waits are named at a time: those that take longest.
const told = 3

// A voice tells what a run waits for whenever nothing else was said for a while. Every call to the world is a wait; see guard.
type voice struct {
	mu    sync.Mutex
	spoke time.Time // when the last line was sent
	waits []*wait   // in the order in which they began
	over  chan struct{}
	ended sync.WaitGroup
}

// A wait is one call to the world: for what, on which target, since when and for how long at most.
type wait struct {
	what, target string
	since        time.Time
	limit        time.Duration // 0: longest
}

func (w *wait) String() string {
	most := w.limit
	if most <= 0 {
		most = longest
	}
	return fmt.Sprintf("since %s, at most %s", w.since.Format(time.TimeOnly), span(most))
}

// span formats a limit: 30m, 2h.
func span(d time.Duration) string {
	s := d.Round(time.Second).String()
	if d >= time.Minute && d%time.Minute == 0 {
		s = strings.TrimSuffix(s, "0s")
	}
	if d >= time.Hour && d%time.Hour == 0 {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

type voiceKey struct{}

// speaking returns a context in which every guarded call is told, until the returned function is called.
func (r *runner) speaking(ctx context.Context) (context.Context, func()) {
	v := &r.voice
	v.spoke, v.over = time.Now(), make(chan struct{})
	if r.job.Sink == nil {
		return ctx, func() {}
	}
	v.ended.Go(func() {
		t := time.NewTicker(r.limits.Speak / 10)
		defer t.Stop()
		for {
			select {
			case <-v.over:
				return
			case text := <-r.job.Notices:
				r.emit(Event{Type: EventWaiting, Text: text})
			case <-t.C:
				r.tellWaits()
			}
		}
	})
	return context.WithValue(ctx, voiceKey{}, v), func() {
		close(v.over)
		v.ended.Wait()
	}
}

// tellWaits names the longest waits, if nothing was said for a while.
func (r *runner) tellWaits() {
	v := &r.voice
	v.mu.Lock()
	quiet := time.Since(v.spoke) >= r.limits.Speak*9/10
	waits := slices.Clone(v.waits)
	v.mu.Unlock()
	if !quiet {
		return
	}
	for i, w := range waits[:min(told, len(waits))] {
		text := w.String()
		if more := len(waits) - told; more > 0 && i == told-1 {
			text += fmt.Sprintf("; and for %d more", more)
		}
		r.emit(Event{Type: EventWaiting, Title: w.what, Text: text, Waits: w.target})
	}
}

// waiting notes a call until the returned function is called.
func waiting(ctx context.Context, what, target string, limit time.Duration) (over func()) {
	v, _ := ctx.Value(voiceKey{}).(*voice)
	if v == nil {
		return func() {}
	}
	w := &wait{what, target, time.Now(), limit}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.waits = append(v.waits, w)
	return func() {
		v.mu.Lock()
		defer v.mu.Unlock()
		v.waits = slices.DeleteFunc(v.waits, func(o *wait) bool { return o == w })
	}
}

// finishes says what a stop still waits for.
func (r *runner) finishes() string {
	v := &r.voice
	v.mu.Lock()
	defer v.mu.Unlock()
	var out []string
	for _, w := range v.waits[:min(told, len(v.waits))] {
		out = append(out, fmt.Sprintf("%s: %s (%s)", w.target, w.what, w))
	}
	if more := len(v.waits) - told; more > 0 {
		out = append(out, fmt.Sprintf("and %d more", more))
	}
	if len(out) == 0 {
		return "no step is running"
	}
	return "finishing " + strings.Join(out, "; ")
}
