package engine_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/testclass"
	"github.com/rdma-setup/rdma-setup/wizard/engine"
	"github.com/rdma-setup/rdma-setup/wizard/engine/journal"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
)

// undisturbed runs the fabric without a crash and returns its final state and the points at which a crash is possible.
func undisturbed(t *testing.T, parallel int) (end map[string]string, points *Crash) {
	t.Helper()
	w, wishes := fabric()
	w.Crash = &Crash{}
	j := create(t, t.TempDir(), w.Plan(wishes), w.Crash.File())
	jb := job(w, wishes, j)
	jb.Limits.Parallel = parallel
	if res, err := engine.Run(t.Context(), jb); err != nil || res.Status != engine.StatusDone {
		t.Fatalf("undisturbed: %s, %v: %v", res.Status, err, states(res))
	}
	return w.Snapshot(), w.Crash
}

// made counts the runs of this file: each gets a second of its own.
var made atomic.Int64

// crashed runs the fabric until it is killed and returns the world at that moment and the run's id, "" when it was killed before
// its journal began.
func crashed(t *testing.T, root string, crash *Crash, parallel int) (w *World, wishes []Wish, run string) {
	t.Helper()
	w, wishes = fabric()
	start := w.Snapshot()
	w.Crash = crash
	p := w.Plan(wishes)
	h := header(p)
	made := testTime.Add(time.Duration(made.Add(1)) * time.Second) // a thousand runs in the same second would have equal ids
	h.Run = journal.NewRun(made, "crash")
	j, err := journal.Create(root, h, []byte("{}"), crash.File())
	if err == nil {
		jb := job(w, wishes, j)
		jb.Limits.Parallel = parallel
		if _, err := engine.Run(t.Context(), jb); err == nil && crash.Dead() {
			// Killed in the very last step: no more events are received.
			t.Logf("point %d is behind the end", crash.At)
		}
		_ = j.Close() // the run is dead already
	} else {
		same(t, "killed before the journal began", start, w.Snapshot())
	}
	w.Crash = nil
	if _, err := journal.Read(root, h.Run); errors.Is(err, journal.ErrNotBegun) {
		same(t, "killed before the journal began", start, w.Snapshot())
		return w, wishes, ""
	} else if err != nil {
		t.Fatal(err)
	}
	return w, wishes, h.Run
}

func reopen(t *testing.T, root, run string, opts ...journal.Option) *journal.Journal {
	t.Helper()
	if len(opts) == 0 {
		opts = append(opts, (&Crash{}).File()) // nothing is killed; this only avoids writing to the disk
	}
	j, err := journal.Open(root, run, opts...)
	testclass.OK(t, err)
	return j
}

func resume(t *testing.T, w *World, wishes []Wish, root, run string) {
	t.Helper()
	j := reopen(t, root, run)
	defer func() { _ = j.Close() }()
	jb := job(w, wishes, j)
	if j.State().Phase() == journal.PhaseRollback {
		jb = unwinding(w, wishes, j)
	}
	res, err := engine.Resume(t.Context(), jb)
	if err != nil || res.Status.Exit() != 0 {
		t.Errorf("resume: %s, %v: %v", res.Status, err, states(res))
	}
}

func rollback(t *testing.T, w *World, wishes []Wish, root, run string) {
	t.Helper()
	j := reopen(t, root, run)
	defer func() { _ = j.Close() }()
	res, err := engine.Rollback(t.Context(), unwinding(w, wishes, j))
	if err != nil || res.Status.Exit() != 0 {
		t.Errorf("rollback: %s, %v: %v", res.Status, err, states(res))
		for _, n := range res.Nodes {
			t.Logf("%s %s %v", n.ID, n.State, n.Err)
		}
	}
}

// step returns the distance between the points at which runs are killed. Without the race detector, runs with one operation at a time
// are killed at every point, and runs with parallel operations at every third, because their points differ in each run. With the race
// detector, which takes ten times as long, make test kills at fewer points, and make e2e-full at the same.
func step(parallel int) int {
	rare := testclass.Small() && !testclass.All
	switch {
	case rare && parallel > 1:
		return 6
	case rare:
		return 12
	case parallel > 1:
		return 3
	}
	return 1
}

// eachPoint runs f for every point of a crash, or every one in so many, and for those before a write with half of it written.
func eachPoint(t *testing.T, points *Crash, step int, f func(t *testing.T, at int, torn bool)) {
	t.Helper()
	for at := 1; at <= points.Points(); at += step {
		for _, torn := range []bool{false, true} {
			if torn && !points.Writes(at) {
				continue
			}
			t.Run(fmt.Sprintf("point %d torn %v", at, torn), func(t *testing.T) { f(t, at, torn) })
		}
	}
}

