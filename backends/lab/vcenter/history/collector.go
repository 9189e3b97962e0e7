package history

import (
	"slices"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter/frame"
)

// A collector is a client's view of the events or tasks that match a filter: a page with the latest items, and a read position.
type collector struct {
	ref     types.ManagedObjectReference
	session string
	events  *types.EventFilterSpec // either events or tasks is set
	tasks   *types.TaskFilterSpec
	page    int // number of items in latestPage
	at      int // index of the next item
}

func (h *History) latestEvents(c *collector) []types.BaseEvent {
	out, _ := h.previousEvents(c, h.endOf(c), h.pageOf(c))
	slices.Reverse(out)
	return out
}

func (h *History) latestTasks(c *collector) []types.TaskInfo {
	out, _ := h.previousTasks(c, h.endOf(c), h.pageOf(c))
	slices.Reverse(out)
	return out
}

func (h *History) endOf(c *collector) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	if c.events != nil {
		return h.happened.end()
	}
	return h.done.end()
}

func (h *History) pageOf(c *collector) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return c.page
}

// nextEvents returns up to n events of a collector, starting at a position, oldest first, and the position after them.
func (h *History) nextEvents(c *collector, at, n int) ([]types.BaseEvent, int) {
	h.mu.Lock()
	items, first := h.happened.items, h.happened.first
	h.mu.Unlock()
	return next(items, first, at, n, func(e types.BaseEvent) (types.BaseEvent, bool) { return e, h.matches(e, c.events) })
}

// previousEvents returns up to n events before a position, newest first, and the position before them.
func (h *History) previousEvents(c *collector, at, n int) ([]types.BaseEvent, int) {
	h.mu.Lock()
	items, first := h.happened.items, h.happened.first
	h.mu.Unlock()
	return previous(items, first, at, n, func(e types.BaseEvent) (types.BaseEvent, bool) { return e, h.matches(e, c.events) })
}

func (h *History) nextTasks(c *collector, at, n int) ([]types.TaskInfo, int) {
	h.mu.Lock()
	items, first := h.done.items, h.done.first
	h.mu.Unlock()
	return next(items, first, at, n, func(r types.ManagedObjectReference) (types.TaskInfo, bool) { return h.wanted(r, c.tasks) })
}

func (h *History) previousTasks(c *collector, at, n int) ([]types.TaskInfo, int) {
	h.mu.Lock()
	items, first := h.done.items, h.done.first
	h.mu.Unlock()
	return previous(items, first, at, n, func(r types.ManagedObjectReference) (types.TaskInfo, bool) { return h.wanted(r, c.tasks) })
}

func next[T, V any](items []T, first, at, n int, pick func(T) (V, bool)) ([]V, int) {
	var out []V
	i := max(at-first, 0)
	for ; i < len(items) && len(out) < n; i++ {
		if v, ok := pick(items[i]); ok {
			out = append(out, v)
		}
	}
	return out, first + i
}

func previous[T, V any](items []T, first, at, n int, pick func(T) (V, bool)) ([]V, int) {
	var out []V
	i := min(max(at-first, 0), len(items))
	for ; i > 0 && len(out) < n; i-- {
		if v, ok := pick(items[i-1]); ok {
			out = append(out, v)
		}
	}
	return out, first + i
}

// mine returns a collector of the calling session. Collectors of other sessions are refused.
func (h *History) mine(ctx *simulator.Context, ref types.ManagedObjectReference) (*collector, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := h.collectors[ref]
	if c == nil || c.session != ctx.Session.Key {
		return nil, frame.Gone(ref)
	}
	return c, nil
}

// counted is mine for methods with a number of items as a parameter, which it validates.
func (h *History) counted(ctx *simulator.Context, ref types.ManagedObjectReference, n int32) (*collector, error) {
	c, err := h.mine(ctx, ref)
	if err == nil && (n < 1 || n > maxPage) {
		err = frame.BadArgument("maxCount")
	}
	return c, err
}

func (h *History) position(c *collector) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return c.at
}

func (h *History) stand(c *collector, at int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	c.at = at
}

// rewind moves the position before the oldest item.
func (h *History) rewind(ctx *simulator.Context, req *types.RewindCollector) soap.HasFault {
	c, err := h.mine(ctx, req.This)
	if err == nil {
		h.stand(c, 0)
	}
	return frame.Answer(types.RewindCollectorResponse{}, err)
}

// reset moves the position before the latest page, so that reading backwards returns the items that are not on the page.
func (h *History) reset(ctx *simulator.Context, req *types.ResetCollector) soap.HasFault {
	c, err := h.mine(ctx, req.This)
	if err == nil {
		at := 0
		if c.events != nil {
			_, at = h.previousEvents(c, h.endOf(c), h.pageOf(c))
		} else {
			_, at = h.previousTasks(c, h.endOf(c), h.pageOf(c))
		}
		h.stand(c, at)
	}
	return frame.Answer(types.ResetCollectorResponse{}, err)
}

