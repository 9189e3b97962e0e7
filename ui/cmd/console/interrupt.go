package console

import (
	"context"
	"os"
	"syscall"
)

// Signalled runs do with a context that the first SIGINT or SIGTERM requests to stop and the second cancels. SIGHUP, a lost SSH
// session, and SIGPIPE, a closed reader, do neither: the run continues without a screen.
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

// IsHangup reports whether a signal ends only the screen, not the run.
func IsHangup(sig os.Signal) bool { return sig == syscall.SIGHUP || sig == syscall.SIGPIPE }

// Interruptible cancels do's context on a signal.
func Interruptible(ctx context.Context, e *Env, do func(context.Context) error) error {
	return Signalled(ctx, e, func(ctx context.Context, stop <-chan struct{}) error {
		ctx, cancel := Stoppable(ctx, stop)
		defer cancel()
		return do(ctx)
	})
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
