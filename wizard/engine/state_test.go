package engine_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/engine"
)

func TestStateFollowsTheEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, wishes := options(20)
		w.Latency = time.Second
		w.Fault = failing(optionID("esx-003"), backends.KindPermission)
		jb, j := fresh(t, w, wishes)
		jb.Limits.Parallel = 4
		var st engine.State
		sawETA := false
		jb.Sink = func(e engine.Event) {
			st.Fold(e)
			c := st.Counts
			if c.Running > 4 || c.Running < 0 || c.Ended() > c.Total {
				t.Errorf("counts %+v after %s", c, e.Type)
			}
			running := 0
			for _, ts := range st.Targets {
				running += ts.Counts.Running
				if (ts.Counts.Running > 0) != (ts.Title != "") {
					t.Errorf("%s runs %d and says %q", ts.Target, ts.Counts.Running, ts.Title)
				}
			}
			if running != c.Running {
				t.Errorf("%d run, the targets say %d", c.Running, running)
			}
			if c.Done == 20 {
				// Half of the operations are done and took 3 s each, 4 at a time.
				if eta := st.ETA(e.Time); eta < 10*time.Second || eta > 80*time.Second {
					t.Errorf("ETA %s", eta)
				}
				sawETA = true
			}
		}
		if _, err := engine.Run(t.Context(), jb); err != nil {
			t.Fatal(err)
		}
		_ = j.Close() // inside the bubble
		if want := (engine.Counts{Total: 40, Done: 38, Failed: 1, Blocked: 1}); st.Counts != want {
			t.Errorf("%+v, want %+v", st.Counts, want)
		}
		bad := st.Failed()
		if len(bad) != 1 || bad[0].Target.Name != "esx-003" || bad[0].Word() != "failed" || bad[0].Hint != "Fix it." ||
			bad[0].ErrKind != backends.KindPermission {
			t.Errorf("failed: %+v", bad)
		}
		if !sawETA || st.Result == nil || st.Result.Status != engine.StatusPartial || st.ETA(time.Now()) != 0 {
			t.Errorf("ETA seen %v, result %+v", sawETA, st.Result)
		}
		if st.Elapsed(time.Now().Add(time.Hour)) != st.Last.Sub(st.Begun) {
			t.Errorf("elapsed %s", st.Elapsed(time.Now()))
		}
	})
}

func TestEveryNodeHasOneStartAndOneEnd(t *testing.T) {
	w, wishes := fabric()
	jb, _ := fresh(t, w, wishes)
	var rec recorder
	jb.Sink = rec.sink
	if _, err := engine.Run(t.Context(), jb); err != nil {
		t.Fatal(err)
	}
	open := map[string]bool{}
	for _, e := range rec.events {
		switch e.Type {
		case engine.EventStarted:
			if open[e.Node] {
				t.Errorf("%s began twice", e.Node)
			}
			open[e.Node] = true
		case engine.EventProgress:
			if !open[e.Node] {
				t.Errorf("%s moves and does not run", e.Node)
			}
		case engine.EventDone, engine.EventFailed:
			if !open[e.Node] || e.Title == "" || e.Target.Name == "" {
				t.Errorf("%s ended and did not run, or has no words: %+v", e.Node, e)
			}
			delete(open, e.Node)
		}
	}
	if len(open) > 0 {
		t.Errorf("without an end: %v", open)
	}
	if last := rec.events[len(rec.events)-1]; last.Type != engine.EventResult || last.Status != engine.StatusDone || last.Run == "" {
		t.Errorf("last event: %+v", last)
	}
	if rec.count(engine.EventProgress, "") == 0 {
		t.Error("no progress was told")
	}
}

func TestTransientErrorsAreTriedAgainAndOthersAreNot(t *testing.T) {
	for _, c := range []struct {
		kind  backends.ErrorKind
		fails int
		tries int
		ok    bool
	}{
		{backends.KindTransient, 2, 3, true},
		{backends.KindTransient, 9, 4, false},
		{backends.KindPermission, 1, 1, false},
		{backends.KindConflict, 1, 1, false},
		{backends.KindUnreachable, 1, 1, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			w, wishes := options(1)
			n := 0
			w.Fault = func(call Call) error {
				if call.Verb == "set" && call.Setting.ID() == optionID("esx-001") {
					if n++; n <= c.fails {
						return backends.Errorf(c.kind, "esx-001", "", "injected")
					}
				}
				return nil
			}
			jb, j := fresh(t, w, wishes)
			jb.Replan = nil
			jb.Setters = engine.Retry(jb.Setters, engine.Backoff{})
			res, err := engine.Run(t.Context(), jb)
			if err != nil {
				t.Fatal(err)
			}
			if got := node(t, res, optionID("esx-001")).State == engine.NodeDone; got != c.ok || n != c.tries {
				t.Errorf("%s failing %d times: done %v after %d tries", c.kind, c.fails, got, n)
			}
			_ = j.Close() // inside the bubble
		})
	}
}

func TestRetryKeepsWhatASetterCan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, wishes := fabric()
		start := w.Snapshot()
		parts := map[string]int{}
		w.Fault = func(c Call) error {
			if c.Verb == "setmany part" {
				if parts[c.Setting.ID()]++; parts[c.Setting.ID()] == 1 && c.Setting.Target.Name == "esx-02" {
					return backends.Errorf(backends.KindTransient, "esx-02", "", "injected")
				}
			}
			return nil
		}
		jb, j := fresh(t, w, wishes)
		jb.Setters = engine.Retry(jb.Setters, engine.Backoff{})
		res, err := engine.Run(t.Context(), jb)
		if err != nil || res.Status != engine.StatusDone {
			t.Fatalf("%s, %v: %v", res.Status, err, states(res))
		}
		member := func(h string) string { return setting(backends.HostRef(h), backends.KindMember, dvs).ID() }
		if parts[member("esx-01")] != 1 || parts[member("esx-02")] != 2 {
			t.Errorf("only what failed is tried again: %v", parts)
		}
		if n := len(w.Calls("setmany")); n != 4 {
			t.Errorf("%d reconfigures: memory and adapter should still be one", n)
		}
		back := unwinding(w, wishes, j)
		back.Setters = engine.Retry(back.Setters, engine.Backoff{})
		if res, err = engine.Rollback(t.Context(), back); err != nil || res.Status != engine.StatusDone {
			t.Fatalf("rollback: %s, %v", res.Status, err)
		}
		same(t, "after the rollback", start, w.Snapshot())
		_ = j.Close() // inside the bubble
	})
}

func TestRetryEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, wishes := options(1)
		w.Fault = failing(optionID("esx-001"), backends.KindTransient)
		s := engine.Retry(w.Setters(), engine.Backoff{Tries: 1000, First: time.Hour, Most: time.Hour})[backends.KindOption]
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		begin := time.Now()
		if err := s.Set(ctx, wishes[0].Setting, val(1), nil); backends.KindOf(err) != backends.KindTransient || time.Since(begin) > time.Minute {
			t.Errorf("%v after %s", err, time.Since(begin))
		}
	})
}
