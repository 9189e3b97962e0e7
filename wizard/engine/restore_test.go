package engine_test

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/engine"
	"github.com/rdma-setup/rdma-setup/wizard/engine/journal"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
)

var (
	persistSetting = setting(backends.GuestRef("vm-01"), backends.KindPersist, "")
	addressSetting = setting(backends.GuestRef("vm-01"), backends.KindAddress, pg)
)

// stuck makes one kept setting fail before a step of a verb.
func stuck(verb string, s backends.Setting, step int) func(Call) error {
	return func(c Call) error {
		if c.Verb == verb+" step" && c.Setting == s && c.Batch == step {
			return backends.Errorf(backends.KindPermanent, s.Target.Name, "Free some space.", "no space left on device")
		}
		return nil
	}
}

func back(t *testing.T, w *World, wishes []Wish, j *journal.Journal) engine.Result {
	t.Helper()
	res, err := engine.Rollback(t.Context(), unwinding(w, wishes, j))
	if err != nil {
		t.Fatalf("rollback: %v: %v", err, states(res))
	}
	return res
}

// A half-done setting reads as absent, as it did before the run: the recorded state is restored all the same.
func TestRollbackOfASettingThatFailedHalfWay(t *testing.T) {
	for _, s := range []backends.Setting{persistSetting, addressSetting} {
		for step := 1; step < 3; step++ {
			w, wishes := fabric()
			start := w.Snapshot()
			w.Fault = stuck("set", s, step)
			jb, j := fresh(t, w, wishes)
			if res, err := engine.Run(t.Context(), jb); err != nil || res.Status != engine.StatusPartial {
				t.Fatalf("%s, %v", res.Status, err)
			}
			w.Fault = nil
			if s == addressSetting && !w.Value(s).IsAbsent() {
				t.Error("the half reads as something: the test shows nothing")
			}
			if res := back(t, w, wishes, j); res.Status.Exit() != 0 {
				t.Errorf("%s: %v", res.Status, states(res))
			}
			same(t, s.ID(), start, w.Snapshot())
		}
	}
}

// While an obstacle keeps a guest from being restored, everything else is restored and the rest is named. Once the obstacle is
// removed, the same command succeeds, and so do the next run and its rollback.
func TestRollbackIsNeverStuck(t *testing.T) {
	w, wishes := fabric()
	start := w.Snapshot()
	jb, j := fresh(t, w, wishes)
	if res, err := engine.Run(t.Context(), jb); err != nil || res.Status != engine.StatusDone {
		t.Fatalf("%s, %v", res.Status, err)
	}
	w.Fault = stuck("restore", persistSetting, 2)
	res := back(t, w, wishes, j)
	n := node(t, res, persistSetting.ID())
	if res.Status.Exit() != 5 || n.State != engine.NodeFailed ||
		!strings.Contains(n.Err.Error(), "no space left on device; different from before: file "+persistSetting.ID()+
			"#unit exists, but did not exist before") {
		t.Errorf("%s, %s: %v", res.Status, n.State, n.Err)
	}
	for id := range w.Snapshot() {
		if !strings.HasPrefix(id, "file ") && start[id] == "" {
			t.Errorf("left: %s", id)
		}
	}
	w.Fault = nil
	if res := back(t, w, wishes, j); res.Status != engine.StatusDone {
		t.Errorf("once it is lifted: %s: %v", res.Status, states(res))
	}
	same(t, "once it is lifted", start, w.Snapshot())

	jb, j = fresh(t, w, wishes)
	if res, err := engine.Run(t.Context(), jb); err != nil || res.Status != engine.StatusDone {
		t.Fatalf("the next run: %s, %v", res.Status, err)
	}
	if res := back(t, w, wishes, j); res.Status != engine.StatusDone {
		t.Errorf("its rollback: %s: %v", res.Status, states(res))
	}
	same(t, "after the next run", start, w.Snapshot())
}

// A restore fails as long as the recorded version is not available; if the operator decides to keep the current one, the rollback
// restores everything else and ends.
func TestRollbackEndsWithoutWhatIsUnavailable(t *testing.T) {
	w, wishes := fabric()
	jb, j := fresh(t, w, wishes)
	if res, err := engine.Run(t.Context(), jb); err != nil || res.Status != engine.StatusDone {
		t.Fatalf("%s, %v", res.Status, err)
	}
	lost := backends.Unobtainable{Kind: backends.ItemFile, Names: []string{persistSetting.ID() + "#unit", persistSetting.ID(),
		persistSetting.ID() + "#enabled"}, Said: "not found"}
	w.Fault = func(c Call) error {
		if c.Verb == "restore step" && c.Setting == persistSetting {
			return backends.Errorf(backends.KindPermanent, "vm-01", "", "put back: %w", lost)
		}
		return nil
	}
	for _, yield := range []bool{false, true} {
		jb := unwinding(w, wishes, j)
		replan := jb.Replan
		jb.Replan = func(ctx context.Context) (*plan.Plan, error) {
			p, err := replan(ctx)
			for i := range p.Changes {
				p.Changes[i].Yield = yield
			}
			if yield {
				p.Conflicts = nil
			}
			return p, err
		}
		res, err := engine.Rollback(t.Context(), jb)
		n := node(t, res, persistSetting.ID())
		switch {
		case err != nil:
			t.Fatal(err)
		case !yield && (res.Status.Exit() != 5 || n.State != engine.NodeFailed):
			t.Errorf("%s, %s", res.Status, n.State)
		case yield && (res.Status != engine.StatusDone || n.State != engine.NodeDone):
			t.Errorf("kept: %s, %s: %v", res.Status, n.State, states(res))
		}
	}
}

