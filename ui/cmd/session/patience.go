package session

import (
	"context"
	"sync"
	"time"

	"github.com/rdma-setup/rdma-setup/backends/ssh"
	"github.com/rdma-setup/rdma-setup/ui/live"
)

// pauses count the time that questions to the operator take: a limit of the other side's does not run while a person
// compares a fingerprint.
type pauses struct {
	mu    sync.Mutex
	open  int
	since time.Time
	spent time.Duration
}

// asking begins a question and gives what ends it.
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

// total is how long questions have been open so far.
func (p *pauses) total() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open > 0 {
		return p.spent + time.Since(p.since)
	}
	return p.spent
}

// within is a context with a limit that does not count the time of questions.
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

// Trusts has questions about host keys asked by ask, on the screen.
func (s *Session) Trusts(ask func(ctx context.Context, k live.HostKey) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trust = ask
}

// trusted asks on the screen about a host key that is kept in the first file when the answer is yes.
func (s *Session) trusted(ctx context.Context, k ssh.HostKey, files []string) bool {
	s.mu.Lock()
	ask := s.trust
	s.mu.Unlock()
	if ask == nil || len(files) == 0 {
		return false
	}
	return ask(ctx, live.HostKey{Who: k.Target.String(), Address: k.Address, Type: k.Type, Fingerprint: k.Fingerprint, KeptIn: files[0]})
}
