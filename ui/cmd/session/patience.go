package session

import (
	"context"
	"sync"
	"time"

	"github.com/rdma-setup/rdma-setup/backends/ssh"
	"github.com/rdma-setup/rdma-setup/ui/live"
)

// pauses measures the time of prompts to the operator, so that time limits do not count it.
type pauses struct {
	mu    sync.Mutex
	open  int
	since time.Time
	spent time.Duration
}

// asking starts a prompt and returns the function that ends it.
func (s *Session) asking() (answered func()) {
	p := &s.pauses
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open++; p.open == 1 {
		p.since = time.Now()
	}
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.open--; p.open == 0 {
			p.spent += time.Since(p.since)
		}
	}
}

// total returns the total time of prompts so far.
func (p *pauses) total() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open > 0 {
		return p.spent + time.Since(p.since)
	}
	return p.spent
}

// within returns a context with a limit that excludes the time of prompts.
func (s *Session) within(ctx context.Context, limit time.Duration, cause error) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	began, before := time.Now(), s.pauses.total()
	var look func()
	look = func() {
		left := limit + s.pauses.total() - before - time.Since(began)
		if left <= 0 {
			cancel(cause)
			return
		}
		timer := time.AfterFunc(max(left, 10*time.Millisecond), look)
		context.AfterFunc(ctx, func() { timer.Stop() })
	}
	look()
	return ctx, func() { cancel(context.Canceled) }
}

// Asks sets the function that prompts while a screen uses the terminal.
func (s *Session) Asks(ask live.Ask) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.person = ask
}

// onScreen returns the function that prompts on the screen; nil if there is no screen.
func (s *Session) onScreen() live.Ask {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.person
}

// trusted asks on the screen about a host key, which is added to the first file if the answer is yes.
func (s *Session) trusted(ctx context.Context, k ssh.HostKey, files []string) bool {
	ask := s.onScreen()
	if ask == nil || len(files) == 0 {
		return false
	}
	return ask(ctx, live.Question{Key: &live.HostKey{Who: k.Target.String(), Address: k.Address, Type: k.Type, Fingerprint: k.Fingerprint, KeptIn: files[0]}}).Yes
}
