package bracket

import (
	"context"
	"sync"

	"github.com/rdma-setup/rdma-setup/backends/vsphere/place"
)

// leaving tracks the hosts that are being evacuated, so that none receives the VMs of another, and the VMs that were shut down
// and will start again. VMs are moved from one host at a time.
type leaving struct {
	moves chan struct{} // holds one token while VMs move

	mu    sync.Mutex
	hosts map[place.Ref]bool
	off   map[place.Ref]bool
}

func newLeaving() *leaving {
	return &leaving{moves: make(chan struct{}, 1), hosts: map[place.Ref]bool{}, off: map[place.Ref]bool{}}
}

// turn waits until no other host's VMs are being moved. The caller calls done when its own have moved.
func (l *leaving) turn(ctx context.Context) (done func(), err error) {
	select {
	case l.moves <- struct{}{}:
		return func() { <-l.moves }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// begin marks a host as being evacuated until end is called: it is then in maintenance mode, or stays in use.
func (l *leaving) begin(host place.Ref) (end func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hosts[host] = true
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.hosts, host)
	}
}

func (l *leaving) has(host place.Ref) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.hosts[host]
}

// shut records whether this program has a VM shut down.
func (l *leaving) shut(vm place.Ref, off bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if off {
		l.off[vm] = true
	} else {
		delete(l.off, vm)
	}
}

func (l *leaving) isOff(vm place.Ref) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.off[vm]
}
