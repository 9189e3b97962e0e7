package vsphere

import (
	"context"
	"time"

	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/place"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/wire"
)

// How much of the history is read: by default vCenter keeps events for 30 days (vSphere Monitoring and Performance 6.5, retention of
// events).
const (
	historyAge   = 30 * 24 * time.Hour
	historyPages = 5
	historyPage  = 1000 // HistoryCollector, ReadNextTasks: at most 1000 items
)

// A reboot or a shutdown of a guest that took longer did not end by itself.
const (
	longestReboot   = 2 * time.Hour
	longestShutdown = 30 * time.Minute
)

// Took reads from vCenter's history how long reboots, evacuations and guest shutdowns took (vSphere Web Services API, TaskManager,
// EventManager and HistoryCollector). The task of a reboot ("Initiate host reboot") may end before the host is back, so the
// next HostConnectedEvent of the host counts as its end. That real vCenters post one after each reboot is unverified.
func (c *Client) Took(ctx context.Context) (*backends.Took, error) {
	const what = "read the history of tasks"
	vim := c.conn.VIM()
	if vim.ServiceContent.TaskManager == nil || vim.ServiceContent.EventManager == nil {
		return nil, backends.Permanentf("vCenter", "", "%s: this vCenter has none", what)
	}
	now, err := methods.GetCurrentTime(ctx, vim)
	if err != nil {
		return nil, wire.Explain(err, "vCenter", what)
	}
	since := now.Add(-historyAge)
	happened, err := c.happened(ctx, since)
	if err != nil {
		return nil, wire.Explain(err, "vCenter", what)
	}
	tasks, err := c.tasks(ctx, since)
	if err != nil {
		return nil, wire.Explain(err, "vCenter", what)
	}
	return took(tasks, happened), nil
}

// took pairs the beginnings of operations with their ends. Both lists have the oldest first.
func took(tasks []types.TaskInfo, happened []types.BaseEvent) *backends.Took {
	out := &backends.Took{}
	reboots, asked := map[place.Ref][]time.Time{}, map[place.Ref]time.Time{}
	for _, t := range tasks {
		if t.StartTime == nil || t.CompleteTime == nil || t.Entity == nil {
			continue
		}
		switch t.DescriptionId {
		case "HostSystem.enterMaintenanceMode":
			out.Evacuate = append(out.Evacuate, t.CompleteTime.Sub(*t.StartTime))
		case "HostSystem.reboot":
			reboots[*t.Entity] = append(reboots[*t.Entity], *t.StartTime)
		}
	}
	for _, e := range happened {
		at, vm, host := e.GetEvent().CreatedTime, e.GetEvent().Vm, e.GetEvent().Host
		switch e.(type) {
		case *types.HostConnectedEvent:
			var begun time.Time
			for host != nil && len(reboots[host.Host]) > 0 && reboots[host.Host][0].Before(at) {
				begun, reboots[host.Host] = reboots[host.Host][0], reboots[host.Host][1:]
			}
			if d := at.Sub(begun); !begun.IsZero() && d < longestReboot {
				out.Reboot = append(out.Reboot, d)
			}
		case *types.VmGuestShutdownEvent:
			if vm != nil {
				asked[vm.Vm] = at
			}
		case *types.VmPoweredOffEvent:
			if vm == nil {
				continue
			}
			if begun, is := asked[vm.Vm]; is && at.Sub(begun) < longestShutdown {
				out.Shutdown = append(out.Shutdown, at.Sub(begun))
			}
			delete(asked, vm.Vm)
		}
	}
	return out
}

// happened reads the events that end the measured operations, and those that begin them if no task does.
func (c *Client) happened(ctx context.Context, since time.Time) (all []types.BaseEvent, err error) {
	vim := c.conn.VIM()
	made, err := methods.CreateCollectorForEvents(ctx, vim, &types.CreateCollectorForEvents{This: *vim.ServiceContent.EventManager,
		Filter: types.EventFilterSpec{EventTypeId: []string{"HostConnectedEvent", "VmGuestShutdownEvent", "VmPoweredOffEvent"},
			Time: &types.EventFilterSpecByTime{BeginTime: &since}}})
	if err != nil {
		return nil, err
	}
	defer func() { _, _ = methods.DestroyCollector(ctx, vim, &types.DestroyCollector{This: made.Returnval}) }()
	for range historyPages {
		page, err := methods.ReadNextEvents(ctx, vim, &types.ReadNextEvents{This: made.Returnval, MaxCount: historyPage})
		if err != nil || len(page.Returnval) == 0 {
			return all, err
		}
		all = append(all, page.Returnval...)
	}
	return all, nil
}

// tasks reads the tasks that have succeeded; a filter of tasks cannot name kinds.
func (c *Client) tasks(ctx context.Context, since time.Time) (all []types.TaskInfo, err error) {
	vim := c.conn.VIM()
	made, err := methods.CreateCollectorForTasks(ctx, vim, &types.CreateCollectorForTasks{This: *vim.ServiceContent.TaskManager,
		Filter: types.TaskFilterSpec{State: []types.TaskInfoState{types.TaskInfoStateSuccess},
			Time: &types.TaskFilterSpecByTime{TimeType: types.TaskFilterSpecTimeOptionStartedTime, BeginTime: &since}}})
	if err != nil {
		return nil, err
	}
	defer func() { _, _ = methods.DestroyCollector(ctx, vim, &types.DestroyCollector{This: made.Returnval}) }()
	for range historyPages {
		page, err := methods.ReadNextTasks(ctx, vim, &types.ReadNextTasks{This: made.Returnval, MaxCount: historyPage})
		if err != nil || len(page.Returnval) == 0 {
			return all, err
		}
		all = append(all, page.Returnval...)
	}
	return all, nil
}
