package backends

import (
	"cmp"
	"context"
	"errors"
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

// A Voice tells what is waited for: everything whenever nothing else was said for a while, and each long wait once in any case. In a
// run every call to the world is a wait; see guard.
type Voice struct {
	every time.Duration
	say   func(Wait)
	over  chan struct{}
	ended sync.WaitGroup

	mu    sync.Mutex
	spoke time.Time // when the last line was sent
	waits []*wait   // in the order in which they began
}

// A Wait is what a voice says: what is waited for, on which target, since when and for how long at most. A notice has a text alone.
type Wait struct{ What, Target, Text string }

// String returns a wait as one line.
func (w Wait) String() string {
	var parts []string
	for _, s := range []string{w.Target, w.What, w.Text} {
		if s != "" {
			parts = append(parts, Clean(s))
		}
	}
	return strings.Join(parts, ": ")
}

// A wait is one call to the world: for what, on which target, since when and for how long at most.
type wait struct {
	what, target string
	since        time.Time
	limit        time.Duration // 0: longest; negative: what says it
	told         bool
	of           *wait // the wait that it is a part of
	parts        int   // the parts of it that are waited for now: they are told instead
}

func (w *wait) String() string {
	since := "since " + w.since.Format(time.TimeOnly)
	if w.limit < 0 {
		return since
	}
	return since + ", at most " + span(cmp.Or(w.limit, longest))
}

// span formats a limit: 30m, 2h.
func span(d time.Duration) string {
	d = d.Round(time.Second)
	s := d.String()
	if d >= time.Minute && d%time.Minute == 0 {
		s = strings.TrimSuffix(s, "0s")
	}
	if d >= time.Hour && d%time.Hour == 0 {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// NewVoice returns a voice that speaks at least every so often while something is waited for, and passes on notices, until it is
// closed.
func NewVoice(every time.Duration, notices <-chan string, say func(Wait)) *Voice {
	v := &Voice{every: every, say: say, spoke: time.Now(), over: make(chan struct{})}
	v.ended.Go(func() {
		t := time.NewTicker(v.every / 10)
		defer t.Stop()
		for {
			select {
			case <-v.over:
				return
			case text := <-notices:
				v.say(Wait{Text: text})
			case <-t.C:
				v.tell()
			}
		}
	})
	return v
}

// Close makes the voice silent.
func (v *Voice) Close() {
	if v != nil {
		close(v.over)
		v.ended.Wait()
	}
}

// Spoke notes that something was said.
func (v *Voice) Spoke() {
	if v != nil {
		v.mu.Lock()
		defer v.mu.Unlock()
		v.spoke = time.Now()
	}
}

// tell names the longest waits.
func (v *Voice) tell() {
	v.mu.Lock()
	quiet := time.Since(v.spoke) >= v.every*9/10
	var now []*wait
	more := 0
	for _, w := range v.waits {
		switch {
		case w.parts > 0:
		case !quiet && (w.told || time.Since(w.since) < v.every):
		case len(now) == told:
			more++
		default:
			w.told = true
			now = append(now, w)
		}
	}
	if len(now) > 0 {
		v.spoke = time.Now()
	}
	v.mu.Unlock()
	for i, w := range now {
		text := w.String()
		if quiet && more > 0 && i == told-1 {
			text += fmt.Sprintf("; and for %d more", more)
		}
		v.say(Wait{What: w.what, Target: w.target, Text: text})
	}
}

type voiceKey struct{}

// A part is what a context says about waits: the voice that tells them, and the one that they are a part of.
type part struct {
	*Voice
	of *wait
}

// WithVoice returns a context whose waits a voice tells, unless another one does so already.
func WithVoice(ctx context.Context, v *Voice) context.Context {
	if p, is := ctx.Value(voiceKey{}).(part); is && p.Voice != nil {
		return ctx
	}
	return context.WithValue(ctx, voiceKey{}, part{Voice: v})
}

// Waiting notes that something is waited for until the returned function is called: what, on which target, and for how long at most;
// a negative limit means that what says it. Within a run, the voice of the run tells it. What is waited for with the returned context is
// a part of this wait, with its own limit: it is told instead, on the same target.
func (v *Voice) Waiting(ctx context.Context, what, target string, limit time.Duration) (within context.Context, over func()) {
	p, _ := ctx.Value(voiceKey{}).(part)
	if p.Voice == nil {
		p.Voice = v
	}
	if v = p.Voice; v == nil {
		return ctx, func() {}
	}
	w := &wait{what: what, target: target, since: time.Now(), limit: limit, of: p.of}
	if _, is := ctx.Deadline(); is && limit >= 0 {
		w.limit = InForce(ctx, cmp.Or(limit, longest))
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if w.of != nil {
		w.of.parts++
		w.what, w.target = w.of.what+", "+what, w.of.target
	}
	v.waits = append(v.waits, w)
	return context.WithValue(ctx, voiceKey{}, part{v, w}), func() {
		v.mu.Lock()
		defer v.mu.Unlock()
		if w.of != nil {
			w.of.parts--
		}
		v.waits = slices.DeleteFunc(v.waits, func(o *wait) bool { return o == w })
	}
}

// InForce returns the limit that ends a wait which begins now: its own, or what is left of that of its context.
func InForce(ctx context.Context, limit time.Duration) time.Duration {
	if end, is := ctx.Deadline(); is {
		return min(limit, max(time.Until(end).Round(time.Second), time.Second))
	}
	return limit
}

// A Poll is a wait for something that nothing announces.
type Poll struct {
	What, Target string
	Limit        time.Duration // 0: that of the context; negative: look has its own, and What says it
	Every        time.Duration // between two looks
	Most         time.Duration // longest pause: each is twice as long as the one before; 0: Every
	Whole        bool          // a look is not cut off by the limit
}

// ErrLate is the error of a poll whose limit has passed.
var ErrLate = errors.New("it did not come in time")

// Until looks again and again until it is over or fails, the limit has passed, or ctx has ended. The wait is told as a part of
// the one that ctx belongs to.
func (p Poll) Until(ctx context.Context, look func(context.Context) (over bool, err error)) error {
	limited := ctx
	if p.Limit > 0 {
		var cancel context.CancelFunc
		limited, cancel = context.WithTimeoutCause(ctx, p.Limit, ErrLate)
		defer cancel()
	}
	within, over := (*Voice)(nil).Waiting(limited, p.What, p.Target, p.Limit)
	defer over()
	if p.Whole {
		within = context.WithValue(ctx, voiceKey{}, within.Value(voiceKey{}))
	}
	for pause := p.Every; ; pause = min(2*pause, max(p.Most, p.Every)) {
		switch over, err := look(within); {
		case err != nil && !p.Whole && ctx.Err() == nil && context.Cause(limited) == ErrLate:
			return ErrLate // the look was cut off
		case over || err != nil:
			return err
		}
		if !Sleep(limited, pause) {
			return context.Cause(limited)
		}
	}
}

// Waits returns what is waited for as a whole: the longest waits, and how many more there are. Of a wait without a limit of its own, it
// is the part that is waited for now.
func (v *Voice) Waits() []string {
	if v == nil {
		return nil
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	var out []string
	more := 0
	for _, w := range v.waits {
		switch {
		case w.limit == 0 && w.parts > 0 || w.of != nil && w.of.limit != 0:
		case len(out) == told:
			more++
		default:
			out = append(out, strings.TrimPrefix(fmt.Sprintf("%s: %s (%s)", w.target, w.what, w), ": "))
		}
	}
	if more > 0 {
		out = append(out, fmt.Sprintf("and %d more", more))
	}
	return out
}
