package wire

import (
	"context"
	"errors"

	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends"
)

// A TaskError is the error of a task that failed in vCenter.
type TaskError struct {
	Task    types.ManagedObjectReference
	Message string
	Cause   types.BaseMethodFault
}

func (e *TaskError) Error() string { return e.Message }

// Fault returns the fault itself, so that callers can inspect its type.
func (e *TaskError) Fault() types.BaseMethodFault { return e.Cause }

// Task waits for a task to end and reports its progress in percent. It returns the task's result. If ctx ends first the task
// continues in vCenter; the next read shows what it did.
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

// TaskUser returns the user who started a task, from its info.reason; "" if the system or a schedule started it.
func TaskUser(task Object) string {
	switch r := task.Props["info.reason"].(type) {
	case types.TaskReasonUser:
		return r.UserName
	case *types.TaskReasonUser:
		return r.UserName
	}
	return ""
}

// started is the response of every method that starts a task.
type started interface {
	~struct {
		Returnval types.ManagedObjectReference `xml:"returnval" json:"returnval"`
	}
}

// Starts returns a function that calls a method and returns the task that the call has started.
func Starts[Q any, R started](c *Conn, method func(context.Context, soap.RoundTripper, *Q) (*R, error), req *Q) func(context.Context) (
	types.ManagedObjectReference, error) {
	return func(ctx context.Context) (types.ManagedObjectReference, error) {
		res, err := method(ctx, c.vim, req)
		if err != nil {
			return types.ManagedObjectReference{}, err
		}
		return struct{ Returnval types.ManagedObjectReference }(*res).Returnval, nil
	}
}

// Run starts a task and waits for its end as Task does.
func (c *Conn) Run(ctx context.Context, progress backends.Progress, start func(context.Context) (types.ManagedObjectReference, error)) (types.AnyType, error) {
	task, err := start(ctx)
	if err != nil {
		return nil, err
	}
	return c.Task(ctx, task, progress)
}
