package engine

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
)

// A Backoff says how often and how long to retry transient errors. Zero fields mean the defaults.
type Backoff struct {
	Tries int           // 4
	First time.Duration // wait before the second try, doubled for every further one: 500 ms
	Most  time.Duration // longest wait: 10 s
}

// Retry puts a retry around every setter: operations that fail with KindTransient are retried, which the contract of a setter
// allows. Any other error, including a change by someone else (KindConflict), is for the operator. A setter with several kinds
// still merges them.
func Retry(setters map[backends.Kind]backends.Setter, b Backoff) map[backends.Kind]backends.Setter {
	out := make(map[backends.Kind]backends.Setter, len(setters))
	wrapped := map[any]backends.Setter{}
	for kind, s := range setters {
		id := identity(s)
		if wrapped[id] == nil {
			wrapped[id] = &retry{backends.Wrapped{Setter: s}, b.withDefaults()}
		}
		out[kind] = wrapped[id]
	}
	return out
}

func (b Backoff) withDefaults() Backoff {
	b.Tries = cmp.Or(max(b.Tries, 0), 4)
	b.First = cmp.Or(max(b.First, 0), 500*time.Millisecond)
	b.Most = cmp.Or(max(b.Most, 0), 10*time.Second)
	return b
}

// do calls f until the error is not transient, the tries are used up or ctx ends.
func (b Backoff) do(ctx context.Context, f func() error) error {
	wait := b.First
	for try := 1; ; try++ {
		err := f()
		if backends.KindOf(err) != backends.KindTransient || try == b.Tries {
			return err
		}
		// Up to a quarter is added, so that many targets do not retry at the same time.
		if !backends.Sleep(ctx, wait+rand.N(wait/4+1)) {
			return err
		}
		wait = min(2*wait, b.Most)
	}
}

// retry is the decorator that Retry puts around a setter.
type retry struct {
	backends.Wrapped
	b Backoff
}

var _ backends.Decorator = (*retry)(nil)

// Read retries transient errors.
func (r *retry) Read(ctx context.Context, s backends.Setting) (backends.Value, error) {
	return again(ctx, r.b, func() (backends.Value, error) { return r.Wrapped.Read(ctx, s) })
}

// Set retries transient errors.
func (r *retry) Set(ctx context.Context, s backends.Setting, to backends.Value, p backends.Progress) error {
	return r.b.do(ctx, func() error { return r.Wrapped.Set(ctx, s, to, p) })
}

// SetMany retries only assignments that failed with a transient error.
func (r *retry) SetMany(ctx context.Context, as []backends.Assignment, p backends.Progress) []error {
	out := make([]error, len(as))
	left := make([]int, len(as))
	for i := range left {
		left[i] = i
	}
	_ = r.b.do(ctx, func() error { // the errors are in out
		part := backends.Each(left, func(i int) backends.Assignment { return as[i] })
		errs := r.Wrapped.SetMany(ctx, part, p)
		var next []int
		var transient error
		for k, i := range left {
			if len(errs) != len(part) {
				out[i] = fmt.Errorf("%d results for %d settings", len(errs), len(part))
				continue
			}
			out[i] = errs[k]
			if backends.KindOf(errs[k]) == backends.KindTransient {
				next, transient = append(next, i), errs[k]
			}
		}
		left = next
		return transient
	})
	return out
}

// ReadMany reads all settings again if one failed with a transient error.
func (r *retry) ReadMany(ctx context.Context, ss []backends.Setting) (values []backends.Value, errs []error) {
	_ = r.b.do(ctx, func() error { // the errors are in errs
		values, errs = r.Wrapped.ReadMany(ctx, ss)
		for _, err := range errs {
			if backends.KindOf(err) == backends.KindTransient {
				return err
			}
		}
		return nil
	})
	return values, errs
}

// Keep retries transient errors.
func (r *retry) Keep(ctx context.Context, s backends.Setting, to backends.Value) (backends.Kept, error) {
	return again(ctx, r.b, func() (backends.Kept, error) { return r.Wrapped.Keep(ctx, s, to) })
}

// Observe retries transient errors.
func (r *retry) Observe(ctx context.Context, s backends.Setting, kept backends.Kept) (backends.Kept, error) {
	return again(ctx, r.b, func() (backends.Kept, error) { return r.Wrapped.Observe(ctx, s, kept) })
}

// Restore retries transient errors.
func (r *retry) Restore(ctx context.Context, s backends.Setting, kept backends.Kept, p backends.Progress) error {
	return r.b.do(ctx, func() error { return r.Wrapped.Restore(ctx, s, kept, p) })
}

// again is do for a call with a result.
func again[T any](ctx context.Context, b Backoff, f func() (T, error)) (v T, err error) {
	err = b.do(ctx, func() error {
		v, err = f()
		return err
	})
	return v, err
}
