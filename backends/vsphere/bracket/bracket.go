// Package bracket provides the states that changes need around them: a VM powered off, a host in maintenance mode, a host reboot,
// the SSH service running. Nothing is forced: guests are shut down, and hosts are evacuated first.
package bracket

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/place"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/wire"
)

// ShutdownLimit is the default of Options.Shutdown.
const ShutdownLimit = 5 * time.Minute

// Options are the time limits of brackets and what the operator has consented to. A zero time means the default.
type Options struct {
	Shutdown time.Duration // limit for a guest to shut down; default 5 min
	PowerOn  time.Duration // limit for a VM to start; default 10 min
	Evacuate time.Duration // limit for evacuating a host; default 30 min
	Reboot   time.Duration // limit for a host to come back; default 30 min

	// PowerOff allows powering off a guest that cannot be shut down or does not react. Its unsaved data may be lost.
	PowerOff bool
	// ShellUser is the account for SSH logins on hosts; it is looked up in the exception users of lockdown mode. Default root.
	ShellUser string
	// Resync returns how many bytes vSAN still has to copy, as a host of a vSAN cluster reports it. A host is not evacuated
	// before they are copied, or if the number cannot be read, because its objects may be the only complete ones. nil: not
	// checked.
	Resync func(ctx context.Context, host string) (int64, error)
	// Look is the polling interval of Resync; default 10 s.
	Look time.Duration
	// Migrate moves running VMs to other hosts by vMotion before a host enters maintenance mode, for VMs that DRS does not move.
	Migrate bool
	// Tools makes power-on wait until VMware Tools run.
	Tools bool
	// Wait bounds how long a limit is really waited for; errors name the limit. It is for a simulation in which everything that
	// comes back does so at once. Zero: no bound.
	Wait time.Duration
}

// bounded returns how long to wait for something with a limit.
func (o Options) bounded(limit time.Duration) time.Duration {
	if o.Wait > 0 {
		return min(limit, o.Wait)
	}
	return limit
}

func (o Options) filled() Options {
	o.Shutdown, o.PowerOn = cmp.Or(o.Shutdown, ShutdownLimit), cmp.Or(o.PowerOn, 10*time.Minute)
	o.Evacuate, o.Reboot = cmp.Or(o.Evacuate, 30*time.Minute), cmp.Or(o.Reboot, 30*time.Minute)
	o.Look = cmp.Or(o.Look, 10*time.Second)
	return o
}

// Of returns the brackets that are handled through vCenter.
func Of(conn *wire.Conn, places *place.Places, o Options) map[backends.BracketKind]backends.Bracket {
	s := site{conn: conn, places: places, opt: o.filled(), leaving: newLeaving()}
	return map[backends.BracketKind]backends.Bracket{
		backends.BracketVMPower:     vmPower{s},
		backends.BracketMaintenance: maintenance{s},
		backends.BracketReboot:      reboot{s},
		backends.BracketSSH:         shell{s},
	}
}

type site struct {
	conn   *wire.Conn
	places *place.Places
	opt    Options

	leaving *leaving
}

// errLate ends a wait that took longer than its limit.
var errLate = errors.New("it took too long")

// within returns a context that ends with a limit, or before it with its own, and the limit that is in force. The wait is told: what for,
// and how long at most. late reports whether a limit has ended it.
func (s site) within(ctx context.Context, what, target string, limit time.Duration) (within context.Context, inForce time.Duration,
	late func() bool, over func()) {
	inForce = backends.InForce(ctx, limit)
	ctx, cancel := context.WithTimeoutCause(ctx, s.opt.bounded(limit), errLate)
	within, told := (*backends.Voice)(nil).Waiting(ctx, what, target, limit)
	return within, inForce, func() bool { return ctx.Err() == context.DeadlineExceeded }, func() { told(); cancel() }
}

// watch waits for a state within a limit; errLate if it is not reached, with the limit that was in force. If the wait is interrupted
// it is repeated a few times, because the operation continues in vCenter.
func (s site) watch(ctx context.Context, ref place.Ref, what, target string, limit time.Duration,
	until func(wire.Object) bool) (time.Duration, error) {
	ctx, limit, late, over := s.within(ctx, what, target, limit)
	defer over()
	for try := 1; ; try++ {
		err := s.conn.Watch(ctx, ref, until)
		if late() {
			return limit, errLate
		}
		if err == nil || try == wire.Tries || !wire.Pause(ctx, try) {
			return limit, err
		}
	}
}

func state[T any](v backends.Value, target string) (T, error) {
	return backends.Decoded[T](v, target, "the state to leave is not known")
}

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