// Somebody edits a file of this program: its guest is skipped, everything else is restored. Once that is resolved, the guest is
// restored too.
func TestRollbackLeavesAFileThatSomebodyEdited(t *testing.T) {
	w, wishes := fabric()
	start := w.Snapshot()
	jb, j := fresh(t, w, wishes)
	if res, err := engine.Run(t.Context(), jb); err != nil || res.Status != engine.StatusDone {
		t.Fatalf("%s, %v", res.Status, err)
	}
	w.PutPart(persistSetting, "unit", "theirs")
	if res := back(t, w, wishes, j); res.Status.Exit() != 5 || len(res.Conflicts) != 1 {
		t.Errorf("%s, conflicts %v", res.Status, res.Conflicts)
	}
	w.PutPart(persistSetting, "unit", "ours")
	if res := back(t, w, wishes, j); res.Status != engine.StatusDone {
		t.Errorf("%s: %v", res.Status, states(res))
	}
	same(t, "after it is settled", start, w.Snapshot())
}

// The result of a Restore is not trusted: the items are read.
func TestRestoreIsComparedWithTheRecord(t *testing.T) {
	w, wishes := fabric()
	jb, j := fresh(t, w, wishes)
	if res, err := engine.Run(t.Context(), jb); err != nil || res.Status != engine.StatusDone {
		t.Fatalf("%s, %v", res.Status, err)
	}
	var restored atomic.Bool // Before is called by every target's goroutine
	w.Before = func(_ context.Context, c Call) {
		if c.Verb == "restore" && c.Setting == addressSetting {
			restored.Store(true)
		}
		if restored.Load() && c.Verb == "observe" && c.Setting == addressSetting {
			w.PutPart(addressSetting, "unit", "again") // another program writes it again
		}
	}
	res := back(t, w, wishes, j)
	n := node(t, res, addressSetting.ID())
	if res.Status.Exit() != 5 || n.State != engine.NodeFailed || !strings.Contains(n.Err.Error(), "#unit exists, but did not exist before") {
		t.Errorf("%s, %s: %v", res.Status, n.State, n.Err)
	}
}

// An installation of drivers takes an hour and a half: its setter has that limit, and the engine interrupts nothing.
func TestTheEngineCutsNoOperation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, wishes := options(1)
		w.Latency = 3 * time.Hour
		jb, j := fresh(t, w, wishes)
		if res, err := engine.Run(t.Context(), jb); err != nil || res.Status != engine.StatusDone {
			t.Errorf("%s, %v: %v", res.Status, err, states(res))
		}
		_ = j.Close() // inside the bubble
	})
}

// A task continues in vCenter when the process that started it is killed: the engine waits for it before it reads the result.
func TestRollbackWaitsForTasksOfTheAttemptBefore(t *testing.T) {
	w, wishes := options(1)
	start := w.Snapshot()
	jb, j := fresh(t, w, wishes)
	option := wishes[0].Setting
	killed := journal.Record{Type: journal.TypeIntent, Phase: journal.PhaseApply, Node: option.ID(), Target: option.Target,
		Kind: string(option.Kind), Name: option.Name, To: wishes[0].To}
	member := journal.Record{Type: journal.TypeIntent, Phase: journal.PhaseApply, Node: "m", Target: option.Target,
		Kind: string(backends.KindMember), Name: dvs, To: val("x")}
	if err := j.Append(journal.Record{Type: journal.TypeBegin, Phase: journal.PhaseApply}, killed, member); err != nil {
		t.Fatal(err)
	}
	jb = unwinding(w, wishes, j)
	var asked []backends.Ref
	jb.Busy = func(_ context.Context, targets []backends.Ref) (map[backends.Ref]error, error) {
		if asked == nil {
			asked = targets
			w.Put(option, wishes[0].To) // the task ends while it is waited for
		}
		return nil, nil
	}
	res, err := engine.Rollback(t.Context(), jb)
	if err != nil || res.Status != engine.StatusDone {
		t.Errorf("%s, %v: %v", res.Status, err, states(res))
	}
	if !slices.Contains(asked, option.Target) || !slices.Contains(asked, backends.SwitchRef(dvs)) {
		t.Errorf("asked about %v", asked)
	}
	same(t, "after the rollback", start, w.Snapshot())
}
