package sh

import (
	"context"
	"sync"
)

// Locks are the advisory locks of one machine, as set by flock(2) on files and directories. The zero value is ready to use.
type Locks struct {
	mu   sync.Mutex
	held map[string]chan struct{} // by path; closed when the lock is released
}

// Take locks a file. It waits until the lock is free or ctx ends. The lock is held until release is called.
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
