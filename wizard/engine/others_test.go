package engine_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/engine"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
)

// A target on which somebody else works is skipped before anything is changed there; the others are done.
func TestTargetsOfOthersAreSkipped(t *testing.T) {
	w, wishes := options(2)
	jb, _ := fresh(t, w, wishes)
	jb.Busy = func(context.Context, []backends.Ref) (map[backends.Ref]error, error) {
		return map[backends.Ref]error{backends.HostRef("esx-001"): backends.Errorf(backends.KindConflict, "esx-001", "Wait.", "task by ada")}, nil
	}
	res, err := engine.Run(t.Context(), jb)
	if err != nil || res.Status != engine.StatusPartial {
		t.Fatalf("%s, %v", res.Status, err)
	}
	for _, c := range w.Calls("set") {
		if c.Setting.Target.Name == "esx-001" {
			t.Errorf("%s was set", c.Setting.ID())
		}
	}
	if n := node(t, res, optionID("esx-001")); n.State != engine.NodeFailed || !strings.Contains(n.Err.Error(), "task by ada") {
		t.Errorf("%+v", n)
	}
	if n := node(t, res, optionID("esx-002")); n.State != engine.NodeDone {
		t.Errorf("%+v", n)
	}
}

// A change that is already in place is reported as such if the plan had found another value.
func TestReachedAfterThePlan(t *testing.T) {
	w, wishes := options(1)
	jb, _ := fresh(t, w, wishes)
	w.Put(wishes[0].Setting, val("vmk0"))
	said := ""
	jb.Sink = func(e engine.Event) {
		if e.Node == wishes[0].Setting.ID() && e.Text != "" {
			said = e.Text
		}
	}
	if _, err := engine.Run(t.Context(), jb); err != nil || said != "it reached this state after the plan was made" {
		t.Errorf("%q, %v", said, err)
	}
}

// A VM whose state differs from the plan's, or on which somebody has started to work since, is not taken out of service.
func TestVMThatOthersMovedIsSkipped(t *testing.T) {
	vm := backends.VMRef("vm-01")
	power := plan.Bracket{Kind: backends.BracketVMPower, Target: vm, From: backends.ValueOf("on")}
	p := plan.Plan{Brackets: []plan.Bracket{power}, Changes: []plan.Change{change(setting(vm, backends.KindAdapter, "PG"), backends.Absent, val("vf"), power.ID())}}
	for name, c := range map[string]struct {
		state string
		later bool
		want  engine.NodeState
		says  string
	}{
		"as planned":      {"on", false, engine.NodeDone, ""},
		"off meanwhile":   {"off", false, engine.NodeFailed, "it was on and is off"},
		"begun meanwhile": {"on", true, engine.NodeFailed, "task by ada"},
	} {
		t.Run(name, func(t *testing.T) {
			w := NewWorld()
			w.SetPower(vm, c.state)
			jb, _ := planned(t, w, p)
			asked := 0
			jb.Busy = func(context.Context, []backends.Ref) (map[backends.Ref]error, error) {
				if asked++; asked > 1 && c.later {
					return map[backends.Ref]error{vm: backends.Errorf(backends.KindConflict, vm.Name, "Wait.", "task by ada")}, nil
				}
				return nil, nil
			}
			res, err := engine.Run(t.Context(), jb)
			if err != nil {
				t.Fatal(err)
			}
			n := node(t, res, plan.OpenID(power.ID()))
			if n.State != c.want || c.says != "" && !strings.Contains(n.Err.Error(), c.says) {
				t.Errorf("%s: %v", n.State, n.Err)
			}
			if calls := w.Calls("open", "close", "set"); c.want == engine.NodeFailed && len(calls) > 0 {
				t.Errorf("it was touched: %v", calls)
			}
		})
	}
}

