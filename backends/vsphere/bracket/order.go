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

// What vCenter calls the operations that brackets order, in the descriptionId of their tasks.
const (
	opEnter    = "HostSystem.enterMaintenanceMode"
	opExit     = "HostSystem.exitMaintenanceMode"
	opReboot   = "HostSystem.reboot"
	opPowerOn  = "VirtualMachine.powerOn"
	opPowerOff = "VirtualMachine.powerOff"
)

// An order is something that a machine is told to do once, and that shows as a task on it.
type order struct {
	site
	machine  place.Ref
	op       string
	send     func(context.Context) (types.ManagedObjectReference, error)
	done     func(context.Context) (bool, error) // reads whether it has been done
	progress backends.Progress
}

// carryOut sends the order and waits for its task. Where the answer is lost, or the wait for the task, the machine is
// asked for a task of that operation; the order is given again only where there is none and nothing was done. Refused
// tells that vCenter would not take it, so that nothing is under way.
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

// ended tells the errors with which a task has ended from those of the wait for it.
func ended(err error) bool {
	var t *wire.TaskError
	return errors.As(err, &t)
}

// adopt waits for the tasks of the operation that are under way on the machine; false when there is none.
func (o order) adopt(ctx context.Context) (found bool, err error) {
	for _, task := range o.underWay(ctx) {
		found = true
		if _, err := o.conn.Task(ctx, task, o.progress); err != nil {
			return true, err
		}
	}
	return found, nil
}

// underWay lists the tasks of the operation that have not ended on the machine. What cannot be read is none.
func (o order) underWay(ctx context.Context) []types.ManagedObjectReference {
	m, err := o.conn.One(ctx, o.machine, "recentTask")
	if err != nil {
		return nil
	}
	var out []types.ManagedObjectReference
	for _, task := range wire.Value[types.ArrayOfManagedObjectReference](m, "recentTask").ManagedObjectReference {
		t, err := o.conn.One(ctx, task, "info.descriptionId", "info.state")
		state := wire.Value[types.TaskInfoState](t, "info.state")
		if err == nil && wire.Value[string](t, "info.descriptionId") == o.op && (state == types.TaskInfoStateQueued || state == types.TaskInfoStateRunning) {
			out = append(out, task)
		}
	}
	return out
}

// cancel takes the order back, so that it is not carried out later, when nobody is looking: it waits a few seconds for
// its tasks to end. They may have come to their end before.
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
