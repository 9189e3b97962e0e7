package sh

import (
	"context"
	"sync"
)

// Locks are the advisory locks of one machine that flock(2) takes on files and directories. The zero value is ready.
type Locks struct {
	mu   sync.Mutex
	held map[string]chan struct{} // by path; closed when the lock is released
}

// Take takes the lock of a file, and waits for it until ctx ends. The lock lasts until release is called.
func (l *Locks) Take(ctx context.Context, file string) (release func(), ok bool) {
	for {
		l.mu.Lock()
		other := l.held[file]
		if other == nil {
			if l.held == nil {
				l.held = map[string]chan struct{}{}
			}
			mine := make(chan struct{})
			l.held[file] = mine
			l.mu.Unlock()
			return func() {
				l.mu.Lock()
				defer l.mu.Unlock()
				delete(l.held, file)
				close(mine)
			}, true
		}
		l.mu.Unlock()
		select {
		case <-other:
		case <-ctx.Done():
			return nil, false
		}
	}
}
