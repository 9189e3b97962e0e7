package hosts

import (
	"slices"
	"time"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter/frame"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

type system struct{ base }

// EnterMaintenanceModeTask migrates running VMs to other hosts and waits until none is left. If that takes longer than the
// timeout, it fails with Timedout; without a timeout it waits until it is cancelled.
func (m system) EnterMaintenanceModeTask(ctx *simulator.Context, req *types.EnterMaintenanceMode_Task) soap.HasFault {
	host, err := m.name(req.This)
	if err == nil && m.maintenance(host) {
		err = frame.Refuse(&types.InvalidState{})
	}
	if err != nil {
		return frame.Answer(nil, err)
	}
	task := m.f.StartLong(ctx, "EnterMaintenanceMode_Task", "HostSystem.enterMaintenanceMode", req.This, frame.TaskOptions{Cancelable: true},
		func(t *frame.Task) (any, error) { return nil, m.enter(t, host, time.Duration(req.Timeout)*time.Second) })
	return frame.Answer(types.EnterMaintenanceMode_TaskResponse{Returnval: task}, nil)
}

// noVSANRoom is the message of vSAN if objects would become inaccessible without the host.
const noVSANRoom = "Failed to enter maintenance mode in the current vSAN data migration mode due to insufficient nodes or disk " +
	"space in the cluster. Retry operation in another mode or after adding more resources to the cluster."

func (m system) enter(t *frame.Task, host string, timeout time.Duration) error {
	if err := t.Walk(0); err != nil {
		return err
	}
	deadline := time.Now().Add(timeout)
	for {
		var syncing int64
		m.f.World.View(func(s *world.State) { syncing = s.ServicesOf(host).Resync })
		if syncing > 0 {
			return frame.Refuse(&types.VsanFault{}, noVSANRoom)
		}
		m.f.Commit.Lock()
		m.f.World.Evacuate(host)
		err := m.f.World.SetMaintenance(host, true)
		m.f.Commit.Unlock()
		if err == nil {
			return nil
		}
		if timeout > 0 && time.Now().After(deadline) {
			return frame.Refuse(&types.Timedout{})
		}
		if err := t.Wait(20 * time.Millisecond); err != nil {
			return err
		}
	}
}

func (m system) maintenance(host string) bool {
	on := false
	m.f.World.View(func(s *world.State) { on = s.Host(host).Maintenance })
	return on
}

// ExitMaintenanceModeTask exits maintenance mode.
func (m system) ExitMaintenanceModeTask(ctx *simulator.Context, req *types.ExitMaintenanceMode_Task) soap.HasFault {
	host, err := m.name(req.This)
	if err == nil && !m.maintenance(host) {
		err = frame.Refuse(&types.InvalidState{})
	}
	if err != nil {
		return frame.Answer(nil, err)
	}
	task := m.f.Start(ctx, "ExitMaintenanceMode_Task", "HostSystem.exitMaintenanceMode", req.This, frame.TaskOptions{},
		func() (any, error) { return nil, m.f.World.SetMaintenance(host, false) })
	return frame.Answer(types.ExitMaintenanceMode_TaskResponse{Returnval: task}, nil)
}

// RebootHostTask reboots a host. Without force, the host must be in maintenance mode. The task ends when the host goes down.
func (m system) RebootHostTask(ctx *simulator.Context, req *types.RebootHost_Task) soap.HasFault {
	host, err := m.name(req.This)
	if err == nil && !req.Force && !m.maintenance(host) {
		err = frame.Refuse(&types.InvalidState{})
	}
	if err != nil {
		return frame.Answer(nil, err)
	}
	task := m.f.Start(ctx, "RebootHost_Task", "HostSystem.reboot", req.This, frame.TaskOptions{},
		func() (any, error) { return nil, m.f.World.RebootHost(host) })
	return frame.Answer(types.RebootHost_TaskResponse{Returnval: task}, nil)
}

// RetrieveHardwareUptime returns the seconds since the host was switched on: in the lab, always a day.
func (m system) RetrieveHardwareUptime(_ *simulator.Context, req *types.RetrieveHardwareUptime) soap.HasFault {
	_, err := m.name(req.This)
	return frame.Answer(types.RetrieveHardwareUptimeResponse{Returnval: 86400}, err)
}

type access struct{ base }

// QueryLockdownExceptions lists the exception users of lockdown mode.
func (m access) QueryLockdownExceptions(_ *simulator.Context, req *types.QueryLockdownExceptions) soap.HasFault {
	host, err := m.name(req.This)
	var list []string
	if err == nil {
		m.f.World.View(func(s *world.State) { list = slices.Clone(s.Host(host).Exceptions) })
	}
	return frame.Answer(types.QueryLockdownExceptionsResponse{Returnval: list}, err)
}

type clock struct{ base }

// QueryDateTime returns the time of the host. In the lab it equals the time of vCenter.
func (m clock) QueryDateTime(_ *simulator.Context, req *types.QueryDateTime) soap.HasFault {
	now := time.Now()
	_, err := m.name(req.This)
	m.f.World.View(func(s *world.State) { now = now.Add(s.Skew) })
	return frame.Answer(types.QueryDateTimeResponse{Returnval: now}, err)
}
