package wire

import (
	"context"
	"fmt"

	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends"
)

// A TaskError is how a task ended in vCenter.
type TaskError struct {
	Task    types.ManagedObjectReference
	Message string
	Cause   types.BaseMethodFault
}

func (e *TaskError) Error() string { return e.Message }

// Fault gives the fault itself, for those who look at its type.
func (e *TaskError) Fault() types.BaseMethodFault { return e.Cause }

// Task waits for a task to end and hands on its progress in percent as it moves. The result is the task's own. When
// ctx ends first the task goes on in vCenter: what it did is read again by whoever asks next.
func (c *Conn) Task(ctx context.Context, ref types.ManagedObjectReference, progress backends.Progress) (types.AnyType, error) {
	var info types.TaskInfo
	last := int32(-1)
	err := c.Watch(ctx, ref, func(o Object) bool {
		now, ok := Prop[types.TaskInfo](o, "info")
		if !ok {
			return false
		}
		info = now
		if info.Progress > last && info.State == types.TaskInfoStateRunning {
			last = info.Progress
			progress.Report(int(last))
		}
		return info.State == types.TaskInfoStateSuccess || info.State == types.TaskInfoStateError
	})
	if err != nil {
		return nil, err
	}
	if info.State == types.TaskInfoStateError {
		if info.Error == nil {
			return nil, fmt.Errorf("the task failed without a reason")
		}
		return nil, &TaskError{Task: ref, Message: info.Error.LocalizedMessage, Cause: info.Error.Fault}
	}
	progress.Report(100)
	return info.Result, nil
}
