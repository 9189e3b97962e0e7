// Package updates implements waiting for property changes. It replaces the simulator's own implementation, which reads objects
// while they are written and continues after its client has disconnected.
package updates

import (
	"sync"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter/frame"
	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter/props"
)

// A Watch contains the filters of all property collectors of a vCenter.
type Watch struct {
	read *props.Reader
	f    *frame.Frame
	gone func(collector types.ManagedObjectReference) <-chan struct{} // closed when the waiting client disconnects
	stop <-chan struct{}

	mu         sync.Mutex
	collectors map[key]*collector
}

type key struct {
	session   string
	collector types.ManagedObjectReference
}

// Register adds the methods to a frame. gone returns a channel that is closed when the client that waits with a collector
// disconnects. Closing stop ends all waiting. vcenter is the version that determines which properties are declared.
func Register(f *frame.Frame, vcenter string, gone func(types.ManagedObjectReference) <-chan struct{}, stop <-chan struct{}) *Watch {
	w := &Watch{read: props.NewReader(vcenter), f: f, gone: gone, stop: stop, collectors: map[key]*collector{}}
	f.Reg.AddHandler(listener{w})
	f.Extend(methods{w.read, w}, "PropertyCollector")
	f.Extend(filterMethods{w}, "PropertyFilter")
	f.Extend(sessions{w}, "SessionManager")
	return w
}

// End removes the filters of a session.
func (w *Watch) End(session string) {
	w.forget(func(k key) bool { return k.session == session })
	w.read.Forget(session)
}

// Filters returns the number of filters of all sessions.
func (w *Watch) Filters() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, c := range w.collectors {
		n += c.count()
	}
	return n
}

func (w *Watch) collector(ctx *simulator.Context, ref types.ManagedObjectReference) *collector {
	w.mu.Lock()
	defer w.mu.Unlock()
	k := key{ctx.Session.Key, ref}
	c := w.collectors[k]
	if c == nil {
		c = &collector{dirty: map[types.ManagedObjectReference]bool{}, wake: make(chan struct{}, 1), turn: make(chan struct{}, 1)}
		w.collectors[k] = c
	}
	return c
}

func (w *Watch) forget(match func(key) bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for k := range w.collectors {
		if match(k) {
			delete(w.collectors, k)
		}
	}
}

// touch notifies all collectors that an object was changed, added or removed.
func (w *Watch) touch(ref types.ManagedObjectReference) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.collectors {
		c.touch(ref)
	}
}

// A listener is notified of every change in the registry.
type listener struct{ w *Watch }

// Reference implements mo.Reference.
func (l listener) Reference() types.ManagedObjectReference {
	return types.ManagedObjectReference{Type: "Lab", Value: "updates"}
}

// PutObject implements simulator.RegisterObject.
func (l listener) PutObject(_ *simulator.Context, obj mo.Reference) { l.w.touch(obj.Reference()) }

// UpdateObject implements simulator.RegisterObject.
func (l listener) UpdateObject(_ *simulator.Context, obj mo.Reference, _ []types.PropertyChange) {
	l.w.touch(obj.Reference())
}

// RemoveObject implements simulator.RegisterObject.
func (l listener) RemoveObject(_ *simulator.Context, ref types.ManagedObjectReference) {
	l.w.touch(ref)
}

// methods implements PropertyCollector. Package props reads properties, and this package waits for changes.
type methods struct {
	*props.Reader
	w *Watch
}

// CreateFilter adds a filter to a collector. The specified objects must exist, and their types must declare the property paths.
func (m methods) CreateFilter(ctx *simulator.Context, req *types.CreateFilter) soap.HasFault {
	if path, found := m.Reader.Undeclared(req.Spec.PropSet); found {
		return frame.Answer(nil, frame.Refuse(&types.InvalidProperty{Name: path}))
	}
	for _, o := range req.Spec.ObjectSet {
		if ctx.Session.Get(o.Obj) == nil {
			return frame.Answer(nil, frame.Gone(o.Obj))
		}
	}
	obj := &filterObject{PropertyFilter: mo.PropertyFilter{Spec: req.Spec, PartialUpdates: req.PartialUpdates}}
	obj.Self.Type = "PropertyFilter"
	ref := ctx.Session.Put(obj).Reference()
	m.w.collector(ctx, req.This).add(&filter{ref: ref, spec: req.Spec})
	return frame.Answer(types.CreateFilterResponse{Returnval: ref}, nil)
}

// A filterObject represents a filter in the session.
type filterObject struct{ mo.PropertyFilter }

// DestroyPropertyCollector removes a collector and its filters.
func (m methods) DestroyPropertyCollector(ctx *simulator.Context, req *types.DestroyPropertyCollector) soap.HasFault {
	m.w.collector(ctx, req.This).cancel()
	m.w.forget(func(k key) bool { return k == key{ctx.Session.Key, req.This} })
	ctx.Session.Remove(ctx, req.This)
	return frame.Answer(types.DestroyPropertyCollectorResponse{}, nil)
}

// CancelWaitForUpdates ends a pending wait.
func (m methods) CancelWaitForUpdates(ctx *simulator.Context, req *types.CancelWaitForUpdates) soap.HasFault {
	m.w.collector(ctx, req.This).cancel()
	return frame.Answer(types.CancelWaitForUpdatesResponse{}, nil)
}

type filterMethods struct{ w *Watch }

// DestroyPropertyFilter removes a filter from its collector.
func (m filterMethods) DestroyPropertyFilter(ctx *simulator.Context, req *types.DestroyPropertyFilter) soap.HasFault {
	m.w.mu.Lock()
	for k, c := range m.w.collectors {
		if k.session == ctx.Session.Key {
			c.remove(req.This)
		}
	}
	m.w.mu.Unlock()
	ctx.Session.Remove(ctx, req.This)
	return frame.Answer(types.DestroyPropertyFilterResponse{}, nil)
}

type sessions struct{ w *Watch }

// Logout ends a session and removes its filters.
func (m sessions) Logout(ctx *simulator.Context, req *types.Logout) soap.HasFault {
	m.w.End(ctx.Session.Key)
	return m.w.f.Reg.SessionManager().Logout(ctx, req)
}

// WaitForUpdates calls WaitForUpdatesEx without options.
func (m methods) WaitForUpdates(ctx *simulator.Context, req *types.WaitForUpdates) soap.HasFault {
	set, answer := m.set(ctx, &types.WaitForUpdatesEx{This: req.This, Version: req.Version})
	if set == nil {
		return answer
	}
	return frame.Answer(types.WaitForUpdatesResponse{Returnval: *set}, nil)
}

func (m methods) set(ctx *simulator.Context, req *types.WaitForUpdatesEx) (*types.UpdateSet, soap.HasFault) {
	answer := m.WaitForUpdatesEx(ctx, req)
	res, _ := frame.Response(answer).(types.WaitForUpdatesExResponse)
	return res.Returnval, answer
}
