package engine_test

import (
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/engine"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
)

func TestRunReachesThePlanAndRollbackTheStart(t *testing.T) {
	w, wishes := fabric()
	start := w.Snapshot()
	j := create(t, t.TempDir(), w.Plan(wishes))

	res, err := engine.Run(t.Context(), job(w, wishes, j))
	if err != nil || res.Status != engine.StatusDone {
		t.Fatalf("%s, %v: %v", res.Status, err, states(res))
	}
	if p := w.Plan(wishes); !p.Empty() {
		t.Errorf("left to do: %v", p.Changes)
	}
	if c := w.Clashes(); len(c) > 0 {
		t.Errorf("at the same time on one target: %v", c)
	}
	if n := len(w.Calls("setmany")); n != 3 {
		t.Errorf("%d merged reconfigures, want one of the DVS and one a VM: %v", n, w.Calls("setmany"))
	}

	operations := len(w.Calls("set", "setmany", "restore", "open", "close"))
	res, err = engine.Resume(t.Context(), job(w, wishes, j))
	if err != nil || res.Status != engine.StatusDone || len(w.Calls("set", "setmany", "restore", "open", "close")) != operations {
		t.Errorf("resume of a finished run: %s, %v", res.Status, err)
	}

	res, err = engine.Rollback(t.Context(), unwinding(w, wishes, j))
	if err != nil || res.Status != engine.StatusDone {
		t.Fatalf("rollback: %s, %v: %v", res.Status, err, states(res))
	}
	same(t, "after the rollback", start, w.Snapshot())

	operations = len(w.Calls())
	res, err = engine.Resume(t.Context(), unwinding(w, wishes, j))
	if err != nil || res.Status != engine.StatusUnchanged || len(w.Calls()) != operations {
		t.Errorf("resume of a finished rollback: %s, %v", res.Status, err)
	}
}

// TestWhatIsHalfDoneIsCompleted: a survey read nothing, and the setter finds a half-done value; that is not a change by somebody
// else.
func TestWhatIsHalfDoneIsCompleted(t *testing.T) {
	w := NewWorld()
	s := setting(backends.HostRef("esx-01"), backends.KindOption, "x")
	w.Put(s, backends.Partial("the file is there, its address is not in force"))
	jb, _ := planned(t, w, plan.Plan{Changes: []plan.Change{change(s, backends.Absent, val(9000))}})
	res, err := engine.Run(t.Context(), jb)
	if err != nil || res.Status != engine.StatusDone {
		t.Fatalf("%s, %v: %v", res.Status, err, states(res))
	}
}
