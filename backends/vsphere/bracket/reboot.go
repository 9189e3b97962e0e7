package bracket

import (
	"context"
	"errors"
	"time"

	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/place"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/wire"
)

// A hostState is the state of a host that the brackets need.
type hostState struct {
	ref         place.Ref
	connection  types.HostSystemConnectionState
	maintenance bool
	booted      time.Time
}

func (s site) host(ctx context.Context, t backends.Ref) (hostState, error) {
	o, err := s.places.One(ctx, t, "runtime.connectionState", "runtime.inMaintenanceMode", "runtime.bootTime")
	return stateOf(o.Ref, o), err
}

func stateOf(ref place.Ref, o wire.Object) hostState {
	return hostState{
		ref: ref, connection: wire.Value[types.HostSystemConnectionState](o, "runtime.connectionState"),
		maintenance: wire.Value[bool](o, "runtime.inMaintenanceMode"), booted: wire.Value[time.Time](o, "runtime.bootTime"),
	}
}

// reboot keeps a host in maintenance mode during the changes and reboots it afterwards. Its state identifies the previous boot,
// so that closing it again after a crash does not reboot twice.
type reboot struct{ site }

// A Boot is the state of a reboot bracket.
type Boot struct {
	Maintenance bool      `json:"maintenance"` // the host was in maintenance mode before
	Booted      time.Time `json:"booted"`      // the host's previous boot time
	Read        time.Time `json:"read"`        // when that was read, by vCenter's clock
}

// clockStep is the largest step by which the clock of a running host is adjusted: ntpd exits rather than step by more (ntpd(8),
// "panic threshold", 1000 s).
const clockStep = 1000 * time.Second

// over reports whether a host has booted since the state was read. vSphere does not identify boots, it only reports the boot
// time, which a host computes from its clock and its uptime: adjusting the clock shifts it. So the boot time must have changed by
// more than clockStep, or be later than the time at which it was read, or the host must have been seen disconnected since.
func (b Boot) over(h hostState, away bool) bool {
	moved := h.booted.Sub(b.Booted)
	switch {
	case h.booted.IsZero() || moved <= time.Second: // it is recomputed each time and may vary
		return false
	case away:
		return true
	case !b.Read.IsZero() && h.booted.After(b.Read):
		return true
	}
	return !b.Booted.IsZero() && moved > clockStep
}

func (b reboot) State(ctx context.Context, t backends.Ref) (backends.Value, error) {
	h, err := b.host(ctx, t)
	if err != nil {
		return backends.Absent, wire.Explain(err, t.Name, "read the host's state")
	}
	now, err := methods.GetCurrentTime(ctx, b.conn.VIM())
	if err != nil {
		return backends.Absent, wire.Explain(err, t.Name, "read vCenter's clock")
	}
	return backends.ValueOf(Boot{Maintenance: h.maintenance, Booted: h.booted.UTC(), Read: now.UTC()}), nil
}

func (b reboot) Open(ctx context.Context, t backends.Ref, progress backends.Progress) error {
	return b.enter(ctx, t, progress)
}

// Close reboots the host unless it has booted since leave, waits for it to come back, and ends maintenance mode if the host was
// not in it before.
func (b reboot) Close(ctx context.Context, t backends.Ref, leave backends.Value, progress backends.Progress) error {
	const what = "reboot"
	before, err := state[Boot](leave, t.Name)
	if err != nil {
		return err
	}
	h, err := b.host(ctx, t)
	if err != nil {
		return wire.Explain(err, t.Name, what)
	}
	away := h.connection != types.HostSystemConnectionStateConnected
	if away || !before.over(h, false) {
		// A disconnected host may be in the middle of the reboot that a crashed run did not wait for.
		if !away {
			if err := b.enter(ctx, t, nil); err != nil { // the bracket's opening may have been interrupted before the host was in it
				return err
			}
			if err := b.send(ctx, t, h, before); err != nil {
				return wire.Explain(err, t.Name, what)
			}
			progress.Report(10)
		}
		limit, err := b.watch(ctx, h.ref, "wait until it is back", t.Name, b.opt.Reboot, func(o wire.Object) bool {
			now := stateOf(h.ref, o)
			if now.connection != types.HostSystemConnectionStateConnected {
				away = true
				return false
			}
			return before.over(now, away)
		})
		if errors.Is(err, errLate) {
			return backends.Unreachablef(t.Name, "look at the host's console; once it is connected again, run rdma-setup resume",
				"%s: the host has not come back within %s", what, limit)
		}
		if err != nil {
			return wire.Explain(err, t.Name, what)
		}
	}
	progress.Report(90)
	if before.Maintenance {
		return nil
	}
	if err := b.exit(ctx, t, nil); err != nil {
		return err
	}
	progress.Report(100)
	return nil
}

// Happened reports whether the host has booted since: anything set from now on needs another boot.
func (b reboot) Happened(ctx context.Context, t backends.Ref, leave backends.Value) (bool, error) {
	before, err := state[Boot](leave, t.Name)
	if err != nil {
		return false, err
	}
	h, err := b.host(ctx, t)
	return err == nil && h.connection == types.HostSystemConnectionStateConnected && before.over(h, false),
		wire.Explain(err, t.Name, "read the host's boot time")
}

// Abort ends maintenance mode without a reboot if the host was not in it before.
func (b reboot) Abort(ctx context.Context, t backends.Ref, found backends.Value, progress backends.Progress) error {
	before, err := state[Boot](found, t.Name)
	if err != nil || before.Maintenance {
		return err
	}
	return b.exit(ctx, t, progress)
}

// send requests the reboot, unless an earlier request is still running. Without force, vCenter refuses a host that is not in
// maintenance mode.
func (b reboot) send(ctx context.Context, t backends.Ref, h hostState, before Boot) error {
	o := order{site: b.site, machine: h.ref, op: opReboot,
		send: wire.Starts(b.conn, methods.RebootHost_Task, &types.RebootHost_Task{This: h.ref, Force: false}),
		done: func(ctx context.Context) (bool, error) {
			now, err := b.host(ctx, t)
			return now.connection != types.HostSystemConnectionStateConnected || before.over(now, false), err
		},
	}
	if found, err := o.adopt(ctx); found {
		return err
	}
	_, err := o.carryOut(ctx)
	return err
}

// Back waits until a disconnected host is connected again, at most for limit; otherwise it returns an error of kind unreachable.
func Back(ctx context.Context, conn *wire.Conn, places *place.Places, host string, limit time.Duration) error {
	const what = "wait for the host to come back"
	s := site{conn: conn, places: places}
	ref, err := places.Find(ctx, backends.HostRef(host))
	if err != nil {
		return wire.Explain(err, host, what)
	}
	limit, err = s.watch(ctx, ref, "wait until it is back", host, limit, func(o wire.Object) bool {
		return stateOf(ref, o).connection == types.HostSystemConnectionStateConnected
	})
	if errors.Is(err, errLate) {
		return backends.Unreachablef(host, "look at the host's console; once it is connected again, run rdma-setup resume",
			"the host has not come back within %s", limit)
	}
	return wire.Explain(err, host, what)
}
