package bracket

import (
	"context"
	"time"

	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/place"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/wire"
)

// shutWindow is how long a VM that a user shut down counts as being worked on.
const shutWindow = 5 * time.Minute

// ShutDown returns who requested a shutdown of a VM's guest within shutWindow (VmGuestShutdownEvent); nil if no user did, or if the
// VM was powered on since (VmPoweredOnEvent, at the end of a power-on).
func ShutDown(ctx context.Context, conn *wire.Conn, vm place.Ref) (*types.VmGuestShutdownEvent, error) {
	vim := conn.VIM()
	if vim.ServiceContent.EventManager == nil {
		return nil, nil
	}
	now, err := methods.GetCurrentTime(ctx, vim)
	if err != nil {
		return nil, err
	}
	since := now.Add(-shutWindow)
	res, err := methods.QueryEvents(ctx, vim, &types.QueryEvents{This: *vim.ServiceContent.EventManager, Filter: types.EventFilterSpec{
		Entity:      &types.EventFilterSpecByEntity{Entity: vm, Recursion: types.EventFilterSpecRecursionOptionSelf},
		EventTypeId: []string{"VmGuestShutdownEvent", "VmPoweredOnEvent"}, Time: &types.EventFilterSpecByTime{BeginTime: &since},
	}})
	if err != nil {
		return nil, err
	}
	var last *types.VmGuestShutdownEvent
	var on time.Time
	for _, e := range res.Returnval {
		switch x := e.(type) {
		case *types.VmGuestShutdownEvent:
			if last == nil || x.CreatedTime.After(last.CreatedTime) {
				last = x
			}
		case *types.VmPoweredOnEvent:
			if x.CreatedTime.After(on) {
				on = x.CreatedTime
			}
		}
	}
	if last == nil || on.After(last.CreatedTime) {
		return nil, nil
	}
	return last, nil
}

// wentOff returns why a VM that was just powered on is off: a user shut it down, or it powered off by itself.
func (b vmPower) wentOff(ctx context.Context, vm place.Ref) error {
	if by, err := ShutDown(ctx, b.conn, vm); err == nil && by != nil {
		return backends.Errorf(backends.KindConflict, "", "Agree with them who continues, then run rdma-setup resume.",
			"somebody else is working on this target: shut down by %s since %s", by.UserName, by.CreatedTime.UTC().Format("2006-01-02 15:04:05 MST"))
	}
	return b.diagnose(ctx, vm, offAgain(""))
}
