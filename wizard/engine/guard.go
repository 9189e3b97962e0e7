package engine

import (
	"context"
	"errors"
	"runtime/debug"
	"strings"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
)

type answer[T any] struct {
	value T
	err   error
}

// guard calls f, with a time limit if there is one. A panic becomes an error. After the limit or the end of its context, guard
// waits for f for the time grace; if f still does not return it is abandoned, so that the run does not hang.
func guard[T any](ctx context.Context, limit, grace time.Duration, target, what string, f func(context.Context) (T, error)) (T, error) {
	var limited context.Context
	var cancel context.CancelFunc
	if limit > 0 {
		limited, cancel = context.WithTimeout(ctx, limit)
	} else {
		limited, cancel = context.WithCancel(ctx)
	}
	defer cancel()
	limited, over := (*backends.Voice)(nil).Waiting(limited, what, target, limit)
	defer over()
	back := make(chan answer[T], 1)
	go func() { back <- recovered(limited, target, what, f) }()

	var a answer[T]
	select {
	case a = <-back:
	case <-limited.Done():
		late := time.NewTimer(grace)
		defer late.Stop()
		select {
		case a = <-back:
		case <-late.C:
			a.err = context.Cause(limited)
		}
	}
	if a.err == nil {
		return a.value, nil
	}
	switch {
	case ctx.Err() != nil && isContext(a.err):
		a.err = backends.Interruptedf(target, "Run rdma-setup resume.", "%s: %w", what, a.err)
	case limited.Err() != nil && isContext(a.err):
		a.err = backends.Unreachablef(target, "Find out what the target is doing, then run rdma-setup resume.",
			"%s: not done within %s: %w", what, limit, a.err)
	}
	return a.value, a.err
}

func isContext(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

func recovered[T any](ctx context.Context, target, what string, f func(context.Context) (T, error)) (a answer[T]) {
	defer func() {
		if p := recover(); p != nil {
			a.err = backends.Permanentf(target, "This is a defect of rdma-setup; please report it with the log.",
				"%s: panic: %v at %s", what, p, panicAt(string(debug.Stack())))
		}
	}()
	v, err := f(ctx)
	return answer[T]{v, err}
}

// panicAt returns the line of the stack that panicked: the one after the runtime's own.
func panicAt(stack string) string {
	_, after, found := strings.Cut(stack, "\npanic(")
	if !found {
		return "an unknown place"
	}
	lines := strings.Split(after, "\n")
	for i := 1; i+1 < len(lines); i++ {
		if strings.HasPrefix(lines[i], "runtime.") || !strings.HasPrefix(lines[i+1], "\t") {
			continue
		}
		at, _, _ := strings.Cut(strings.TrimSpace(lines[i+1]), " ")
		return at
	}
	return "an unknown place"
}

// speaking returns a context in which every guarded call is told, until the returned function is called.
func (r *runner) speaking(ctx context.Context) (context.Context, func()) {
	if r.job.Sink == nil {
		return ctx, func() {}
	}
	ready := make(chan struct{})
	r.voice = backends.NewVoice(r.limits.Speak, r.job.Notices, func(w backends.Wait) {
		<-ready
		r.emit(Event{Type: EventWaiting, Title: w.What, Text: w.Text, Waits: w.Target})
	})
	close(ready)
	return backends.WithVoice(ctx, r.voice), r.voice.Close
}

func (r *runner) finishes() string {
	if waits := r.voice.Waits(); len(waits) > 0 {
		return "finishing " + strings.Join(waits, "; ")
	}
	return "no step is running"
}
