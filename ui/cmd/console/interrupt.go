package console

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/rdma-setup/rdma-setup/backends"
)

// Signalled runs do with a context that the first SIGINT or SIGTERM requests to stop and the second cancels. SIGHUP, a lost SSH
// session, and SIGPIPE, a closed reader, do neither: the run continues without a screen.
func Signalled(ctx context.Context, e *Env, do func(ctx context.Context, stop <-chan struct{}) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	signals, done := e.Interrupts()
	defer done()
	stop, finished := make(chan struct{}), make(chan struct{})
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
		ctx, cancel := backends.Stoppable(ctx, stop)
		defer cancel()
		return do(ctx)
	})
}

// watchSignals handles the signals that would end the process: a lost SSH session (SIGHUP) must not end a run, nor must a closed
// reader (SIGPIPE: "| head").
func watchSignals() (<-chan os.Signal, func()) {
	ch := make(chan os.Signal, 4)
	signal.Notify(ch, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
	return ch, func() { signal.Stop(ch) }
}
