package backends

import (
	"context"
	"iter"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// A Call is a finished SOAP call or vCenter task, an SSH login, or a finished command on a host or in a guest. It holds no secret: the
// payload names what was requested, never fields or input that may contain a secret.
type Call struct {
	ID             string // id of the request; vCenter writes the id of a SOAP call to its own logs
	Method         string // "RetrievePropertiesEx", "esxcli network nic list", "ssh systemctl"
	Target         string
	Started        time.Time
	Took           time.Duration
	Outcome        string // "ok", "exit 1", or the name of a fault
	Sent, Received int64  // bytes
	Payload        string // a summary
}

// A Trace receives every finished call. It may be nil. It must be safe for concurrent use.
type Trace func(Call)

// Reads are the answers of one operation's reads. An operation reads a setting, records what it may touch, sets it, observes it and
// reads it back; setters and keepers see only their own part of that, and several ask the same question with nothing in between.
// Reads answers a repeated one. Whoever changes something, or runs anything else on a target, forgets all answers first. A nil
// *Reads keeps nothing.
type Reads struct {
	mu   sync.Mutex
	kept map[string]any
}

type readsKey struct{}

// WithReads returns the context of one operation.
func WithReads(ctx context.Context) context.Context {
	return context.WithValue(ctx, readsKey{}, &Reads{kept: map[string]any{}})
}

// ReadsOf returns the reads of the operation that has the context; nil outside operations.
func ReadsOf(ctx context.Context) *Reads {
	r, _ := ctx.Value(readsKey{}).(*Reads)
	return r
}

// Knows reports whether an answer is kept.
func (r *Reads) Knows(question string) bool {
	if r == nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	_, known := r.kept[question]
	return known
}

// Keep keeps an answer that came together with another one.
func (r *Reads) Keep(question string, answer any) {
	if r != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.kept[question] = answer
	}
}

// Forget drops all answers.
func (r *Reads) Forget() {
	if r != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		clear(r.kept)
	}
}

// Again returns the kept answer to a question, else it asks, and keeps the answer unless there was an error.
func Again[T any](ctx context.Context, question string, ask func() (T, error)) (T, error) {
	r := ReadsOf(ctx)
	if r == nil {
		return ask()
	}
	r.mu.Lock()
	was, known := r.kept[question].(T)
	r.mu.Unlock()
	if known {
		return was, nil
	}
	now, err := ask()
	if err == nil {
		r.mu.Lock()
		r.kept[question] = now
		r.mu.Unlock()
	}
	return now, err
}

// Sleep waits; it returns false if ctx ends first.
func Sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// Stoppable returns a context that ends when stop is closed.
func Stoppable(ctx context.Context, stop <-chan struct{}) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		select {
		case <-stop:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// Apart is how many machines are worked on or waited for at a time where that loads only themselves, if parallel of them may load a
// shared system: so many that the silent ones of a host hold up none that answers.
func Apart(parallel int) int {
	if parallel <= 1 {
		return 1
	}
	return 8 * parallel
}

// InParallel calls do for every item, at most limit at a time, and returns when all calls have ended.
func InParallel[K, V any](items iter.Seq2[K, V], limit int, do func(K, V)) {
	var g errgroup.Group
	g.SetLimit(limit)
	for k, v := range items {
		g.Go(func() error {
			do(k, v)
			return nil
		})
	}
	_ = g.Wait() // do stores its own errors
}

// Took is how long operations took at a site, according to vCenter's history of tasks and events.
type Took struct {
	Reboot   []time.Duration `json:"reboot,omitempty"`   // of a host, from the request until vCenter was connected to it again
	Evacuate []time.Duration `json:"evacuate,omitempty"` // until a host was in maintenance mode, whether VMs ran on it or not
	Shutdown []time.Duration `json:"shutdown,omitempty"` // from the request to a guest until its VM was off
}

// Median returns the median of durations, 0 if there are none.
func Median(all []time.Duration) time.Duration {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(all))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}
