package history

import (
	"slices"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter/frame"
)

// A collector is a client's view of the events or tasks that match a filter: a read position and, for events, a page with the latest.
type collector struct {
	ref     types.ManagedObjectReference
	session string
	events  *types.EventFilterSpec // either events or tasks is set
	tasks   *types.TaskFilterSpec
	page    int // number of items in latestPage
	at      int // index of the next item
}

func (h *History) latestEvents(c *collector) []types.BaseEvent {
	h.mu.Lock()
	items, page := h.happened.items, c.page
	h.mu.Unlock()
	var out []types.BaseEvent
	for i := len(items) - 1; i >= 0 && len(out) < page; i-- {
		if h.matches(items[i], c.events) {
			out = append(out, items[i])
		}
	}
	slices.Reverse(out)
	return out
}

// nextEvents returns up to n events of a collector, starting at a position, oldest first, and the position after them.
func (h *History) nextEvents(c *collector, at, n int) ([]types.BaseEvent, int) {
	h.mu.Lock()
	items, first := h.happened.items, h.happened.first
	h.mu.Unlock()
	return next(items, first, at, n, func(e types.BaseEvent) (types.BaseEvent, bool) { return e, h.matches(e, c.events) })
}

func (h *History) nextTasks(c *collector, at, n int) ([]types.TaskInfo, int) {
	h.mu.Lock()
	items, first := h.done.items, h.done.first
	h.mu.Unlock()
	return next(items, first, at, n, func(r types.ManagedObjectReference) (types.TaskInfo, bool) { return h.wanted(r, c.tasks) })
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

// SetCollectorPageSize sets the number of items on the latest page.
func (m eventCollector) SetCollectorPageSize(ctx *simulator.Context, req *types.SetCollectorPageSize) soap.HasFault {
	c, err := m.h.counted(ctx, req.This, req.MaxCount)
	if err == nil {
		m.h.mu.Lock()
		c.page = int(req.MaxCount)
		m.h.mu.Unlock()
		m.h.f.Update(c.ref, frame.Set("latestPage", types.ArrayOfEvent{Event: m.h.latestEvents(c)}))
	}
	return frame.Answer(types.SetCollectorPageSizeResponse{}, err)
}

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

// DestroyCollector removes the collector.
func (m taskCollector) DestroyCollector(ctx *simulator.Context, req *types.DestroyCollector) soap.HasFault {
	return m.h.destroy(ctx, req)
}