// A run is killed while a task creates a switch, and the task continues for longer than Busy waits. Neither a rollback nor a resume
// then takes the missing switch as the result: the rollback ends with the cause, and the resume does not create the switch again.
// When the task has ended, the switch is known as the run's own.
func TestSwitchThatATaskMayStillCreate(t *testing.T) {
	dvs := setting(backends.SwitchRef("rdma"), backends.KindSwitch, "")
	wishes := []Wish{{Setting: dvs, To: val("9000")}}
	killed := func(t *testing.T) (w *World, root, run string) {
		w, root = NewWorld(), t.TempDir()
		w.Crash = &Crash{}
		j := create(t, root, w.Plan(wishes), w.Crash.File())
		w.Fault = func(c Call) error {
			if c.Verb == "set" {
				w.Crash.Kill()
				return ErrDead
			}
			return nil
		}
		if _, err := engine.Run(t.Context(), job(w, wishes, j)); err == nil || len(j.State().OpenIntents()) != 1 {
			t.Fatalf("not killed in the operation: %v", err)
		}
		_ = j.Close() // the run is dead already
		w.Crash, w.Fault = nil, nil
		return w, root, j.State().Header.Run
	}
	inUse := func(context.Context, []backends.Ref) (map[backends.Ref]error, error) {
		return map[backends.Ref]error{dvs.Target: backends.Errorf(backends.KindConflict, "rdma", "Wait.", "task by ada")}, nil
	}
	t.Run("rollback", func(t *testing.T) {
		w, root, run := killed(t)
		j := reopen(t, root, run)
		jb := unwinding(w, wishes, j)
		jb.Busy = inUse
		if res, err := engine.Rollback(t.Context(), jb); backends.KindOf(err) != backends.KindConflict || res.Status.Exit() == 0 {
			t.Errorf("%s, %v", res.Status, err)
		}
		_ = j.Close()
		w.Put(dvs, val("9000"))
		rollback(t, w, wishes, root, run)
		if !w.Value(dvs).IsAbsent() {
			t.Error("the switch is still there")
		}
	})
	t.Run("resume", func(t *testing.T) {
		w, root, run := killed(t)
		j := reopen(t, root, run)
		jb := job(w, wishes, j)
		jb.Busy = inUse
		res, err := engine.Resume(t.Context(), jb)
		if n := node(t, res, dvs.ID()); err != nil || n.State != engine.NodeFailed || !strings.Contains(n.Err.Error(), "task by ada") {
			t.Errorf("%+v, %v", n, err)
		}
		_ = j.Close()
		w.Put(dvs, val("9000"))
		resume(t, w, wishes, root, run)
		if calls := w.Calls("set"); len(calls) != 1 {
			t.Errorf("it was set again: %v", calls)
		}
		rollback(t, w, wishes, root, run)
		if !w.Value(dvs).IsAbsent() {
			t.Error("after the rollback the switch is still there")
		}
	})
}

// Tasks are also waited for if an operation was interrupted, so that its result was not read.
func TestInterruptedOperationIsWaitedFor(t *testing.T) {
	w, wishes := options(1)
	jb, j := fresh(t, w, wishes)
	ctx, cancel := context.WithCancel(t.Context())
	w.Fault = func(c Call) error {
		if c.Verb == "set" {
			cancel()
			return ctx.Err()
		}
		return nil
	}
	if res, _ := engine.Run(ctx, jb); res.Status == engine.StatusDone || len(j.State().OpenIntents()) > 0 {
		t.Fatalf("%s, unsettled %v", res.Status, j.State().OpenIntents())
	}
	w.Fault = nil
	back := unwinding(w, wishes, j)
	var asked []backends.Ref
	back.Busy = func(_ context.Context, targets []backends.Ref) (map[backends.Ref]error, error) {
		asked = append(asked, targets...)
		return nil, nil
	}
	if res, err := engine.Rollback(t.Context(), back); err != nil || !slices.Contains(asked, wishes[0].Target) {
		t.Errorf("%s, %v: waited for %v", res.Status, err, asked)
	}
}
