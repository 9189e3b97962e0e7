package wire

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends"
)

// watched are the properties that a watch reads, per type. One filter over one list view serves every watch, so that waiting for
// a hundred tasks or reboots takes one open call.
var watched = []types.PropertySpec{
	{Type: "Task", PathSet: []string{"info.state", "info.progress", "info.error", "info.result"}},
	{Type: "HostSystem", PathSet: []string{"runtime.connectionState", "runtime.bootTime", "runtime.inMaintenanceMode", "runtime.powerState",
		"summary.rebootRequired"}},
	{Type: "VirtualMachine", PathSet: []string{"runtime.powerState", "guest.toolsRunningStatus", "guest.ipAddress"}},
}

// rebuilds is how often in a row the collector is created again after failed calls while other calls are answered.
const rebuilds = 6

// outage is how long the watcher retries while vCenter cannot be reached, including a restart of its services.
const outage = 20 * time.Minute

// watcher waits for changes of many objects with one collector.
type watcher struct {
	conn *Conn
	kick chan struct{}

	mu      sync.Mutex
	watches map[types.ManagedObjectReference][]*watch
	pending []types.ManagedObjectReference        // not in the view yet
	inView  map[types.ManagedObjectReference]bool // hosts and VMs remain in it, tasks are watched once
	done    []types.ManagedObjectReference        // tasks to be removed from the view with its next change
	newest  time.Time                             // when the last watch started
	running bool
	closed  bool
	cancel  context.CancelFunc
	ended   chan struct{}

	viewMu    sync.Mutex // held while the view is created or changed
	collector *types.ManagedObjectReference
	view      types.ManagedObjectReference
	version   string
}

type watch struct {
	mu    sync.Mutex
	state Object
	over  bool
	see   func(Object) bool
	end   chan error
}

// learn merges updates into the state and reports whether the watch is done. Values that were read explicitly (first) never
// replace those of an update that arrived in the meantime.
func (one *watch) learn(news map[string]any, gone []string, first bool) bool {
	one.mu.Lock()
	defer one.mu.Unlock()
	if one.over {
		return false
	}
	for path, v := range news {
		if _, has := one.state.Props[path]; !has || !first {
			one.state.Props[path] = v
		}
	}
	for _, path := range gone {
		delete(one.state.Props, path)
	}
	one.over = one.see(one.state)
	return one.over
}

// Watch calls see with the state of ref, immediately and whenever it changes, until see returns true; one call at a time. See
// must not block. Watch returns ErrGone if the object is removed.
func (c *Conn) Watch(ctx context.Context, ref types.ManagedObjectReference, see func(Object) bool) error {
	return c.watch.wait(ctx, ref, see)
}

func (w *watcher) wait(ctx context.Context, ref types.ManagedObjectReference, see func(Object) bool) error {
	one := &watch{state: Object{Ref: ref, Props: map[string]any{}}, see: see, end: make(chan error, 1)}
	w.mu.Lock()
	if w.closed {
		w.mu.Unlock()
		return errors.New("the connection to vCenter is closed")
	}
	if w.watches == nil {
		w.watches = map[types.ManagedObjectReference][]*watch{}
		w.inView = map[types.ManagedObjectReference]bool{}
	}
	w.watches[ref] = append(w.watches[ref], one)
	w.newest = time.Now()
	known := w.inView[ref]
	if !known {
		w.pending = append(w.pending, ref)
	}
	w.mu.Unlock()
	select {
	case w.kick <- struct{}{}:
	default:
	}

	if err := w.flush(ctx); err != nil {
		w.forget(ref, one)
		return err
	}
	if known {
		// The server reports changes only, and this object was in the view already: read its state.
		now, err := w.conn.One(ctx, ref, pathsOf(ref.Type)...)
		if err != nil {
			w.forget(ref, one)
			return err
		}
		if one.learn(now.Props, nil, true) {
			w.forget(ref, one)
			return nil
		}
	}
	select {
	case err := <-one.end:
		return err
	case <-ctx.Done():
		w.forget(ref, one)
		return context.Cause(ctx)
	}
}

// loop waits for updates while there are watches. When the last watch ends it lets the open call finish instead of aborting it,
// because a server may continue to serve an aborted call and lose the updates meant for the next.
func (w *watcher) loop(ctx context.Context) {
	defer close(w.ended)
	var broken time.Time
	lostSince := 0 // failed calls in a row
	for {
		w.mu.Lock()
		if len(w.watches) == 0 || w.closed {
			w.running = false
			w.mu.Unlock()
			return
		}
		w.mu.Unlock()

		err := w.step(ctx)
		switch {
		case err == nil:
			broken, lostSince = time.Time{}, 0
			w.rest(ctx)
			continue
		case ctx.Err() != nil:
			w.fail(err)
			continue
		case lost(err), isRestarting(err):
			lostSince++
			w.viewMu.Lock()
			bad := w.build(ctx)
			w.viewMu.Unlock()
			if bad != nil {
				lostSince = 0 // other calls fail too
			}
			if bad == nil && lostSince > rebuilds {
				w.fail(err) // something between here and vCenter blocks long calls
				lostSince = 0
				continue
			}
			if err = bad; err == nil {
				backends.Sleep(ctx, time.Duration(lostSince*lostSince-1)*50*time.Millisecond) // immediately after the first failure
				continue
			}
		}
		if broken.IsZero() {
			broken = time.Now()
		}
		if hopeless(err) || time.Since(broken) > w.conn.cfg.outage() {
			w.fail(err)
			continue
		}
		backends.Sleep(ctx, 2*time.Second)
	}
}

