package bracket

import (
	"context"
	"time"

	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/wire"
)

// The states of a host's maintenance bracket.
const (
	inMaintenance = "maintenance"
	inService     = "normal"
)

// maintenance has a host empty and in maintenance mode. Its state is "maintenance" or "normal".
type maintenance struct{ site }

func (b maintenance) State(ctx context.Context, t backends.Ref) (backends.Value, error) {
	h, err := b.host(ctx, t)
	if err != nil {
		return backends.Absent, wire.Explain(err, t.Name, "read the host's state")
	}
	if h.maintenance {
		return backends.ValueOf(inMaintenance), nil
	}
	return backends.ValueOf(inService), nil
}

func (b maintenance) Open(ctx context.Context, t backends.Ref, progress backends.Progress) error {
	return b.enter(ctx, t, progress)
}

func (b maintenance) Close(ctx context.Context, t backends.Ref, leave backends.Value, progress backends.Progress) error {
	want, err := state[string](leave, t.Name)
	if err != nil || want == inMaintenance {
		return err
	}
	return b.exit(ctx, t, progress)
}

// enter brings a host into maintenance mode: DRS moves its VMs away. VMs that cannot move keep it from ending; then
// the task is cancelled, so that the host does not slip away later, when nobody is looking.
func (s site) enter(ctx context.Context, t backends.Ref, progress backends.Progress) error {
	const what = "enter maintenance mode"
	h, err := s.host(ctx, t)
	if err != nil {
		return wire.Explain(err, t.Name, what)
	}
	if h.maintenance {
		return nil
	}
	if err := s.whole(ctx, t, what); err != nil {
		return err
	}
	if s.opt.Migrate {
		if err := s.moveAway(ctx, h.ref, t); err != nil {
			return err
		}
	}
	o := order{site: s, machine: h.ref, op: opEnter, progress: progress,
		send: func(ctx context.Context) (types.ManagedObjectReference, error) {
			res, err := methods.EnterMaintenanceMode_Task(ctx, s.conn.VIM(), &types.EnterMaintenanceMode_Task{
				This: h.ref, Timeout: int32(s.opt.Evacuate.Seconds()),
				MaintenanceSpec: &types.HostMaintenanceSpec{VsanMode: &types.VsanHostDecommissionMode{
					ObjectAction: string(types.VsanHostDecommissionModeObjectActionEnsureObjectAccessibility),
				}},
			})
			if err != nil {
				return types.ManagedObjectReference{}, err
			}
			return res.Returnval, nil
		},
		done: func(ctx context.Context) (bool, error) {
			now, err := s.host(ctx, t)
			return now.maintenance, err
		},
	}
	limited, cancel := context.WithTimeoutCause(ctx, s.opt.Evacuate, errLate)
	defer cancel()
	refused, err := o.carryOut(limited)
	if err != nil && !refused && !ended(err) {
		o.cancel(ctx)
	}
	_, timedout := wire.FaultOf(err).(*types.Timedout)
	if context.Cause(limited) == errLate || timedout {
		return backends.Errorf(backends.KindTransient, t.Name, "move or shut down the VMs that are left on it, then resume",
			"%s: the host is not empty after %s", what, s.opt.Evacuate)
	}
	return wire.Explain(err, t.Name, what)
}

// whole waits until vSAN has copied what it has to. Nothing pushes that figure, so it is asked for again and again.
func (s site) whole(ctx context.Context, t backends.Ref, what string) error {
	if s.opt.Resync == nil {
		return nil
	}
	deadline := time.NewTimer(s.opt.Evacuate)
	defer deadline.Stop()
	for wait := s.opt.Look / 16; ; wait = min(2*wait, s.opt.Look) {
		left, vsan := s.opt.Resync(ctx, t.Name)
		if !vsan || left == 0 {
			return ctx.Err()
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-deadline.C:
			return backends.Errorf(backends.KindTransient, t.Name, "see what vSAN waits for (cluster, Monitor, vSAN, Resyncing Objects), then resume",
				"%s: vSAN still has %d bytes to copy after %s; the host's objects may be the only whole ones", what, left, s.opt.Evacuate)
		case <-time.After(wait):
		}
	}
}

func (s site) exit(ctx context.Context, t backends.Ref, progress backends.Progress) error {
	const what = "leave maintenance mode"
	h, err := s.host(ctx, t)
	if err != nil {
		return wire.Explain(err, t.Name, what)
	}
	if !h.maintenance {
		return nil
	}
	s.leaving.mu.Lock()
	delete(s.leaving.hosts, h.ref)
	s.leaving.mu.Unlock()
	_, err = order{site: s, machine: h.ref, op: opExit, progress: progress,
		send: func(ctx context.Context) (types.ManagedObjectReference, error) {
			res, err := methods.ExitMaintenanceMode_Task(ctx, s.conn.VIM(), &types.ExitMaintenanceMode_Task{This: h.ref})
			if err != nil {
				return types.ManagedObjectReference{}, err
			}
			return res.Returnval, nil
		},
		done: func(ctx context.Context) (bool, error) {
			now, err := s.host(ctx, t)
			return !now.maintenance, err
		},
	}.carryOut(ctx)
	return wire.Explain(err, t.Name, what)
}
