package wire

import (
	"context"

	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/types"
)

// flush adds the pending objects to the view, including those of other callers, and makes sure that the loop runs.
func (w *watcher) flush(ctx context.Context) error {
	w.viewMu.Lock()
	defer w.viewMu.Unlock()
	w.mu.Lock()
	add, remove := w.pending, w.done
	w.pending, w.done = nil, nil
	w.mu.Unlock()

	if len(add) > 0 {
		gone, err := w.change(ctx, add, remove)
		if err != nil {
			w.mu.Lock()
			w.pending = append(w.pending, add...)
			w.mu.Unlock()
			return err
		}
		for _, ref := range gone {
			w.finish(ref, ErrGone)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.running && !w.closed && len(w.watches) > 0 {
		w.running = true
		w.ended = make(chan struct{})
		var loop context.Context
		loop, w.cancel = context.WithCancel(context.Background())
		go w.loop(loop)
	}
	return nil
}

// change alters the view, or creates view, collector and filter if there are none. The caller holds viewMu.
func (w *watcher) change(ctx context.Context, add, remove []types.ManagedObjectReference) ([]types.ManagedObjectReference, error) {
	vim := w.conn.vim
	if w.collector != nil {
		res, err := methods.ModifyListView(ctx, vim, &types.ModifyListView{This: w.view, Add: add, Remove: remove})
		if err == nil {
			w.entered(add)
			return res.Returnval, nil
		}
		if !lost(err) {
			return nil, err
		}
	}
	return nil, w.build(ctx)
}

func (w *watcher) entered(refs []types.ManagedObjectReference) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, ref := range refs {
		w.inView[ref] = ref.Type != "Task"
	}
}

// build creates view, collector and filter again for everything that is watched. The caller holds viewMu.
func (w *watcher) build(ctx context.Context) error {
	vim := w.conn.vim
	if old := w.collector; old != nil {
		w.collector = nil
		_, _ = methods.DestroyPropertyCollector(ctx, vim, &types.DestroyPropertyCollector{This: *old})
	}
	w.mu.Lock()
	refs := make([]types.ManagedObjectReference, 0, len(w.watches))
	for ref := range w.watches {
		refs = append(refs, ref)
	}
	w.done = nil
	clear(w.inView)
	w.mu.Unlock()

	view, err := methods.CreateListView(ctx, vim, &types.CreateListView{This: *vim.ServiceContent.ViewManager})
	if err != nil {
		return err
	}
	pc, err := methods.CreatePropertyCollector(ctx, vim, &types.CreatePropertyCollector{This: vim.ServiceContent.PropertyCollector})
	if err != nil {
		return err
	}
	_, err = methods.CreateFilter(ctx, vim, &types.CreateFilter{This: pc.Returnval, Spec: types.PropertyFilterSpec{
		PropSet: watched,
		ObjectSet: []types.ObjectSpec{{Obj: view.Returnval, Skip: types.NewBool(true), SelectSet: []types.BaseSelectionSpec{
			&types.TraversalSpec{Type: "ListView", Path: "view"},
		}}},
		ReportMissingObjectsInResults: types.NewBool(true),
	}})
	if err != nil {
		return err
	}
	res, err := methods.ModifyListView(ctx, vim, &types.ModifyListView{This: view.Returnval, Add: refs})
	if err != nil {
		return err
	}
	w.collector, w.view, w.version = &pc.Returnval, view.Returnval, ""
	w.entered(refs)
	for _, ref := range res.Returnval {
		w.finish(ref, ErrGone)
	}
	return nil
}

func pathsOf(kind string) []string {
	for _, set := range watched {
		if set.Type == kind {
			return set.PathSet
		}
	}
	return nil
}
