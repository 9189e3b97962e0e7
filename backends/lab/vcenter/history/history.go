// Package history stores the events and tasks of the lab's vCenter, and implements EventManager, TaskManager and their
// collectors. Source: vSphere Web Services API Reference, EventManager, TaskManager, HistoryCollector, EventHistoryCollector,
// TaskHistoryCollector, EventFilterSpec and TaskFilterSpec.
package history

import (
	"math"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/simulator/vpx"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter/frame"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

// Limits of vCenter: the number of collectors per session (event.maxCollectors and task.maxCollectors are 32), of items on a
// page, and of tasks in TaskManager.recentTask.
const (
	maxCollectors = 32
	maxPage       = 1000
	firstPage     = 10
	maxRecent     = 200
)

// recentFor is how long an ended task remains in TaskManager.recentTask, and in recentTask of its entity, which is a subset.
const recentFor = 10 * time.Minute

// keep is the minimum number of stored events and tasks. A real vCenter purges its database by age.
const keep = 20_000

// A History contains the events and tasks of a vCenter, oldest first.
type History struct {
	f *frame.Frame

	posting sync.Mutex // held while one event is posted, so that keys, pages and times have the same order
	showing sync.Mutex // held while recentTask is updated: an older list must not replace a newer one

	mu         sync.Mutex
	happened   log[types.BaseEvent]
	done       log[types.ManagedObjectReference]
	recent     []recentTask // as in TaskManager.recentTask, oldest first
	collectors map[types.ManagedObjectReference]*collector
	names      map[string]types.ManagedObjectReference // VMs by name, including removed ones
	active     map[types.ManagedObjectReference]types.TaskInfo
	hostOf     map[string]string // last known host by VM
	lastKey    int32
}

type recentTask struct {
	ref    types.ManagedObjectReference
	queued time.Time
}

// Register adds the methods to a frame and starts to record the events of its world.
func Register(f *frame.Frame) *History {
	h := &History{f: f, collectors: map[types.ManagedObjectReference]*collector{}, names: map[string]types.ManagedObjectReference{},
		active: map[types.ManagedObjectReference]types.TaskInfo{}, hostOf: map[string]string{}}
	f.World.View(func(s *world.State) {
		for _, v := range s.VMs {
			h.learn(v)
		}
	})
	f.Watch = h
	f.World.Watch(h.follow)
	f.Handle(eventManager{h}, "EventManager")
	f.Handle(taskManager{h}, "TaskManager")
	f.Handle(eventCollector{h}, "EventHistoryCollector")
	f.Handle(taskCollector{h}, "TaskHistoryCollector")
	return h
}

// End removes the collectors of a session.
func (h *History) End(session string) {
	h.mu.Lock()
	var gone []types.ManagedObjectReference
	for ref, c := range h.collectors {
		if c.session == session {
			gone = append(gone, ref)
			delete(h.collectors, ref)
		}
	}
	h.mu.Unlock()
	for _, ref := range gone {
		h.f.Remove(ref)
	}
}

// A log stores the newest items by number.
type log[T any] struct {
	first int // number of items[0]
	items []T
}

func (l *log[T]) add(item T) {
	l.items = append(l.items, item)
	if drop := len(l.items) - 2*keep; drop >= 0 {
		l.items = slices.Clone(l.items[len(l.items)-keep:])
		l.first += drop + keep
	}
}

// post sets the key, time and text of an event and notifies the collectors. chain is the key of the event that it belongs to, or
// 0 if it starts a chain.
func (h *History) post(event types.BaseEvent, chain int32) int32 {
	h.posting.Lock()
	defer h.posting.Unlock()
	now := time.Now()
	h.f.World.View(func(s *world.State) { now = now.Add(s.Skew) })
	h.mu.Lock()
	h.lastKey++
	e := event.GetEvent()
	e.Key, e.ChainId, e.CreatedTime = h.lastKey, chain, now
	if chain == 0 {
		e.ChainId = e.Key
	}
	if e.FullFormattedMessage == "" {
		e.FullFormattedMessage = message(event)
	}
	key := e.Key
	h.happened.add(event)
	var interested []*collector
	for _, c := range h.collectors {
		if c.events != nil {
			interested = append(interested, c)
		}
	}
	h.mu.Unlock()
	h.f.Update(*vpx.ServiceContent.EventManager, frame.Set("latestEvent", event))
	for _, c := range interested {
		if h.matches(event, c.events) {
			h.f.Update(c.ref, frame.Set("latestPage", types.ArrayOfEvent{Event: h.latestEvents(c)}))
		}
	}
	return key
}

// TaskMoved implements [frame.Watcher]. It is called when a task is created or has ended.
func (h *History) TaskMoved(ref types.ManagedObjectReference, ended bool) {
	info, ok := h.task(ref)
	if !ok || info.Entity == nil {
		return
	}
	if !ended {
		h.mu.Lock()
		h.done.add(ref)
		h.recent = append(h.recent, recentTask{ref, time.Now()})
		h.mu.Unlock()
		x := &types.TaskEvent{Info: info}
		x.Event = h.about(*info.Entity, info.Reason)
		info.EventChainId = h.post(x, 0)
		h.f.Update(ref, frame.Set("info.eventChainId", info.EventChainId))
		h.mu.Lock()
		h.active[*info.Entity] = info
		h.mu.Unlock()
		if begun := h.begun(info); begun != nil {
			h.post(begun, info.EventChainId)
		}
	} else {
		h.mu.Lock()
		if h.active[*info.Entity].Key == info.Key {
			delete(h.active, *info.Entity)
		}
		h.mu.Unlock()
	}
	h.showTasks()
}

// TaskDone implements [frame.Watcher]. It posts the event for the effect of a task before clients can see that the task has
// ended.
func (h *History) TaskDone(ref types.ManagedObjectReference, result any) {
	info, ok := h.task(ref)
	if !ok || info.Entity == nil {
		return
	}
	info.Result = result
	if x := h.ended(info); x != nil {
		h.post(x, info.EventChainId)
	}
}

// showTasks updates recentTask after a task is created or changes its state.
func (h *History) showTasks() {
	h.showing.Lock()
	defer h.showing.Unlock()
	h.mu.Lock()
	all := slices.Clone(h.recent)
	h.mu.Unlock()
	old := time.Now().Add(-recentFor)
	over := map[types.ManagedObjectReference]bool{}
	for i, t := range all {
		excess := len(all)-i > maxRecent
		if !excess && t.queued.After(old) {
			break
		}
		if info, ok := h.task(t.ref); !ok || info.CompleteTime != nil && (excess || info.CompleteTime.Before(old)) {
			over[t.ref] = true
			h.f.Forget(t.ref)
		}
	}
	h.mu.Lock()
	if len(over) > 0 {
		h.recent = slices.DeleteFunc(h.recent, func(t recentTask) bool { return over[t.ref] })
	}
	recent := make([]types.ManagedObjectReference, 0, len(h.recent))
	for _, t := range h.recent {
		recent = append(recent, t.ref)
	}
	h.mu.Unlock()
	h.f.Update(*vpx.ServiceContent.TaskManager, frame.Set("recentTask", recent))
}

// task returns the info of a task.
func (h *History) task(ref types.ManagedObjectReference) (info types.TaskInfo, ok bool) {
	h.f.Read(ref, func(obj mo.Reference) {
		if t, is := obj.(*mo.Task); is {
			info, ok = t.Info, true
		}
	})
	return info, ok
}

// SessionBegan implements [frame.Watcher].
func (h *History) SessionBegan(s types.UserSession) {
	x := &types.UserLoginSessionEvent{IpAddress: s.IpAddress, UserAgent: s.UserAgent, Locale: s.Locale, SessionId: s.Key}
	x.UserName = s.UserName
	h.post(x, 0)
}

// SessionEnded implements [frame.Watcher].
func (h *History) SessionEnded(s types.UserSession) {
	h.End(s.Key)
	login := s.LoginTime
	x := &types.UserLogoutSessionEvent{IpAddress: s.IpAddress, UserAgent: s.UserAgent, CallCount: int64(s.CallCount), SessionId: s.Key,
		LoginTime: &login}
	x.UserName = s.UserName
	h.post(x, 0)
}

type eventManager struct{ h *History }

// QueryEvents returns the events that match a filter, oldest first. If the filter limits their number, it returns the newest
// ones.
func (m eventManager) QueryEvents(_ *simulator.Context, req *types.QueryEvents) soap.HasFault {
	out, _ := m.h.nextEvents(&collector{events: &req.Filter}, 0, math.MaxInt)
	if n := int(req.Filter.MaxCount); n > 0 && len(out) > n {
		out = out[len(out)-n:]
	}
	return frame.Answer(types.QueryEventsResponse{Returnval: out}, nil)
}

// CreateCollectorForEvents creates a collector for the events that match a filter.
func (m eventManager) CreateCollectorForEvents(ctx *simulator.Context, req *types.CreateCollectorForEvents) soap.HasFault {
	filter := req.Filter
	c, err := m.h.collect(ctx, &collector{events: &filter}, "EventHistoryCollector")
	if err == nil {
		obj := &mo.EventHistoryCollector{LatestPage: m.h.latestEvents(c)}
		obj.Self, obj.Filter = c.ref, filter
		m.h.f.Add(obj)
	}
	return answer(err, func() any { return types.CreateCollectorForEventsResponse{Returnval: c.ref} })
}

type taskManager struct{ h *History }

// CreateCollectorForTasks creates a collector for the tasks that match a filter.
func (m taskManager) CreateCollectorForTasks(ctx *simulator.Context, req *types.CreateCollectorForTasks) soap.HasFault {
	filter := req.Filter
	c, err := m.h.collect(ctx, &collector{tasks: &filter}, "TaskHistoryCollector")
	if err == nil {
		obj := &mo.TaskHistoryCollector{}
		obj.Self, obj.Filter = c.ref, filter
		m.h.f.Add(obj)
	}
	return answer(err, func() any { return types.CreateCollectorForTasksResponse{Returnval: c.ref} })
}

func answer(err error, response func() any) soap.HasFault {
	if err != nil {
		return frame.Answer(nil, err)
	}
	return frame.Answer(response(), nil)
}

// collect adds a collector to a session. Its position is before the oldest item.
func (h *History) collect(ctx *simulator.Context, c *collector, kind string) (*collector, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := 0
	for _, other := range h.collectors {
		if other.session == ctx.Session.Key && other.ref.Type == kind {
			n++
		}
	}
	if n >= maxCollectors {
		return nil, frame.Refuse(&types.InvalidState{}, "The maximum number of collectors of the session is reached.")
	}
	c.ref = types.ManagedObjectReference{Type: kind, Value: "session[" + ctx.Session.Key + "]" + uuid.NewString()}
	c.session, c.page = ctx.Session.Key, firstPage
	h.collectors[c.ref] = c
	return c, nil
}
