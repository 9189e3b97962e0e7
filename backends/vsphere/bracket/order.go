package bracket

import (
	"context"
	"errors"

	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/place"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/wire"
)

// The descriptionId of the tasks that brackets start in vCenter.
const (
	opEnter    = "HostSystem.enterMaintenanceMode"
	opExit     = "HostSystem.exitMaintenanceMode"
	opReboot   = "HostSystem.reboot"
	opPowerOn  = "VirtualMachine.powerOn"
	opPowerOff = "VirtualMachine.powerOff"
)

// An order is an operation that is requested once and shows as a task on its target.
type order struct {
	site
	machine  place.Ref
	op       string
	send     func(context.Context) (types.ManagedObjectReference, error)
	done     func(context.Context) (bool, error) // reads whether it is done
	progress backends.Progress
}

// carryOut requests the operation and waits for its task. If the reply or the wait for the task is lost, it looks for a task of
// that operation on the target; the operation is requested again only if there is none and nothing was done. Refused reports that
// vCenter rejected the request, so that no task is running.
func (o order) carryOut(ctx context.Context) (refused bool, err error) {
	for try := 1; ; try++ {
		task, err := o.send(ctx)
		sent := err == nil
		if sent {
			_, err = o.conn.Task(ctx, task, o.progress)
		}
		if err == nil || ended(err) || ctx.Err() != nil {
			return false, err
		}
		kind := backends.KindOf(wire.Explain(err, "", ""))
		again := kind == backends.KindTransient || kind == backends.KindConflict
		if !sent && !again && kind != backends.KindUnreachable {
			return true, err
		}
		if found, late := o.adopt(ctx); found && (late == nil || ended(late)) {
			return false, late
		}
		if is, rerr := o.done(ctx); rerr == nil && is {
			return false, nil
		}
		if sent || !again || try == wire.Tries || !wire.Pause(ctx, try) {
			return false, err
		}
	}
}

// ended reports whether an error is the result of a task, and not of the wait for it.
func ended(err error) bool {
	var t *wire.TaskError
	return errors.As(err, &t)
}

// adopt waits for running tasks of the operation on the target; false if there are none.
func (o order) adopt(ctx context.Context) (found bool, err error) {
	for _, task := range o.underWay(ctx) {
		found = true
		if _, err := o.conn.Task(ctx, task, o.progress); err != nil {
			return true, err
		}
	}
	return found, nil
}

// underWay returns the unfinished tasks of the operation on the target. It returns none if they cannot be read.
func (o order) underWay(ctx context.Context) []types.ManagedObjectReference {
	m, err := o.conn.One(ctx, o.machine, "recentTask")
	if err != nil {
		return nil
	}
	var out []types.ManagedObjectReference
	for _, task := range wire.Value[types.ArrayOfManagedObjectReference](m, "recentTask").ManagedObjectReference {
		t, err := o.conn.One(ctx, task, "info.descriptionId", "info.state")
		state := wire.Value[types.TaskInfoState](t, "info.state")
		if err == nil && wire.Value[string](t, "info.descriptionId") == o.op &&
			(state == types.TaskInfoStateQueued || state == types.TaskInfoStateRunning) {
			out = append(out, task)
		}
	}
	return out
}

// cancel cancels the operation, so that it does not complete later, unattended: it waits a few seconds for its tasks to end. They
// may have finished already.
func (o order) cancel(ctx context.Context) {
	ctx, done := context.WithTimeout(context.WithoutCancel(ctx), wire.DefaultTimeout)
	defer done()
	tasks := o.underWay(ctx)
	for _, task := range tasks {
		_, _ = methods.CancelTask(ctx, o.conn.VIM(), &types.CancelTask{This: task})
	}
	for try := 1; len(tasks) > 0 && try <= wire.Tries && wire.Pause(ctx, try); try++ {
		tasks = o.underWay(ctx)
	}
}
