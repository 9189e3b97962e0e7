package engine_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/engine"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
)

// deadHost is a world of three hosts whose second one was killed with its run while it rebooted. Until back is closed it does not
// answer.
func deadHost(t *testing.T, back <-chan struct{}) (w *World, jb engine.Job, wishes []Wish) {
	t.Helper()
	w, wishes = firmware(3)
	dead := backends.HostRef("esx-02")
	w.Fault = func(c Call) error {
		if c.Verb == "close" && c.Setting.Target == dead {
			return errors.New("killed")
		}
		return nil
	}
	jb, j := fresh(t, w, wishes)
	jb.Limits.Parallel = 1
	if res, err := engine.Run(t.Context(), jb); err != nil || res.Status != engine.StatusPartial {
		t.Fatalf("%s, %v", res.Status, err)
	}
	w.Fault = nil
	answers := func() bool {
		select {
		case <-back:
			return true
		default:
			return false
		}
	}
	w.Before = func(ctx context.Context, c Call) {
		if c.Verb == "close" && c.Setting.Target == dead {
			select {
			case <-back:
			case <-ctx.Done():
			}
		}
	}
	jb = job(w, wishes, j)
	replan := w.Unwinder(wishes, func() []plan.Prior { return engine.Priors(j.State()) })
	jb.Replan = func(ctx context.Context) (*plan.Plan, error) {
		p, err := replan(ctx)
		if err != nil || answers() {
			return p, err
		}
		p.Changes = slices.DeleteFunc(p.Changes, func(c plan.Change) bool { return c.Target == dead })
		p.Brackets = slices.DeleteFunc(p.Brackets, func(b plan.Bracket) bool { return b.Target == dead })
		p.Conflicts = append(p.Conflicts, plan.Refusal{Target: dead, Why: "it does not answer", Kind: backends.KindUnreachable,
			Await: 30 * time.Minute})
		return p, nil
	}
	jb.Return = func(ctx context.Context, _ backends.Ref) error {
		select {
		case <-back:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	first, err := jb.Replan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	jb.Plan, jb.Ceiling = *first, first.Ceiling()
	return w, jb, wishes
}

// others are the values of the hosts that answer.
func others(w *World) (left []string) {
	for id := range w.Snapshot() {
		if !strings.Contains(id, "esx-02") {
			left = append(left, id)
		}
	}
	return left
}

func TestADeadHostHoldsOnlyItself(t *testing.T) {
	for name, c := range map[string]struct {
		after  time.Duration // when it comes back; 0: never
		change func(*engine.Job)
		status engine.Status
		took   time.Duration
	}{
		"comes back": {after: 10 * time.Minute, status: engine.StatusDone, took: 10 * time.Minute},
		"never":      {status: engine.StatusPartial, took: 30 * time.Minute},
		"the operator's own": {change: func(jb *engine.Job) { jb.Limits.Operation = time.Minute }, status: engine.StatusPartial,
			took: time.Minute},
		"not waited for": {change: func(jb *engine.Job) { jb.SkipUnreachable = true }, status: engine.StatusPartial},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				back := make(chan struct{})
				w, jb, _ := deadHost(t, back)
				if c.change != nil {
					c.change(&jb)
				}
				var rec recorder
				jb.Sink = rec.sink
				if c.after > 0 {
					time.AfterFunc(c.after, func() { close(back) })
				}
				go func() { // long before the host's limit, everything else is undone
					time.Sleep(time.Second)
					if left := others(w); len(left) > 0 {
						t.Errorf("after a second there are still %v", left)
					}
				}()
				begin := time.Now()
				res, err := engine.Rollback(t.Context(), jb)
				if err != nil || res.Status != c.status {
					t.Fatalf("%s, %v: %v", res.Status, err, states(res))
				}
				if took := time.Since(begin); took != c.took {
					t.Errorf("it took %s, want %s", took, c.took)
				}
				last := begin
				for _, e := range rec.events {
					if e.Time.Sub(last) > 10*time.Second {
						t.Errorf("silence from %s to %s", last, e.Time)
					}
					last = e.Time
				}
				if c.took > time.Minute && !slices.ContainsFunc(rec.events, func(e engine.Event) bool {
					return e.Type == engine.EventWaiting && e.Waits == "esx-02" && strings.Contains(e.Text, "at most 30m")
				}) {
					t.Error("nobody was told what is waited for")
				}
				if c.status == engine.StatusDone && len(w.Snapshot()) > 0 {
					t.Errorf("left over: %v", w.Snapshot())
				}
				time.Sleep(time.Second)
				_ = jb.Journal.Close() // inside the bubble
			})
		})
	}
}

// Pause, skip and stop work while only a dead host is waited for.
func TestWaitForADeadHostCanBeEnded(t *testing.T) {
	for name, c := range map[string]struct {
		do     func(t *testing.T, jb *engine.Job, stop chan struct{})
		status engine.Status
	}{
		"stop": {func(_ *testing.T, _ *engine.Job, stop chan struct{}) { close(stop) }, engine.StatusInterrupted},
		"skip": {func(t *testing.T, jb *engine.Job, _ chan struct{}) {
			for _, c := range []engine.Control{{Do: engine.ControlPause, By: "me"},
				{Do: engine.ControlSkip, By: "me", Target: backends.HostRef("esx-02")}, {Do: engine.ControlContinue, By: "me"}} {
				if _, err := jb.Remote.Ask(t.Context(), c); err != nil {
					t.Errorf("%s: %v", c.Do, err)
				}
			}
		}, engine.StatusPartial},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, jb, _ := deadHost(t, make(chan struct{}))
				stop := make(chan struct{})
				jb.Stop, jb.Remote = stop, engine.NewRemote()
				var rec recorder
				jb.Sink = rec.sink
				time.AfterFunc(time.Minute, func() { c.do(t, &jb, stop) })
				begin := time.Now()
				res, err := engine.Rollback(t.Context(), jb)
				if err != nil || res.Status != c.status {
					t.Errorf("%s, %v: %v", res.Status, err, states(res))
				}
				if took := time.Since(begin); took > time.Minute+time.Second {
					t.Errorf("it took %s", took)
				}
				if left := others(w); len(left) > 0 {
					t.Errorf("there are still %v", left)
				}
				if open := jb.Journal.State().OpenBrackets(); len(open) != 1 || open[0].Target.Name != "esx-02" {
					t.Errorf("open: %v", open)
				}
				_ = jb.Journal.Close()
			})
		})
	}
}
