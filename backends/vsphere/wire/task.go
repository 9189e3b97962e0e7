package wire

import (
	"context"
	"errors"

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

// Fault returns the fault itself, so that callers can inspect its type.
func (e *TaskError) Fault() types.BaseMethodFault { return e.Cause }

// Task waits for a task to end and hands on its progress in percent as it moves. The result is the task's own. When
// ctx ends first the task goes on in vCenter: what it did is read again by whoever asks next.
func (c *Conn) Task(ctx context.Context, ref types.ManagedObjectReference, progress backends.Progress) (types.AnyType, error) {
	var end Object
	last := int32(-1)
	err := c.Watch(ctx, ref, func(o Object) bool {
		state := Value[types.TaskInfoState](o, "info.state")
		if now, ok := Prop[int32](o, "info.progress"); ok && now > last && state == types.TaskInfoStateRunning {
			last = now
			progress.Report(int(last))
		}
		end = o
		return state == types.TaskInfoStateSuccess || state == types.TaskInfoStateError
	})
	if err != nil {
		return nil, err
	}
	if Value[types.TaskInfoState](end, "info.state") == types.TaskInfoStateError {
		why, ok := Prop[types.LocalizedMethodFault](end, "info.error")
		if !ok {
			return nil, errors.New("the task failed without a reason")
		}
		return nil, &TaskError{Task: ref, Message: why.LocalizedMessage, Cause: why.Fault}
	}
	progress.Report(100)
	return end.Props["info.result"], nil
}

// TaskUser is the user who has started a task, by its info.reason; "" of one that the system or a schedule has started.
func TaskUser(task Object) string {
	switch r := task.Props["info.reason"].(type) {
	case types.TaskReasonUser:
		return r.UserName
	case *types.TaskReasonUser:
		return r.UserName
	}
	return ""
}
