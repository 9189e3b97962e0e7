package engine_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/engine"
	"github.com/rdma-setup/rdma-setup/wizard/engine/journal"
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
	p := plan.Plan{Brackets: []plan.Bracket{power},
		Changes: []plan.Change{change(setting(vm, backends.KindAdapter, "PG"), backends.Absent, val("vf"), power.ID())}}
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

var rdma = backends.SwitchRef("rdma")

// switchInUse is a Busy that finds a task on the switch rdma.
func switchInUse(_ context.Context, targets []backends.Ref) (map[backends.Ref]error, error) {
	if !slices.Contains(targets, rdma) {
		return nil, nil
	}
	return map[backends.Ref]error{rdma: backends.Errorf(backends.KindConflict, "rdma", "Wait, then run rdma-setup resume.", "task by ada")}, nil
}

// tasksUnread is a Busy that cannot read the tasks.
func tasksUnread(context.Context, []backends.Ref) (map[backends.Ref]error, error) {
	return nil, backends.Errorf(backends.KindUnreachable, "vCenter", "", "503 Service Unavailable")
}

// creations are the operations that create their target. The task of a port group runs on its switch, which existed before.
func creations() map[string]Wish {
	return map[string]Wish{
		"switch": {Setting: setting(rdma, backends.KindSwitch, ""), To: val("9000")},
		"port group": {Setting: setting(backends.PortGroupRef("rdma-pg"), backends.KindPortGroup, ""),
			To: val(backends.PortGroupSpec{Switch: rdma.Name})},
	}
}

