package backends

import (
	"context"
	"iter"
	"time"

	"golang.org/x/sync/errgroup"
)

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
