package setting

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/place"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/wire"
)

// A hostSetting is a setting that costs one call per host to write, while a property read returns it for hundreds of hosts at
// once.
type hostSetting interface {
	Read(ctx context.Context, t backends.Setting) (backends.Value, error)
	Parent(t backends.Setting) string                                       // settings with the same requested value go together
	write(ctx context.Context, t backends.Setting, to backends.Value) error // does not read back
	what(t backends.Setting, to backends.Value) string
	object(ctx context.Context, t backends.Setting) (place.Ref, error)
	path(t backends.Setting) string // property of the object
	value(prop any) (backends.Value, bool)
}

// hosts is the setter of a hostSetting, for one host and for many.
type hosts struct {
	hostSetting
	*site
	parallel int // hosts read or changed in parallel

	mu    sync.Mutex
	alone map[place.Ref]bool // objects whose property is older than the host's own answer
}

func (h *hosts) Set(ctx context.Context, t backends.Setting, to backends.Value, progress backends.Progress) error {
	err := h.write(ctx, t, to)
	if err == nil {
		err = wire.Confirm(ctx, t.Target.Name, h.what(t, to), to, wire.Reading(ctx, h.Read, t, to))
	}
	if err == nil {
		progress.Report(100)
	}
	return err
}

// SetMany writes all settings in parallel and reads them back together. It returns one error per host.
func (h *hosts) SetMany(ctx context.Context, as []backends.Assignment, progress backends.Progress) []error {
	errs := make([]error, len(as))
	backends.InParallel(slices.All(as), h.parallel, func(i int, a backends.Assignment) { errs[i] = h.write(ctx, a.Setting, a.To) })
	var unproved []int
	for i, err := range errs {
		if err == nil {
			unproved = append(unproved, i)
		}
	}
	for try := 1; len(unproved) > 0; try++ {
		ss := make([]backends.Setting, len(unproved))
		for n, i := range unproved {
			ss[n] = as[i].Setting
		}
		values, _ := h.ReadMany(ctx, ss)
		var left []int
		for n, i := range unproved {
			if values[n] != as[i].To {
				left = append(left, i)
			}
		}
		unproved = left
		if try == 2 || len(unproved) > 0 && !wire.Pause(ctx, try) {
			break
		}
	}
	// vCenter's properties may be out of date: from now on, the host's own answer counts.
	backends.InParallel(slices.All(unproved), h.parallel, func(_, i int) {
		a := as[i]
		if errs[i] = wire.Confirm(ctx, a.Target.Name, h.what(a.Setting, a.To), a.To, wire.Reading(ctx, h.Read, a.Setting, a.To)); errs[i] == nil {
			h.distrust(ctx, a.Setting)
		}
	})
	progress.Report(100)
	return errs
}

func (h *hosts) distrust(ctx context.Context, t backends.Setting) {
	if ref, err := h.object(ctx, t); err == nil {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.alone[ref] = true
	}
}

func (h *hosts) distrusted(ref place.Ref) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.alone[ref]
}

// ReadMany reads the setting of many hosts by property reads, one call for 500 of them. Hosts whose property does not have it are
// read individually.
func (h *hosts) ReadMany(ctx context.Context, ss []backends.Setting) ([]backends.Value, []error) {
	values, errs := make([]backends.Value, len(ss)), make([]error, len(ss))
	wanted := map[place.Ref]map[string]int{} // object -> path -> index
	var refs []place.Ref
	var paths []string
	var alone []int
	for i, t := range ss {
		ref, err := h.object(ctx, t)
		switch {
		case err != nil:
			errs[i] = wire.Explain(err, t.Target.Name, "read "+t.Name)
			continue
		case h.distrusted(ref) || strings.ContainsAny(t.Name, `"[]`):
			alone = append(alone, i)
			continue
		case wanted[ref] == nil:
			wanted[ref] = map[string]int{}
			refs = append(refs, ref)
		}
		path := h.path(t)
		if _, twice := wanted[ref][path]; twice {
			alone = append(alone, i)
			continue
		}
		wanted[ref][path] = i
		if !slices.Contains(paths, path) {
			paths = append(paths, path)
		}
	}
	if len(refs) > 0 {
		_, err := h.conn.Retrieve(ctx, []types.PropertyFilterSpec{wire.Of(refs[0].Type, refs, paths...)}, func(o wire.Object) {
			for path, i := range wanted[o.Ref] {
				if v, ok := h.value(o.Props[path]); ok {
					values[i] = v
					delete(wanted[o.Ref], path)
				}
			}
		})
		for _, ref := range refs {
			for _, i := range wanted[ref] {
				if err == nil || stale(err) {
					alone = append(alone, i)
				} else {
					errs[i] = wire.Explain(err, ss[i].Target.Name, "read "+ss[i].Name)
				}
			}
		}
	}
	backends.InParallel(slices.All(alone), h.parallel, func(_, i int) { values[i], errs[i] = h.Read(ctx, ss[i]) })
	return values, errs
}
