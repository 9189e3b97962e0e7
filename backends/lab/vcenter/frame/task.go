package frame

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

type tasks struct {
	mu      sync.Mutex
	running map[types.ManagedObjectReference]*Task
	closed  bool
	stop    chan struct{}
	wg      sync.WaitGroup
}

func (t *tasks) close() {
	t.mu.Lock()
	if !t.closed {
		t.closed = true
		close(t.stop)
	}
	t.mu.Unlock()
	t.wg.Wait()
}

// A TaskOptions defines the duration and progress of a task.
type TaskOptions struct {
	Time       time.Duration // until the task takes effect; 0 means the time of the lab
	Cancelable bool
	Silent     bool // reports no progress, as power operations do
}

// A Task is a running vCenter task.
type Task struct {
	Ref     types.ManagedObjectReference
	f       *Frame
	options TaskOptions
	held    <-chan struct{} // a fault rule holds the task until it is closed; nil: no rule
	cancel  chan struct{}
	once    sync.Once
}

// Start creates a task on an entity and returns its reference immediately. After its duration, do runs with Commit locked. If
// the task is cancelled before, do does not run. descriptionID is the id of the method in vCenter, for example
// "dvs.DistributedVirtualSwitch.reconfigure"; name is the name of the method.
func (f *Frame) Start(ctx *simulator.Context, name, descriptionID string, entity types.ManagedObjectReference,
	options TaskOptions, do func() (result any, err error)) types.ManagedObjectReference {
	return f.StartLong(ctx, name, descriptionID, entity, options, func(t *Task) (any, error) {
		if err := t.Walk(options.Time); err != nil {
			return nil, err
		}
		f.Commit.Lock()
		defer f.Commit.Unlock()
		return do()
	})
}

// StartLong is like Start for tasks that control their own duration: do runs without a lock and calls Walk and Wait.
func (f *Frame) StartLong(ctx *simulator.Context, name, descriptionID string, entity types.ManagedObjectReference,
	options TaskOptions, do func(*Task) (result any, err error)) types.ManagedObjectReference {
	now := time.Now()
	obj := &mo.Task{Info: types.TaskInfo{
		Name:          name,
		DescriptionId: descriptionID,
		Entity:        &entity,
		EntityName:    f.Name(entity),
		State:         types.TaskInfoStateQueued,
		Cancelable:    options.Cancelable,
		Reason:        &types.TaskReasonUser{UserName: user(ctx)},
		QueueTime:     now,
	}}
	f.Add(obj)
	t := &Task{Ref: obj.Self, f: f, options: options, cancel: make(chan struct{})}
	f.Update(t.Ref, Set("info.key", t.Ref.Value), Set("info.task", t.Ref))
	f.Own(t.Ref, entity)
	f.recent(entity, t.Ref)
	if f.Watch != nil {
		f.Watch.TaskMoved(t.Ref, false)
	}

	at := f.Target(entity)
	rule, held := f.World.Faults.Hold(at, name)
	if t.held = held; held != nil {
		f.World.Log.Note(world.Event{What: world.FaultApplied, Host: at.Host, VM: at.VM, Detail: rule.Rule})
	}

	f.tasks.mu.Lock()
	defer f.tasks.mu.Unlock()
	if f.tasks.closed {
		return t.Ref
	}
	f.tasks.running[t.Ref] = t
	f.tasks.wg.Go(func() { t.run(do) })
	return t.Ref
}

// FailLater creates a task that ends with an error, for a fault rule.
func (f *Frame) FailLater(name string, entity types.ManagedObjectReference, err error) types.ManagedObjectReference {
	return f.StartLong(&simulator.Context{Map: f.Reg}, name, name, entity, TaskOptions{}, func(t *Task) (any, error) {
		if stopped := t.Walk(0); stopped != nil {
			return nil, stopped
		}
		return nil, err
	})
}

// StayUntil creates a task that does nothing and succeeds when over is closed, for a fault rule.
func (f *Frame) StayUntil(name string, entity types.ManagedObjectReference, over <-chan struct{}) types.ManagedObjectReference {
	return f.StartLong(&simulator.Context{Map: f.Reg}, name, name, entity, TaskOptions{}, func(t *Task) (any, error) {
		return nil, waitUntil(t, over)
	})
}

