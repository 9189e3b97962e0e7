package engine_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/engine"
	"github.com/rdma-setup/rdma-setup/wizard/engine/journal"
)

// at closes a channel at the first call with the verb and target.
func at(verb string, t backends.Ref) (reached chan struct{}, before func(context.Context, Call)) {
	reached = make(chan struct{})
	var once sync.Once
	return reached, func(_ context.Context, c Call) {
		if c.Verb == verb && c.Setting.Target == t {
			once.Do(func() { close(reached) })
		}
	}
}

func TestStopOnceFinishesWhatRunsAndClosesBrackets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, wishes := fabric()
		w.Latency = time.Second
		vm := backends.VMRef("vm-01")
		stop, before := at("setmany", vm)
		w.Before = before
		jb, j := fresh(t, w, wishes)
		jb.Stop = stop
		var rec recorder
		jb.Sink = rec.sink
		res, err := engine.Run(t.Context(), jb)
		if err != nil || res.Status != engine.StatusInterrupted || res.Status.Exit() != 130 {
			t.Fatalf("%s, %v", res.Status, err)
		}
		if rec.count(engine.EventStopping, "") != 1 {
			t.Error("nobody was told")
		}
		if s := node(t, res, setting(vm, backends.KindMemory, "").ID()).State; s != engine.NodeDone {
			t.Errorf("the operation that ran is %s", s)
		}
		if s := node(t, res, "vm/vm-01/vm-power").State; s != engine.NodeDone {
			t.Errorf("the VM was not powered on again: %s", s)
		}
		if s := node(t, res, setting(backends.GuestRef("vm-01"), backends.KindPersist, "").ID()).State; s != engine.NodePending {
			t.Errorf("an operation that was not begun is %s", s)
		}
		st := j.State()
		if r := st.Result(); r == nil || r.Status != "interrupted" || len(st.OpenBrackets()) > 0 || len(st.OpenIntents()) > 0 {
			t.Errorf("journal: result %v, brackets %v, unsettled %v", st.Result(), st.OpenBrackets(), st.OpenIntents())
		}
		res, err = engine.Resume(t.Context(), job(w, wishes, j))
		if err != nil || res.Status != engine.StatusDone || !w.Plan(wishes).Empty() {
			t.Errorf("resume: %s, %v", res.Status, err)
		}
		_ = j.Close() // inside the bubble
	})
}

func TestStopTwiceEndsAtOnceAndTheJournalIsWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, wishes := fabric()
		start := w.Snapshot()
		w.Latency = time.Minute
		vm := backends.VMRef("vm-01")
		reached, before := at("setmany", vm)
		w.Before = before
		jb, j := fresh(t, w, wishes)
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			<-reached
			cancel()
		}()
		begin := time.Now()
		var cancelled time.Time
		jb.Sink = func(e engine.Event) {
			if e.Type == engine.EventStopping {
				cancelled = time.Now()
			}
		}
		res, err := engine.Run(ctx, jb)
		if err != nil || res.Status != engine.StatusInterrupted {
			t.Fatalf("%s, %v", res.Status, err)
		}
		if late := time.Since(cancelled); late > time.Second || cancelled.Before(begin) {
			t.Errorf("it went on for %s", late)
		}
		st := j.State()
		if len(st.OpenBrackets()) == 0 || len(st.OpenIntents()) > 0 || st.Result() == nil {
			t.Errorf("journal: brackets %v, unsettled %v, result %v", st.OpenBrackets(), st.OpenIntents(), st.Result())
		}
		if w.Snapshot()["power vm/vm-01"] != "off" {
			t.Error("the test wants a VM that is still off")
		}
		w.Latency = 0
		if res, err = engine.Rollback(t.Context(), unwinding(w, wishes, j)); err != nil || res.Status != engine.StatusDone {
			t.Errorf("rollback: %s, %v: %v", res.Status, err, states(res))
		}
		same(t, "after the rollback", start, w.Snapshot())
		_ = j.Close() // inside the bubble
	})
}

func TestHangingOperationEndsWithItsTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, wishes := options(2)
		free := make(chan struct{})
		w.Before = func(ctx context.Context, c Call) {
			switch {
			case c.Verb != "set":
			case c.Setting.ID() == optionID("esx-001"): // respects its context
				<-ctx.Done()
			case c.Setting.ID() == optionID("esx-002"): // does not
				<-free
			}
		}
		jb, j := fresh(t, w, wishes)
		jb.Replan = nil
		jb.Limits = engine.Limits{Operation: time.Minute, Grace: 5 * time.Second}
		begin := time.Now()
		res, err := engine.Run(t.Context(), jb)
		if err != nil || res.Status != engine.StatusFailed {
			t.Fatalf("%s, %v: %v", res.Status, err, states(res))
		}
		if took := time.Since(begin); took > 66*time.Second {
			t.Errorf("it took %s", took)
		}
		for _, host := range []string{"esx-001", "esx-002"} {
			n := node(t, res, optionID(host))
			if n.State != engine.NodeFailed || backends.KindOf(n.Err) != backends.KindUnreachable || !strings.Contains(n.Err.Error(), "1m0s") {
				t.Errorf("%s: %s, %v", host, n.State, n.Err)
			}
		}
		close(free)
		_ = j.Close() // inside the bubble
	})
}

// full is a disk that accepts only a limited number of writes.
type full struct {
	journal.File
	left int
}

func (f *full) Write(b []byte) (int, error) {
	if f.left--; f.left < 0 {
		n, _ := f.File.Write(b[:len(b)/3])
		return n, syscall.ENOSPC
	}
	return f.File.Write(b)
}

func TestDiskFull(t *testing.T) {
	end, _ := undisturbed(t, 16)
	start, _ := fabric()
	for left := 0; ; left++ {
		w, wishes := fabric()
		root := t.TempDir()
		p := w.Plan(wishes)
		j, err := journal.Create(root, header(p), nil, journal.WithFile(func(f journal.File) journal.File { return &full{f, left} }))
		if left == 0 {
			if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(backends.HintOf(err), "space") {
				t.Fatalf("no room for the header: %v", err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		var rec recorder
		jb := job(w, wishes, j)
		jb.Sink = rec.sink
		res, err := engine.Run(t.Context(), jb)
		_ = j.Close()
		if err == nil {
			if res.Status != engine.StatusDone {
				t.Fatalf("enough room, and yet %s: %v", res.Status, states(res))
			}
			return
		}
		if !errors.Is(err, syscall.ENOSPC) || res.Status == engine.StatusDone || res.Status == engine.StatusUnchanged {
			t.Fatalf("room for %d writes: %s, %v", left, res.Status, err)
		}
		if s := w.Snapshot(); s["power vm/vm-01"] != "" {
			t.Errorf("room for %d writes: the VM was left off", left)
		}
		if left%2 == 0 {
			resume(t, w, wishes, root, j.Run())
			same(t, "after the resume", end, w.Snapshot())
		}
		rollback(t, w, wishes, root, j.Run())
		same(t, "after the rollback", start.Snapshot(), w.Snapshot())
	}
}