// rest lets updates accumulate before the next call: a task that reports its progress every few milliseconds would cost a call
// each time. The longer the wait, the longer the delay, up to half a second; a new watch ends it.
func (w *watcher) rest(ctx context.Context) {
	select {
	case <-w.kick: // of the watch that the last iteration served
	default:
	}
	w.mu.Lock()
	idle, age := len(w.watches) == 0, time.Since(w.newest)
	w.mu.Unlock()
	if idle {
		return
	}
	t := time.NewTimer(min(max(age/4, 20*time.Millisecond), 500*time.Millisecond))
	defer t.Stop()
	select {
	case <-t.C:
	case <-w.kick:
	case <-ctx.Done():
	}
}

func (w *watcher) step(ctx context.Context) error {
	w.viewMu.Lock()
	collector, version := w.collector, w.version
	w.viewMu.Unlock()
	if collector == nil {
		return errLost
	}
	res, err := methods.WaitForUpdatesEx(ctx, w.conn.vim, &types.WaitForUpdatesEx{
		This: *collector, Version: version, Options: &types.WaitOptions{MaxWaitSeconds: types.NewInt32(w.conn.cfg.waitSeconds())},
	})
	if err != nil || res.Returnval == nil {
		return err
	}
	w.viewMu.Lock()
	if w.collector != nil && *w.collector == *collector {
		w.version = res.Returnval.Version
	}
	w.viewMu.Unlock()
	for _, set := range res.Returnval.FilterSet {
		for _, u := range set.ObjectSet {
			w.update(u)
		}
		for _, m := range set.MissingSet {
			w.finish(m.Obj, ErrGone)
		}
	}
	return nil
}

func (w *watcher) update(u types.ObjectUpdate) {
	if u.Kind == types.ObjectUpdateKindLeave {
		// The object left the view because this program removed it, unless it is still watched.
		w.finish(u.Obj, ErrGone)
		return
	}
	w.mu.Lock()
	watches := append([]*watch(nil), w.watches[u.Obj]...)
	w.mu.Unlock()
	news := map[string]any{}
	var gone []string
	for _, ch := range u.ChangeSet {
		if ch.Op == types.PropertyChangeOpAssign || ch.Op == types.PropertyChangeOpAdd {
			news[ch.Name] = ch.Val
		} else {
			gone = append(gone, ch.Name)
		}
	}
	for _, one := range watches {
		if one.learn(news, gone, false) {
			w.forget(u.Obj, one)
			one.end <- nil
		}
	}
}

func (w *watcher) finish(ref types.ManagedObjectReference, err error) {
	w.mu.Lock()
	watches := w.watches[ref]
	delete(w.watches, ref)
	w.mu.Unlock()
	for _, one := range watches {
		one.end <- err
	}
}

func (w *watcher) fail(err error) {
	w.mu.Lock()
	all := w.watches
	w.watches = map[types.ManagedObjectReference][]*watch{}
	w.mu.Unlock()
	for _, watches := range all {
		for _, one := range watches {
			one.end <- err
		}
	}
}

func (w *watcher) forget(ref types.ManagedObjectReference, one *watch) {
	w.mu.Lock()
	defer w.mu.Unlock()
	left := w.watches[ref][:0:0]
	for _, other := range w.watches[ref] {
		if other != one {
			left = append(left, other)
		}
	}
	if len(left) > 0 {
		w.watches[ref] = left
		return
	}
	if _, was := w.watches[ref]; was {
		delete(w.watches, ref)
		if ref.Type == "Task" {
			w.done = append(w.done, ref)
		}
	}
}

func (w *watcher) close(ctx context.Context) {
	w.mu.Lock()
	w.closed = true
	running, cancel, ended := w.running, w.cancel, w.ended
	w.mu.Unlock()
	if !running {
		return
	}
	w.viewMu.Lock()
	collector := w.collector
	w.viewMu.Unlock()
	if collector != nil {
		// CancelWaitForUpdates makes the server answer the open call; closing the connection would leave the call waiting there.
		_, _ = methods.CancelWaitForUpdates(ctx, traced{w.conn}, &types.CancelWaitForUpdates{This: *collector})
	}
	select {
	case <-ended:
	case <-time.After(time.Second):
	case <-ctx.Done():
	}
	cancel()
	<-ended
}

var errLost = errors.New("the collector is gone")

// lost reports whether the collector or its view ended with their session.
func lost(err error) bool {
	if errors.Is(err, errLost) {
		return true
	}
	if isBroken(err) || errors.Is(err, errSilence) {
		return true // the lost reply contained updates, and not every server sends them again
	}
	switch FaultOf(err).(type) {
	case *types.ManagedObjectNotFound, *types.InvalidCollectorVersion, *types.NotAuthenticated:
		return true
	}
	return false
}

// hopeless reports whether an error persists however long the watcher waits.
func hopeless(err error) bool {
	kind, _, _ := classify(err)
	switch kind {
	case "auth", "permission", "permanent", "interrupted":
		return true
	}
	return false
}
