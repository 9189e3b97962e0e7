package updates

import (
	"reflect"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter/frame"
)

// most is the maximum number of objects in one answer, as in vCenter.
const most = 100

// settle is how long changes are collected before they are reported.
const settle = 2 * time.Millisecond

// A collector is the state of one client: the values sent to it for each filter.
type collector struct {
	turn chan struct{} // holds one token during a wait
	wake chan struct{}

	mu       sync.Mutex
	filters  []*filter
	dirty    map[types.ManagedObjectReference]bool
	version  int
	pending  []types.PropertyFilterUpdate
	canceled bool
}

type filter struct {
	ref   types.ManagedObjectReference
	spec  types.PropertyFilterSpec
	known map[types.ManagedObjectReference]map[string]types.AnyType // values sent to the client; nil if nothing was sent yet
}

func (c *collector) add(f *filter) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.filters = append(c.filters, f)
	c.signal()
}

func (c *collector) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.filters)
}

func (c *collector) remove(ref types.ManagedObjectReference) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.filters = slices.DeleteFunc(c.filters, func(f *filter) bool { return f.ref == ref })
}

func (c *collector) cancel() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.canceled = true
	c.signal()
}

func (c *collector) touch(ref types.ManagedObjectReference) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dirty[ref] = true
	c.signal()
}

func (c *collector) signal() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// WaitForUpdatesEx returns the changes since the version that the client has. It waits until there is a change.
func (m methods) WaitForUpdatesEx(ctx *simulator.Context, req *types.WaitForUpdatesEx) soap.HasFault {
	c := m.w.collector(ctx, req.This)
	gone := m.w.gone(req.This)
	var deadline <-chan time.Time
	limit, once := most, false
	if o := req.Options; o != nil {
		if o.MaxObjectUpdates > 0 {
			limit = min(limit, int(o.MaxObjectUpdates))
		}
		if o.MaxWaitSeconds != nil {
			once = *o.MaxWaitSeconds == 0
			timer := time.NewTimer(time.Duration(*o.MaxWaitSeconds) * time.Second)
			defer timer.Stop()
			deadline = timer.C
		}
	}
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-gone:
		return canceled()
	case <-m.w.stop:
		return canceled()
	}
	c.begin(req.Version)
	for {
		set, stopped := c.next(ctx, m.w, limit)
		switch {
		case stopped:
			return canceled()
		case set != nil:
			return frame.Answer(types.WaitForUpdatesExResponse{Returnval: set}, nil)
		case once:
			return frame.Answer(types.WaitForUpdatesExResponse{}, nil)
		}
		select {
		case <-c.wake:
			m.w.settle()
		case <-deadline:
			return frame.Answer(types.WaitForUpdatesExResponse{}, nil)
		case <-gone:
			return canceled()
		case <-m.w.stop:
			return canceled()
		}
	}
}

func canceled() soap.HasFault { return frame.Answer(nil, frame.Refuse(&types.RequestCanceled{})) }

// begin resets the state of the filters if the client has no version.
func (c *collector) begin(version string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.canceled = false
	if version == "" {
		c.pending = nil
		for _, f := range c.filters {
			f.known = nil
		}
	}
}

// next returns the next answer, or nil if nothing has changed.
func (c *collector) next(ctx *simulator.Context, w *Watch, limit int) (set *types.UpdateSet, stopped bool) {
	c.mu.Lock()
	dirty, filters := c.dirty, slices.Clone(c.filters)
	c.dirty, stopped, c.canceled = map[types.ManagedObjectReference]bool{}, c.canceled, false
	first := c.pending
	c.mu.Unlock()
	if stopped {
		return nil, true
	}
	if len(first) == 0 {
		for _, f := range filters {
			if changed := f.update(ctx, w, dirty); len(changed) > 0 {
				first = append(first, types.PropertyFilterUpdate{Filter: f.ref, ObjectSet: changed})
			}
		}
	} else {
		c.keep(dirty)
	}
	if len(first) == 0 {
		return nil, false
	}
	page, rest := cut(first, limit)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pending = rest
	c.version++
	set = &types.UpdateSet{Version: strconv.Itoa(c.version), FilterSet: page}
	if len(rest) > 0 {
		set.Truncated = types.NewBool(true)
	}
	return set, false
}

