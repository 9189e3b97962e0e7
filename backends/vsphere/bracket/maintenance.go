package bracket

import (
	"context"

	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/place"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/wire"
)

// The states of a host's maintenance bracket.
const (
	inMaintenance = "maintenance"
	inService     = "normal"
)

// maintenance evacuates a host and puts it into maintenance mode. Its state is "maintenance" or "normal".
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

// enter puts a host into maintenance mode; DRS moves its VMs. If VMs that cannot move prevent it, the task is cancelled, so that
// the host does not enter maintenance mode later, unattended.
func (s site) enter(ctx context.Context, t backends.Ref, progress backends.Progress) error {
	const what = "enter maintenance mode"
	h, err := s.host(ctx, t)
	if err != nil {
		return wire.Explain(err, t.Name, what)
	}
	if h.maintenance {
		return nil
	}
	if err := s.resynced(ctx, h.ref, t, what); err != nil {
		return err
	}
	defer s.leaving.begin(h.ref)()
	if s.opt.Migrate {
		if err := s.moveAway(ctx, h.ref, t); err != nil {
			return err
		}
	}
	o := order{site: s, machine: h.ref, op: opEnter, progress: progress,
		send: wire.Starts(s.conn, methods.EnterMaintenanceMode_Task, &types.EnterMaintenanceMode_Task{
			This: h.ref, Timeout: int32(s.opt.Evacuate.Seconds()),
			MaintenanceSpec: &types.HostMaintenanceSpec{VsanMode: &types.VsanHostDecommissionMode{
				ObjectAction: string(types.VsanHostDecommissionModeObjectActionEnsureObjectAccessibility),
			}},
		}),
		done: func(ctx context.Context) (bool, error) {
			now, err := s.host(ctx, t)
			return now.maintenance, err
		},
	}
	limited, limit, late, over := s.within(ctx, "wait until it is in maintenance mode", t.Name, s.opt.Evacuate)
	defer over()
	refused, err := o.carryOut(limited)
	if err != nil && !refused && !ended(err) {
		o.cancel(ctx)
	}
	_, timedout := wire.FaultOf(err).(*types.Timedout)
	if late() || timedout {
		return backends.Transientf(t.Name, "move or shut down the VMs that are left on it, then run rdma-setup resume",
			"%s: the host is not empty after %s", what, limit)
	}
	return wire.Explain(err, t.Name, what)
}

// resynced waits until vSAN has copied everything. The number is polled because vSAN does not push it. A host that does not
// report it is not evacuated.
func (s site) resynced(ctx context.Context, host place.Ref, t backends.Ref, what string) error {
	if s.opt.Resync == nil {
		return nil
	}
	if vsan, err := s.vsan(ctx, host); err != nil || !vsan {
		return wire.Explain(err, t.Name, "read whether its cluster has vSAN")
	}
	unread, left := 0, int64(0)
	wait := backends.Poll{What: "wait until vSAN has copied everything", Target: t.Name, Limit: s.opt.bounded(s.opt.Evacuate),
		Every: s.opt.Look / 16, Most: s.opt.Look, Whole: true}
	err := wait.Until(ctx, func(ctx context.Context) (bool, error) {
		var err error
		switch left, err = s.opt.Resync(ctx, t.Name); {
		case ctx.Err() != nil:
			return false, ctx.Err()
		case err == nil && left == 0:
			return true, nil
		case err == nil:
			unread = 0
		default:
			if unread++; unread == wire.Tries {
				return false,
					backends.Refusedf(t.Name,
						"Check vSAN of the cluster by hand (Monitor, vSAN, Resyncing Objects), restore the answer of the host, then run rdma-setup resume.",
						"%s: what vSAN still has to copy cannot be read, and the host's objects may be the only complete ones: %w", what, err)
			}
		}
		return false, nil
	})
	if err == backends.ErrLate {
		return backends.Transientf(t.Name,
			"check what vSAN waits for (cluster, Monitor, vSAN, Resyncing Objects), then run rdma-setup resume",
			"%s: vSAN still has %d bytes to copy after %s; the host's objects may be the only complete ones", what, left, s.opt.Evacuate)
	}
	return err
}

// vsan reports whether the cluster of a host has vSAN (ClusterConfigInfoEx.vsanConfigInfo in the vSphere Web Services API).
func (s site) vsan(ctx context.Context, host place.Ref) (bool, error) {
	o, err := s.conn.One(ctx, host, "parent")
	if err != nil {
		return false, err
	}
	cluster := wire.Value[place.Ref](o, "parent")
	if cluster.Type != "ClusterComputeResource" {
		return false, nil
	}
	if o, err = s.conn.One(ctx, cluster, "configurationEx"); err != nil {
		return false, err
	}
	info, _ := o.Props["configurationEx"].(types.ClusterConfigInfoEx)
	return info.VsanConfigInfo != nil && info.VsanConfigInfo.Enabled != nil && *info.VsanConfigInfo.Enabled, nil
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
	_, err = order{site: s, machine: h.ref, op: opExit, progress: progress,
		send: wire.Starts(s.conn, methods.ExitMaintenanceMode_Task, &types.ExitMaintenanceMode_Task{This: h.ref}),
		done: func(ctx context.Context) (bool, error) {
			now, err := s.host(ctx, t)
			return !now.maintenance, err
		},
	}.carryOut(ctx)
	return wire.Explain(err, t.Name, what)
}