func (h *History) size(ctx *simulator.Context, req *types.SetCollectorPageSize) (*collector, error) {
	c, err := h.counted(ctx, req.This, req.MaxCount)
	if err == nil {
		h.mu.Lock()
		c.page = int(req.MaxCount)
		h.mu.Unlock()
	}
	return c, err
}

func (h *History) destroy(ctx *simulator.Context, req *types.DestroyCollector) soap.HasFault {
	c, err := h.mine(ctx, req.This)
	if err == nil {
		h.mu.Lock()
		delete(h.collectors, c.ref)
		h.mu.Unlock()
		h.f.Remove(c.ref)
	}
	return frame.Answer(types.DestroyCollectorResponse{}, err)
}

type eventCollector struct{ h *History }

// ReadNextEvents reads the next events, towards the newest.
func (m eventCollector) ReadNextEvents(ctx *simulator.Context, req *types.ReadNextEvents) soap.HasFault {
	c, err := m.h.counted(ctx, req.This, req.MaxCount)
	if err != nil {
		return frame.Answer(nil, err)
	}
	out, at := m.h.nextEvents(c, m.h.position(c), int(req.MaxCount))
	m.h.stand(c, at)
	return frame.Answer(types.ReadNextEventsResponse{Returnval: out}, nil)
}

// ReadPreviousEvents reads the previous events, towards the oldest.
func (m eventCollector) ReadPreviousEvents(ctx *simulator.Context, req *types.ReadPreviousEvents) soap.HasFault {
	c, err := m.h.counted(ctx, req.This, req.MaxCount)
	if err != nil {
		return frame.Answer(nil, err)
	}
	out, at := m.h.previousEvents(c, m.h.position(c), int(req.MaxCount))
	m.h.stand(c, at)
	return frame.Answer(types.ReadPreviousEventsResponse{Returnval: out}, nil)
}

// SetCollectorPageSize sets the number of items on the latest page.
func (m eventCollector) SetCollectorPageSize(ctx *simulator.Context, req *types.SetCollectorPageSize) soap.HasFault {
	c, err := m.h.size(ctx, req)
	if err == nil {
		m.h.f.Update(c.ref, frame.Set("latestPage", types.ArrayOfEvent{Event: m.h.latestEvents(c)}))
	}
	return frame.Answer(types.SetCollectorPageSizeResponse{}, err)
}

// RewindCollector moves the position before the oldest event.
func (m eventCollector) RewindCollector(ctx *simulator.Context, req *types.RewindCollector) soap.HasFault {
	return m.h.rewind(ctx, req)
}

// ResetCollector moves the position before the latest page.
func (m eventCollector) ResetCollector(ctx *simulator.Context, req *types.ResetCollector) soap.HasFault {
	return m.h.reset(ctx, req)
}

// DestroyCollector removes the collector.
func (m eventCollector) DestroyCollector(ctx *simulator.Context, req *types.DestroyCollector) soap.HasFault {
	return m.h.destroy(ctx, req)
}

type taskCollector struct{ h *History }

// ReadNextTasks reads the next tasks, towards the newest.
func (m taskCollector) ReadNextTasks(ctx *simulator.Context, req *types.ReadNextTasks) soap.HasFault {
	c, err := m.h.counted(ctx, req.This, req.MaxCount)
	if err != nil {
		return frame.Answer(nil, err)
	}
	out, at := m.h.nextTasks(c, m.h.position(c), int(req.MaxCount))
	m.h.stand(c, at)
	return frame.Answer(types.ReadNextTasksResponse{Returnval: out}, nil)
}

// ReadPreviousTasks reads the previous tasks, towards the oldest.
func (m taskCollector) ReadPreviousTasks(ctx *simulator.Context, req *types.ReadPreviousTasks) soap.HasFault {
	c, err := m.h.counted(ctx, req.This, req.MaxCount)
	if err != nil {
		return frame.Answer(nil, err)
	}
	out, at := m.h.previousTasks(c, m.h.position(c), int(req.MaxCount))
	m.h.stand(c, at)
	return frame.Answer(types.ReadPreviousTasksResponse{Returnval: out}, nil)
}

// SetCollectorPageSize sets the number of items on the latest page.
func (m taskCollector) SetCollectorPageSize(ctx *simulator.Context, req *types.SetCollectorPageSize) soap.HasFault {
	c, err := m.h.size(ctx, req)
	if err == nil {
		m.h.f.Update(c.ref, frame.Set("latestPage", types.ArrayOfTaskInfo{TaskInfo: m.h.latestTasks(c)}))
	}
	return frame.Answer(types.SetCollectorPageSizeResponse{}, err)
}

// RewindCollector moves the position before the oldest task.
func (m taskCollector) RewindCollector(ctx *simulator.Context, req *types.RewindCollector) soap.HasFault {
	return m.h.rewind(ctx, req)
}

// ResetCollector moves the position before the latest page.
func (m taskCollector) ResetCollector(ctx *simulator.Context, req *types.ResetCollector) soap.HasFault {
	return m.h.reset(ctx, req)
}

// DestroyCollector removes the collector.
func (m taskCollector) DestroyCollector(ctx *simulator.Context, req *types.DestroyCollector) soap.HasFault {
	return m.h.destroy(ctx, req)
}