// keep stores changes for a later answer.
func (c *collector) keep(dirty map[types.ManagedObjectReference]bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for ref := range dirty {
		c.dirty[ref] = true
	}
	c.signal()
}

func cut(list []types.PropertyFilterUpdate, limit int) (page, rest []types.PropertyFilterUpdate) {
	for i, f := range list {
		if n := len(f.ObjectSet); n <= limit {
			page, limit = append(page, f), limit-n
			continue
		}
		if limit > 0 {
			page = append(page, types.PropertyFilterUpdate{Filter: f.Filter, ObjectSet: f.ObjectSet[:limit]})
		}
		rest = append(rest, types.PropertyFilterUpdate{Filter: f.Filter, ObjectSet: f.ObjectSet[limit:]})
		return page, append(rest, list[i+1:]...)
	}
	return page, nil
}

// update reads the objects that the filter selects and returns the differences from the values that the client has received.
func (f *filter) update(ctx *simulator.Context, w *Watch, dirty map[types.ManagedObjectReference]bool) []types.ObjectUpdate {
	if f.known != nil && !f.concerned(dirty) {
		return nil
	}
	spec := f.spec
	spec.ReportMissingObjectsInResults = types.NewBool(true)
	var want func(types.ManagedObjectReference) bool
	if f.known != nil {
		want = func(ref types.ManagedObjectReference) bool {
			_, known := f.known[ref]
			return !known || dirty[ref]
		}
	}
	objects, unchanged, fault := w.read.ReadWanted(ctx, []types.PropertyFilterSpec{spec}, want)
	if fault != nil {
		return nil
	}
	known := make(map[types.ManagedObjectReference]map[string]types.AnyType, len(f.known))
	for _, ref := range unchanged {
		known[ref] = f.known[ref]
	}
	var out []types.ObjectUpdate
	for _, o := range objects {
		now := map[string]types.AnyType{}
		before, told := f.known[o.Obj]
		u := types.ObjectUpdate{Obj: o.Obj, Kind: types.ObjectUpdateKindModify}
		if !told {
			u.Kind, u.MissingSet = types.ObjectUpdateKindEnter, o.MissingSet
		}
		for _, p := range o.PropSet {
			now[p.Name] = p.Val
			if old, had := before[p.Name]; !had || !reflect.DeepEqual(old, p.Val) {
				u.ChangeSet = append(u.ChangeSet, types.PropertyChange{Name: p.Name, Op: types.PropertyChangeOpAssign, Val: p.Val})
			}
		}
		for name := range before {
			if _, has := now[name]; !has {
				u.ChangeSet = append(u.ChangeSet, types.PropertyChange{Name: name, Op: types.PropertyChangeOpAssign})
			}
		}
		known[o.Obj] = now
		if !told || len(u.ChangeSet) > 0 {
			out = append(out, u)
		}
	}
	for ref := range f.known {
		if _, still := known[ref]; !still {
			out = append(out, types.ObjectUpdate{Obj: ref, Kind: types.ObjectUpdateKindLeave})
		}
	}
	f.known = known
	return out
}

// concerned reports whether changes can affect the filter: they include an object that the client has received, or an object
// from which the filter reaches others.
func (f *filter) concerned(dirty map[types.ManagedObjectReference]bool) bool {
	for ref := range dirty {
		if _, known := f.known[ref]; known {
			return true
		}
		switch ref.Type {
		case "Folder", "Datacenter", "ClusterComputeResource", "ResourcePool", "ContainerView", "ListView":
			return true
		}
	}
	for _, o := range f.spec.ObjectSet {
		if dirty[o.Obj] {
			return true
		}
	}
	return false
}

// settle waits while changes are collected. It returns early if the lab ends.
func (w *Watch) settle() {
	timer := time.NewTimer(settle)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-w.stop:
	}
}