func (t *Task) run(do func(*Task) (any, error)) {
	t.f.Update(t.Ref, Set("info.state", types.TaskInfoStateRunning), Set("info.startTime", time.Now()))
	result, err := safely(t, func(t *Task) (any, error) {
		if t.held != nil {
			if err := waitUntil(t, t.held); err != nil {
				return nil, err
			}
		}
		return do(t)
	})
	t.f.tasks.mu.Lock()
	delete(t.f.tasks.running, t.Ref)
	t.f.tasks.mu.Unlock()

	if err == nil && t.f.Watch != nil {
		t.f.Watch.TaskDone(t.Ref, result)
	}
	changes := []types.PropertyChange{Set("info.completeTime", time.Now()), Set("info.cancelable", false)}
	if err != nil {
		fault, text := faultOf(err)
		if _, canceled := fault.(*types.RequestCanceled); canceled {
			changes = append(changes, Set("info.cancelled", true))
		}
		changes = append(changes,
			Set("info.error", types.LocalizedMethodFault{Fault: fault, LocalizedMessage: text}),
			Set("info.state", types.TaskInfoStateError))
	} else {
		if result != nil {
			changes = append(changes, Set("info.result", result))
		}
		changes = append(changes, Set("info.state", types.TaskInfoStateSuccess))
	}
	t.f.Update(t.Ref, changes...)
	if t.f.Watch != nil {
		t.f.Watch.TaskMoved(t.Ref, true)
	}
}

// safely converts a panic to an error, so that it does not end the lab.
func safely(t *Task, do func(*Task) (any, error)) (result any, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%v", r)
		}
	}()
	return do(t)
}

// Progress sets the progress of the task in percent.
func (t *Task) Progress(percent int) {
	if !t.options.Silent {
		t.f.Update(t.Ref, Set("info.progress", int32(min(percent, 99))))
	}
}

// Walk increases the progress for the given time. If the task is cancelled, it returns RequestCanceled.
func (t *Task) Walk(total time.Duration) error {
	if total == 0 {
		total = t.f.World.Timing.Task
	}
	const steps = 4
	for i := range steps {
		if err := t.Wait(total / steps); err != nil {
			return err
		}
		t.Progress((i + 1) * 95 / steps)
	}
	return nil
}

// Wait waits for the given time. If the task is cancelled, it returns RequestCanceled.
func (t *Task) Wait(d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	return waitUntil(t, timer.C)
}

// waitUntil waits for a message or the end of a channel. If the task is cancelled, it returns RequestCanceled.
func waitUntil[T any](t *Task, over <-chan T) error {
	select {
	case <-over:
		return nil
	case <-t.cancel:
	case <-t.f.tasks.stop:
	}
	return Refuse(&types.RequestCanceled{})
}

// recent adds a task to the recentTask property of its entity. It stays there after its end, until Forget.
func (f *Frame) recent(entity, task types.ManagedObjectReference) {
	f.editRecent(entity, func(list []types.ManagedObjectReference) []types.ManagedObjectReference {
		return append(slices.Clone(list), task)
	})
}

// Forget removes a task from the recentTask property of its entity.
func (f *Frame) Forget(task types.ManagedObjectReference) {
	f.editRecent(f.Owner(task), func(list []types.ManagedObjectReference) []types.ManagedObjectReference {
		return slices.DeleteFunc(slices.Clone(list), func(r types.ManagedObjectReference) bool { return r == task })
	})
}

func (f *Frame) editRecent(entity types.ManagedObjectReference, edit func([]types.ManagedObjectReference) []types.ManagedObjectReference) {
	obj, ok := f.Reg.Get(entity).(mo.Entity)
	if !ok {
		return
	}
	ctx := &simulator.Context{Map: f.Reg}
	defer f.Reg.AcquireLock(ctx, obj)()
	ctx.Update(obj, []types.PropertyChange{Set("recentTask", edit(obj.Entity().RecentTask))})
}

// taskMethods are the methods of Task.
type taskMethods struct{ f *Frame }

// CancelTask cancels a task before it takes effect.
func (m taskMethods) CancelTask(_ *simulator.Context, req *types.CancelTask) soap.HasFault {
	m.f.tasks.mu.Lock()
	t := m.f.tasks.running[req.This]
	m.f.tasks.mu.Unlock()
	switch {
	case t == nil:
		return Answer(nil, Refuse(&types.InvalidState{}))
	case !t.options.Cancelable:
		return Answer(nil, Refuse(&types.NotSupported{}))
	}
	t.once.Do(func() { close(t.cancel) })
	return Answer(types.CancelTaskResponse{}, nil)
}

func user(ctx *simulator.Context) string {
	if ctx.Session == nil {
		return "vpxd"
	}
	return ctx.Session.UserName
}
