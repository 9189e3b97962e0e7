package backends

import (
	"context"
	"sync"
)

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
