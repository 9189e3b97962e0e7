package engine_test

import (
	"testing"

	"github.com/rdma-setup/rdma-setup/wizard/engine"
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

	deeds := len(w.Calls("set", "setmany", "restore", "open", "close"))
	res, err = engine.Resume(t.Context(), job(w, wishes, j))
	if err != nil || res.Status != engine.StatusDone || len(w.Calls("set", "setmany", "restore", "open", "close")) != deeds {
		t.Errorf("resume of a finished run: %s, %v", res.Status, err)
	}

	res, err = engine.Rollback(t.Context(), unwinding(w, wishes, j))
	if err != nil || res.Status != engine.StatusDone {
		t.Fatalf("rollback: %s, %v: %v", res.Status, err, states(res))
	}
	same(t, "after the rollback", start, w.Snapshot())

	deeds = len(w.Calls())
	res, err = engine.Resume(t.Context(), unwinding(w, wishes, j))
	if err != nil || res.Status != engine.StatusDone || len(w.Calls()) != deeds {
		t.Errorf("resume of a finished rollback: %s, %v", res.Status, err)
	}
}