func TestKilledAtAnyPointResumeEndsAsUndisturbed(t *testing.T) {
	testclass.Both(t)
	for _, parallel := range []int{1, 16} {
		end, points := undisturbed(t, parallel)
		start, _ := fabric()
		root := t.TempDir()
		eachPoint(t, points, step(parallel), func(t *testing.T, at int, torn bool) {
			w, wishes, run := crashed(t, root, &Crash{At: at, Torn: torn}, parallel)
			if run == "" {
				return
			}
			resume(t, w, wishes, root, run)
			same(t, "after the resume", end, w.Snapshot())
			operations := len(w.Calls("set", "setmany", "open", "close", "abort"))
			resume(t, w, wishes, root, run)
			if n := len(w.Calls("set", "setmany", "open", "close", "abort")); n != operations {
				t.Errorf("a second resume did %d operations", n-operations)
			}
			rollback(t, w, wishes, root, run)
			same(t, "after the rollback", start.Snapshot(), w.Snapshot())
		})
	}
}

func TestKilledAtAnyPointRollbackEndsAtTheStart(t *testing.T) {
	testclass.Both(t)
	_, points := undisturbed(t, 1)
	start, _ := fabric()
	root := t.TempDir()
	eachPoint(t, points, step(1), func(t *testing.T, at int, torn bool) {
		w, wishes, run := crashed(t, root, &Crash{At: at, Torn: torn}, 1)
		if run == "" {
			return
		}
		rollback(t, w, wishes, root, run)
		same(t, "after the rollback", start.Snapshot(), w.Snapshot())
	})
}

func TestKilledAgainInTheResume(t *testing.T) {
	testclass.Both(t)
	end, points := undisturbed(t, 1)
	start, _ := fabric()
	root := t.TempDir()
	for at := 5; at <= points.Points(); at += 11 * step(1) {
		for again := 1; ; again += 4 {
			w, wishes, run := crashed(t, root, &Crash{At: at}, 1)
			if run == "" {
				break
			}
			w.Crash = &Crash{At: again, Torn: again%2 == 0}
			j := reopen(t, root, run, w.Crash.File())
			_, _ = engine.Resume(t.Context(), job(w, wishes, j))
			_ = j.Close()
			dead := w.Crash.Dead()
			w.Crash = nil
			resume(t, w, wishes, root, run)
			same(t, fmt.Sprintf("killed at %d and at %d of the resume", at, again), end, w.Snapshot())
			rollback(t, w, wishes, root, run)
			same(t, "after the rollback", start.Snapshot(), w.Snapshot())
			if !dead {
				break
			}
		}
	}
}

func TestKilledAtAnyPointOfTheRollback(t *testing.T) {
	testclass.Both(t)
	start, _ := fabric()
	root := t.TempDir()
	for at := 1; ; at += step(1) {
		w, wishes, run := crashed(t, root, &Crash{}, 1)
		w.Crash = &Crash{At: at, Torn: at%2 == 0}
		j := reopen(t, root, run, w.Crash.File())
		_, _ = engine.Rollback(t.Context(), unwinding(w, wishes, j))
		_ = j.Close()
		dead := w.Crash.Dead()
		w.Crash = nil
		st, err := journal.Read(root, run)
		testclass.OK(t, err)
		if st.Phase() == journal.PhaseRollback {
			resume(t, w, wishes, root, run)
		} else {
			rollback(t, w, wishes, root, run)
		}
		same(t, fmt.Sprintf("killed at %d of the rollback", at), start.Snapshot(), w.Snapshot())
		if !dead {
			return
		}
	}
}

func TestKilledWithABareBracketOpenItsEffectComesWithTheResume(t *testing.T) {
	testclass.Both(t)
	h := backends.HostRef("esx-01")
	fw := setting(h, KindFirmware, "SRIOV_EN")
	p := plan.Plan{
		Changes:  []plan.Change{change(fw, backends.Absent, val(1))},
		Brackets: []plan.Bracket{{Kind: backends.BracketReboot, Target: h, After: []string{fw.ID()}}},
	}
	root := t.TempDir()
	opened := 0
	for at := 1; ; at++ {
		w := NewWorld()
		w.Crash = &Crash{At: at}
		hd := header(&p)
		hd.Run = journal.NewRun(testTime, "bare")
		j, err := journal.Create(root, hd, nil, w.Crash.File())
		if err != nil {
			continue
		}
		_, _ = engine.Run(t.Context(), engine.Job{Plan: p, Setters: w.Setters(), Brackets: w.Brackets(), Journal: j})
		_ = j.Close() // the run may be dead
		if !w.Crash.Dead() {
			break
		}
		w.Crash = nil
		j = reopen(t, root, hd.Run)
		due := false
		for _, r := range j.State().Records {
			due = due || r.Type == journal.TypeOpened && r.OK
		}
		// Today's plan reads the value of the next boot and contains no change.
		nothing := func(context.Context) (*plan.Plan, error) { return &plan.Plan{}, nil }
		_, err = engine.Resume(t.Context(), engine.Job{Setters: w.Setters(), Brackets: w.Brackets(), Journal: j, Replan: nothing})
		testclass.OK(t, errors.Join(err, j.Close()))
		live := w.Snapshot()[fw.ID()] == "1"
		if due && !live {
			t.Errorf("killed at %d: the host was in maintenance mode for its reboot, and was not rebooted", at)
		}
		if w.Snapshot()["maintenance "+h.String()] != "" {
			t.Errorf("killed at %d: left in maintenance mode", at)
		}
		if due {
			opened++
		}
	}
	if opened == 0 {
		t.Error("no crash hit an open bracket")
	}
}