// killedInSet returns the journal of a run that was killed while it set its only wish. It has left VM vm-01 off.
func killedInSet(t *testing.T, wishes []Wish) (w *World, root, run string) {
	t.Helper()
	w, root = NewWorld(), t.TempDir()
	w.Crash = &Crash{}
	j := create(t, root, w.Plan(wishes), w.Crash.File())
	vm := backends.VMRef("vm-01")
	if err := j.Append(
		journal.Record{Type: journal.TypeBegin, Phase: journal.PhaseApply},
		journal.Record{Type: journal.TypeOpening, Node: powerID(1), Target: vm, Kind: string(backends.BracketVMPower), Prior: val("on"),
			To: val("on")},
		journal.Record{Type: journal.TypeOpened, Node: powerID(1), Target: vm, Kind: string(backends.BracketVMPower), OK: true},
	); err != nil {
		t.Fatal(err)
	}
	w.SetPower(vm, "off")
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

// A run is killed while a task creates a switch or a port group, and the task continues for longer than Busy waits. Neither a
// rollback nor a resume then takes the missing target as the result: the rollback ends with the cause, and the resume does not
// create the target again. When the task has ended, the target is known as the run's own. A VM that is off returns in any case.
func TestSwitchThatATaskMayStillCreate(t *testing.T) {
	for name, wish := range creations() {
		wishes := []Wish{wish}
		t.Run("rollback "+name, func(t *testing.T) {
			w, root, run := killedInSet(t, wishes)
			j := reopen(t, root, run)
			jb := unwinding(w, wishes, j)
			jb.Busy = switchInUse
			if res, err := engine.Rollback(t.Context(), jb); backends.KindOf(err) != backends.KindConflict || res.Status.Exit() == 0 ||
				backends.HintOf(err) != "Wait, then run rdma-setup rollback "+run+"." {
				t.Errorf("%s, %v", res.Status, err)
			}
			if left := j.State().OpenBrackets(); len(left) > 0 || len(w.Snapshot()) > 0 {
				t.Errorf("not back in service: %v, %v", left, w.Snapshot())
			}
			_ = j.Close()
			w.Put(wish.Setting, wish.To)
			rollback(t, w, wishes, root, run)
			if !w.Value(wish.Setting).IsAbsent() {
				t.Errorf("the %s is still there", name)
			}
		})
		t.Run("resume "+name, func(t *testing.T) {
			w, root, run := killedInSet(t, wishes)
			j := reopen(t, root, run)
			jb := job(w, wishes, j)
			jb.Busy = switchInUse
			res, err := engine.Resume(t.Context(), jb)
			if n := node(t, res, wish.ID()); err != nil || n.State != engine.NodeFailed || !strings.Contains(n.Err.Error(), "task by ada") {
				t.Errorf("%+v, %v", n, err)
			}
			_ = j.Close()
			w.Put(wish.Setting, wish.To)
			resume(t, w, wishes, root, run)
			if calls := w.Calls("set"); len(calls) != 1 {
				t.Errorf("it was set again: %v", calls)
			}
			rollback(t, w, wishes, root, run)
			if !w.Value(wish.Setting).IsAbsent() {
				t.Errorf("after the rollback the %s is still there", name)
			}
		})
	}
}

// If the tasks cannot be read, a missing target is not taken as the result either: a rollback ends with the error, and a resume
// leaves the operation open until it is tried again.
func TestTasksOfTheAttemptBeforeAreNotRead(t *testing.T) {
	for name, wish := range creations() {
		wishes := []Wish{wish}
		t.Run("rollback "+name, func(t *testing.T) {
			w, root, run := killedInSet(t, wishes)
			j := reopen(t, root, run)
			defer func() { _ = j.Close() }()
			jb := unwinding(w, wishes, j)
			jb.Busy = tasksUnread
			if res, err := engine.Rollback(t.Context(), jb); backends.KindOf(err) != backends.KindUnreachable || res.Status.Exit() == 0 {
				t.Errorf("%s, %v", res.Status, err)
			}
			if n := len(j.State().OpenIntents()); n != 1 {
				t.Errorf("%d operations without an outcome", n)
			}
		})
		t.Run("resume "+name, func(t *testing.T) {
			w, root, run := killedInSet(t, wishes)
			j := reopen(t, root, run)
			defer func() { _ = j.Close() }()
			jb := job(w, wishes, j)
			jb.Busy = tasksUnread
			open, again := 0, jb.Replan
			jb.Replan = func(ctx context.Context) (*plan.Plan, error) {
				open = max(open, len(j.State().OpenIntents()))
				return again(ctx)
			}
			res, err := engine.Resume(t.Context(), jb)
			if n := node(t, res, wish.ID()); err != nil || open != 1 || n.State != engine.NodeFailed ||
				backends.KindOf(n.Err) != backends.KindUnreachable {
				t.Errorf("%+v, %v: %d operations without an outcome", n, err, open)
			}
			if calls := w.Calls("set"); len(calls) != 1 {
				t.Errorf("it was set again: %v", calls)
			}
		})
	}
}

// Neither is a target missing that cannot be read while a task may create it, nor one whose creation was given up before it existed:
// the task may still be running.
func TestRollbackOfACreationThatMayStillHappen(t *testing.T) {
	for name, wish := range creations() {
		wishes := []Wish{wish}
		refused := func(t *testing.T, w *World, jb engine.Job) {
			t.Helper()
			jb.Busy = switchInUse
			if res, err := engine.Rollback(t.Context(), jb); backends.KindOf(err) != backends.KindConflict || res.Status.Exit() == 0 {
				t.Errorf("%s, %v", res.Status, err)
			}
			if calls := w.Calls("set"); len(calls) != 1 {
				t.Errorf("it was set again: %v", calls)
			}
		}
		t.Run(name+" is not read", func(t *testing.T) {
			w, root, run := killedInSet(t, wishes)
			j := reopen(t, root, run)
			defer func() { _ = j.Close() }()
			w.Fault = func(c Call) error {
				if c.Verb == "read" {
					w.Fault = nil // the survey that follows succeeds
					return backends.Errorf(backends.KindPermanent, "vCenter", "", "not now")
				}
				return nil
			}
			refused(t, w, unwinding(w, wishes, j))
		})
		t.Run(name+" was given up", func(t *testing.T) {
			w := NewWorld()
			jb, j := fresh(t, w, wishes)
			w.Fault = func(c Call) error {
				if c.Verb == "set" {
					return backends.Errorf(backends.KindPermanent, "vCenter", "", "the task did not end within 1m0s")
				}
				return nil
			}
			if res, _ := engine.Run(t.Context(), jb); res.Status == engine.StatusDone || len(j.State().OpenIntents()) > 0 {
				t.Fatalf("%s, unsettled %v", res.Status, j.State().OpenIntents())
			}
			w.Fault = nil
			refused(t, w, unwinding(w, wishes, j))
		})
	}
}

// Tasks are also waited for if an operation was interrupted, so that its result was not read. If the task of a creation continues
// for longer, or cannot be read, the rollback does not end as if there were nothing to undo.
func TestInterruptedOperationIsWaitedFor(t *testing.T) {
	interrupted := func(t *testing.T, w *World, wishes []Wish) engine.Job {
		jb, j := fresh(t, w, wishes)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
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
		return unwinding(w, wishes, j)
	}
	t.Run("option", func(t *testing.T) {
		w, wishes := options(1)
		back := interrupted(t, w, wishes)
		var asked []backends.Ref
		back.Busy = func(_ context.Context, targets []backends.Ref) (map[backends.Ref]error, error) {
			asked = append(asked, targets...)
			return nil, nil
		}
		if res, err := engine.Rollback(t.Context(), back); err != nil || !slices.Contains(asked, wishes[0].Target) {
			t.Errorf("%s, %v: waited for %v", res.Status, err, asked)
		}
	})
	for name, wish := range creations() {
		for busy, of := range map[string]func(context.Context, []backends.Ref) (map[backends.Ref]error, error){"task": switchInUse,
			"unread": tasksUnread} {
			t.Run(name+" "+busy, func(t *testing.T) {
				w := NewWorld()
				back := interrupted(t, w, []Wish{wish})
				back.Busy = of
				if res, err := engine.Rollback(t.Context(), back); err == nil || res.Status.Exit() == 0 {
					t.Errorf("%s, %v", res.Status, err)
				}
				back.Busy = nil
				w.Put(wish.Setting, wish.To)
				if res, err := engine.Rollback(t.Context(), back); err != nil || res.Status.Exit() != 0 || !w.Value(wish.Setting).IsAbsent() {
					t.Errorf("after the task: %s, %v: %s", res.Status, err, w.Value(wish.Setting))
				}
			})
		}
	}
}
