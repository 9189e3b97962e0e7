package engine_test

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
)

// A World is an in-memory world for tests of the engine: settings and brackets that behave according to the contracts of package
// backends, with latency, faults and points at which everything ends as after kill -9. Settings of a VM can be set only while it
// is off, a guest answers only while its VM is on, and a value in pending becomes active with the host's next reboot.
type World struct {
	Latency time.Duration // of every call
	Crash   *Crash        // nil: never
	Fault   func(Call) error
	// Before is called at the beginning of every call.
	Before func(context.Context, Call)

	mu      sync.Mutex
	values  map[string]backends.Value // by setting id
	pending map[string]backends.Value
	files   map[string]string       // by setting id: the files of a Keeper; see keeper
	power   map[backends.Ref]string // VMs: on, off
	maint   map[backends.Ref]bool   // hosts
	calls   []Call
	now     map[backends.Ref]int // operations running per target
	clash   []string             // operations that overlapped on one target
	most    int                  // maximum number of hosts in maintenance mode at the same time
	mostOff int                  // maximum number of VMs off at the same time
}

// A Call is one call that the engine made.
type Call struct {
	Verb    string // read, readmany, set, setmany, keep, observe, restore, state, open, close, abort; for faults "set step"
	Setting backends.Setting
	To      backends.Value
	Batch   int // settings in a setmany or readmany
}

// NewWorld returns an empty world in which VMs are on.
func NewWorld() *World {
	return &World{
		values: map[string]backends.Value{}, pending: map[string]backends.Value{}, files: map[string]string{},
		power: map[backends.Ref]string{}, maint: map[backends.Ref]bool{}, now: map[backends.Ref]int{},
	}
}

// Put sets a value without a call.
func (w *World) Put(s backends.Setting, v backends.Value) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.put(s, v)
}

func (w *World) put(s backends.Setting, v backends.Value) {
	if v.IsAbsent() {
		delete(w.values, s.ID())
		return
	}
	w.values[s.ID()] = v
}

// PutFile sets the text of a kept setting; its value is the text without spaces.
func (w *World) PutFile(s backends.Setting, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.files[s.ID()] = text
}

// Value returns a value without a call.
func (w *World) Value(s backends.Setting) backends.Value {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.value(s)
}

// SetPower turns a VM on or off without a call.
func (w *World) SetPower(vm backends.Ref, state string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.power[vm] = state
}

// Snapshot returns everything that must be equal in two equal worlds.
func (w *World) Snapshot() map[string]string {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := map[string]string{}
	for id, v := range w.values {
		out[id] = v.String()
	}
	for id, v := range w.pending {
		out["pending "+id] = v.String()
	}
	for id, text := range w.files {
		out["file "+id] = text
	}
	for vm, state := range w.power {
		if state != "on" {
			out["power "+vm.String()] = state
		}
	}
	for host, in := range w.maint {
		if in {
			out["maintenance "+host.String()] = "on"
		}
	}
	return out
}

// Clone returns a copy of the world without calls, faults and crashes.
func (w *World) Clone() *World {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := NewWorld()
	c.values, c.pending, c.files = maps.Clone(w.values), maps.Clone(w.pending), maps.Clone(w.files)
	c.power, c.maint = maps.Clone(w.power), maps.Clone(w.maint)
	return c
}

// Calls returns the calls so far, only those with the given verbs if there are any.
func (w *World) Calls(verbs ...string) []Call {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []Call
	for _, c := range w.calls {
		if len(verbs) == 0 {
			out = append(out, c)
		}
		for _, v := range verbs {
			if v == c.Verb {
				out = append(out, c)
			}
		}
	}
	return out
}

// Clashes returns the operations that ran while another operation ran on the same target.
func (w *World) Clashes() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string(nil), w.clash...)
}

// MaxOff is the largest number of VMs that were off at the same time.
func (w *World) MaxOff() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.mostOff
}

// MaxDown is the largest number of hosts that were in maintenance mode at the same time.
func (w *World) MaxDown() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.most
}

// call wraps every call with one effect.
func (w *World) call(ctx context.Context, c Call, targets []backends.Ref, effect func() error) error {
	return w.steps(ctx, c, targets, 1, func(int) error { return effect() })
}

// stepwise wraps every call that makes several steps on its target.
func (w *World) stepwise(ctx context.Context, c Call, steps int, step func(i int) error) error {
	return w.steps(ctx, c, []backends.Ref{c.Setting.Target}, steps, step)
}

// steps wraps every call: the crash before it, latency, faults, and the effects with a crash point after each. A fault of the
// verb "set step" or "restore step" interrupts a call before that step.
func (w *World) steps(ctx context.Context, c Call, targets []backends.Ref, steps int, step func(i int) error) error {
	if w.Before != nil {
		w.Before(ctx, c)
	}
	if err := w.Crash.step(c.isOperation()); err != nil {
		return err
	}
	w.enter(c, targets)
	defer w.leave(c, targets)
	if w.Latency > 0 {
		t := time.NewTimer(w.Latency)
		defer t.Stop()
		select {
		case <-t.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if w.Fault != nil {
		if err := w.Fault(c); err != nil {
			return err
		}
	}
	for i := range steps {
		if i > 0 && w.Fault != nil {
			if err := w.Fault(Call{Verb: c.Verb + " step", Setting: c.Setting, To: c.To, Batch: i}); err != nil {
				return err
			}
		}
		w.mu.Lock()
		err := step(i)
		w.mu.Unlock()
		if dead := w.Crash.step(c.isOperation()); dead != nil {
			return dead
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *World) enter(c Call, targets []backends.Ref) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls = append(w.calls, c)
	if !c.isOperation() {
		return
	}
	for _, t := range targets {
		if w.now[t]++; w.now[t] > 1 {
			w.clash = append(w.clash, fmt.Sprintf("%s %s", c.Verb, c.Setting.ID()))
		}
	}
}

func (w *World) leave(c Call, targets []backends.Ref) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if c.isOperation() {
		for _, t := range targets {
			w.now[t]--
		}
	}
}

// isOperation reports whether a call can change something.
func (c Call) isOperation() bool {
	switch c.Verb {
	case "read", "readmany", "keep", "observe", "state":
		return false
	}
	return true
}
