package engine

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
)

// A Backoff says how often and how long something transient is tried again. Zero fields take the defaults.
type Backoff struct {
	Tries int           // 4
	First time.Duration // wait before the second try, doubled for every further one: 500 ms
	Most  time.Duration // longest wait: 10 s
}

// Retry puts a retry around every setter: reads and sets that fail as KindTransient are tried again, which both allow.
// Anything else, a change by somebody else (KindConflict) too, is for the operator. A setter that stands under several
// kinds still merges them.
func Retry(setters map[backends.Kind]backends.Setter, b Backoff) map[backends.Kind]backends.Setter {
	out := make(map[backends.Kind]backends.Setter, len(setters))
	wrapped := map[any]backends.Setter{}
	for kind, s := range setters {
		id := identity(s)
		if wrapped[id] == nil {
			wrapped[id] = b.around(s)
		}
		out[kind] = wrapped[id]
	}
	return out
}

// around keeps what else the setter can do; each combination is a type of its own, as interfaces are asked for by type.
func (b Backoff) around(s backends.Setter) backends.Setter {
	one := retrySetter{s, b.withDefaults()}
	many, isMany := s.(backends.ManySetter)
	reader, isReader := s.(backends.ManyReader)
	keep, isKeeper := s.(backends.Keeper)
	switch {
	case isMany && isReader:
		return &struct {
			retryMany
			retryReader
		}{retryMany{one, many}, retryReader{reader, one.b}}
	case isMany && isKeeper:
		return &struct {
			retryMany
			backends.Keeper
		}{retryMany{one, many}, keep}
	case isMany:
		return &retryMany{one, many}
	case isKeeper:
		return &struct {
			retrySetter
			backends.Keeper
		}{one, keep}
	case isReader:
		return &struct {
			retrySetter
			retryReader
		}{one, retryReader{reader, one.b}}
	}
	return &one
}

func (b Backoff) withDefaults() Backoff {
	if b.Tries <= 0 {
		b.Tries = 4
	}
	if b.First <= 0 {
		b.First = 500 * time.Millisecond
	}
	if b.Most <= 0 {
		b.Most = 10 * time.Second
	}
	return b
}

// do calls f until it is not transient, the tries are used up or ctx ends.
func (b Backoff) do(ctx context.Context, f func() error) error {
	wait := b.First
	for try := 1; ; try++ {
		err := f()
		if backends.KindOf(err) != backends.KindTransient || try == b.Tries {
			return err
		}
		// Up to a quarter more, so that many targets do not come back in step.
		t := time.NewTimer(wait + rand.N(wait/4+1))
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return err
		}
		wait = min(2*wait, b.Most)
	}
}

type retrySetter struct {
	backends.Setter
	b Backoff
}

func (r *retrySetter) Read(ctx context.Context, s backends.Setting) (v backends.Value, err error) {
	err = r.b.do(ctx, func() error {
		v, err = r.Setter.Read(ctx, s)
		return err
	})
	return v, err
}

func (r *retrySetter) Set(ctx context.Context, s backends.Setting, to backends.Value, p backends.Progress) error {
	return r.b.do(ctx, func() error { return r.Setter.Set(ctx, s, to, p) })
}

type retryMany struct {
	retrySetter
	many backends.ManySetter
}

func (r *retryMany) Parent(s backends.Setting) string { return r.many.Parent(s) }

// SetMany tries again only those that failed as transient.
func (r *retryMany) SetMany(ctx context.Context, as []backends.Assignment, p backends.Progress) []error {
	out := make([]error, len(as))
	left := make([]int, len(as))
	for i := range left {
		left[i] = i
	}
	_ = r.b.do(ctx, func() error { // the errors stand in out
		part := make([]backends.Assignment, len(left))
		for k, i := range left {
			part[k] = as[i]
		}
		var again []int
		var transient error
		for k, err := range r.many.SetMany(ctx, part, p) {
			out[left[k]] = err
			if backends.KindOf(err) == backends.KindTransient {
				again, transient = append(again, left[k]), err
			}
		}
		left = again
		return transient
	})
	return out
}

type retryReader struct {
	reader backends.ManyReader
	b      Backoff
}

func (r *retryReader) ReadMany(ctx context.Context, ss []backends.Setting) (values []backends.Value, errs []error) {
	_ = r.b.do(ctx, func() error { // the errors stand in errs
		values, errs = r.reader.ReadMany(ctx, ss)
		for _, err := range errs {
			if backends.KindOf(err) == backends.KindTransient {
				return err
			}
		}
		return nil
	})
	return values, errs
}
