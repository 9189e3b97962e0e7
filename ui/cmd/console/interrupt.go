package console

import (
	"context"
	"os"
	"syscall"
)

// Signalled runs do with a context that the first SIGINT or SIGTERM asks to stop and the second ends at once. SIGHUP,
// a lost SSH session, and SIGPIPE, a reader that has gone, do neither: the run goes on without a screen.
func Signalled(ctx context.Context, e *Env, do func(ctx context.Context, stop <-chan struct{}) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	signals, done := e.Interrupts()
	defer done()
	stop := make(chan struct{})
	finished := make(chan struct{})
	defer close(finished)
	go func() {
		asked := false
		for {
			select {
			case <-finished:
				return
			case sig := <-signals:
				if IsHangup(sig) {
					continue
				}
				if asked {
					cancel()
					return
				}
				asked = true
				close(stop)
			}
		}
	}()
	return do(ctx, stop)
}

// IsHangup tells signals that end a screen, not the work.
func IsHangup(sig os.Signal) bool { return sig == syscall.SIGHUP || sig == syscall.SIGPIPE }

// Interruptible stops do by its context when a signal comes.
func Interruptible(ctx context.Context, e *Env, do func(context.Context) error) error {
	return Signalled(ctx, e, func(ctx context.Context, stop <-chan struct{}) error {
		ctx, cancel := Stoppable(ctx, stop)
		defer cancel()
		return do(ctx)
	})
}

// Stoppable is a context that ends when stop is closed.
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
