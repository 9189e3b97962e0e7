// Package bracket opens and closes what must be around changes: a VM powered off, a host in maintenance mode, a host
// rebooted, its SSH service running. Nothing is forced: a guest is asked to shut down, a host is emptied before it goes.
package bracket

import (
	"context"
	"errors"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/place"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/wire"
)

// Options bound how long the brackets wait and say what the operator has consented to. Zero times are the defaults.
type Options struct {
	Shutdown time.Duration // for a guest to shut down; 5 min
	PowerOn  time.Duration // for a VM to come up; 10 min
	Evacuate time.Duration // for a host to become empty; 30 min
	Reboot   time.Duration // for a host to come back; 30 min

	// PowerOff allows to power off a guest that cannot be asked or does not obey. Data in it may be lost.
	PowerOff bool
	// ShellUser is who logs in by SSH on hosts, to be looked for among the exception users of lockdown mode; root when empty.
	ShellUser string
	// Resync tells how many bytes vSAN has to copy as a host of a vSAN cluster sees it. A host is not emptied before they are
	// copied, nor where that cannot be read: its objects may be the only whole ones. nil: nobody asks.
	Resync func(ctx context.Context, host string) (int64, error)
	// Look is how often Resync is asked while there is something; 10 s.
	Look time.Duration
	// Migrate moves running VMs away by vMotion before a host is told to enter maintenance mode: DRS does not.
	Migrate bool
	// Tools waits after power-on until VMware Tools run.
	Tools bool
}

func (o Options) filled() Options {
	set := func(d *time.Duration, to time.Duration) {
		if *d == 0 {
			*d = to
		}
	}
	set(&o.Shutdown, 5*time.Minute)
	set(&o.PowerOn, 10*time.Minute)
	set(&o.Evacuate, 30*time.Minute)
	set(&o.Reboot, 30*time.Minute)
	set(&o.Look, 10*time.Second)
	return o
}

// Of returns the brackets that vCenter can open and close.
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

// watch waits for a state within a limit; errLate when it is not reached. A wait that breaks is begun again a few times:
// what it waits for goes on without us.
func (s site) watch(ctx context.Context, ref place.Ref, limit time.Duration, until func(wire.Object) bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errLate)
	defer cancel()
	for try := 1; ; try++ {
		err := s.conn.Watch(ctx, ref, until)
		if context.Cause(ctx) == errLate {
			return errLate
		}
		if err == nil || try == wire.Tries || !wire.Pause(ctx, try) {
			return err
		}
	}
}

// state decodes what a bracket's State gave.
func state[T any](v backends.Value, target string) (T, error) {
	var out T
	if err := v.Decode(&out); err != nil {
		return out, backends.Errorf(backends.KindPermanent, target, "", "the state to leave is not known: %w", err)
	}
	return out, nil
}
