package engine_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/engine"
	"github.com/rdma-setup/rdma-setup/wizard/engine/journal"
)

// controlled runs a job in a bubble in which every bracket takes a second, and passes its Remote to operate. The bubble fails the
// test if anything of the run is left when it has ended.
func controlled(t *testing.T, w *World, wishes []Wish, limits engine.Limits,
	operate func(*engine.Remote)) (engine.Result, *recorder, *journal.Journal) {
	t.Helper()
	jb, j := fresh(t, w, wishes)
	var rec recorder
	jb.Sink, jb.Limits, jb.Remote = rec.sink, limits, engine.NewRemote()
	over := make(chan struct{})
	go func() {
		defer close(over)
		operate(jb.Remote)
	}()
	res, err := engine.Run(t.Context(), jb)
	if err != nil {
		t.Errorf("the run: %v", err)
	}
	<-over
	if _, err := jb.Remote.Ask(t.Context(), engine.Control{Do: engine.ControlPause}); backends.KindOf(err) != backends.KindRefused ||
		!strings.Contains(backends.HintOf(err), "resume") {
		t.Errorf("a control after the end: %v", err)
	}
	_ = j.Close() // inside the bubble
	return res, &rec, j
}

func ask(t *testing.T, r *engine.Remote, do engine.Verb, target backends.Ref) string {
	t.Helper()
	text, err := r.Ask(t.Context(), engine.Control{Do: do, Target: target, By: "anna"})
	if err != nil {
		t.Errorf("%s %s: %v", do, target, err)
	}
	return text
}

// controls returns the control records of the journal.
func controls(j *journal.Journal) (out []string) {
	for _, r := range j.State().Records {
		if r.Type == journal.TypeControl {
			out = append(out, strings.TrimSpace(r.By+" "+r.Name+" "+strings.TrimPrefix(r.Target.String(), "/")))
		}
	}
	return out
}

// esx-01 is down when the pause begins: it is returned to service, and no other host goes down until the run continues.
func TestPauseBringsBackWhatIsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, wishes := firmware(3)
		w.Before = brackets(t, time.Second)
		begin := time.Now()
		res, rec, j := controlled(t, w, wishes, engine.Limits{Parallel: 1}, func(r *engine.Remote) {
			time.Sleep(1500 * time.Millisecond) // the first host is closing
			if text := ask(t, r, engine.ControlPause, backends.Ref{}); !strings.Contains(text, "finished first: host/esx-01") {
				t.Errorf("the pause says %q", text)
			}
			if _, err := r.Ask(t.Context(), engine.Control{Do: engine.ControlPause, By: "ben"}); backends.KindOf(err) != backends.KindRefused {
				t.Errorf("a second pause: %v", err)
			}
			time.Sleep(time.Hour)
			if down := len(w.Calls("open")); down != 1 {
				t.Errorf("%d hosts were taken down before the run was continued", down)
			}
			if back := len(w.Calls("close")); back != 1 {
				t.Errorf("%d hosts were brought back in the pause", back)
			}
			ask(t, r, engine.ControlContinue, backends.Ref{})
		})
		if res.Status != engine.StatusDone || time.Since(begin) < time.Hour {
			t.Errorf("%s after %s: %v", res.Status, time.Since(begin), states(res))
		}
		if got, want := controls(j), []string{"anna pause", "anna continue"}; !slices.Equal(got, want) {
			t.Errorf("journal: %v, want %v", got, want)
		}
		if n := rec.count(engine.EventControl, ""); n != 2 {
			t.Errorf("%d controls were told", n)
		}
	})
}

// A bracket that waits at the gate has changed nothing: a pause cancels it, and its VM stays in service.
func TestPauseCancelsWaitingAtTheGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, wishes := firmware(1)
		jb, j := fresh(t, w, wishes)
		var st engine.State
		asked := 0
		jb.Sink, jb.Remote = st.Fold, engine.NewRemote()
		jb.Gate = func(ctx context.Context, _ engine.Wave, _ func(string)) error {
			if asked++; asked > 1 {
				return nil
			}
			<-ctx.Done()
			return ctx.Err()
		}
		go func() {
			time.Sleep(time.Second)
			if text := ask(t, jb.Remote, engine.ControlPause, backends.Ref{}); strings.Contains(text, "finished first") {
				t.Errorf("the pause says %q", text)
			}
			time.Sleep(time.Second)
			if n := len(w.Calls("open")); n != 0 {
				t.Errorf("%d openings in the pause", n)
			}
			ask(t, jb.Remote, engine.ControlContinue, backends.Ref{})
		}()
		res, err := engine.Run(t.Context(), jb)
		if err != nil || res.Status != engine.StatusDone || asked != 2 {
			t.Errorf("%s, %v, asked %d times: %v", res.Status, err, asked, states(res))
		}
		if st.Counts.Running != 0 || st.Counts.Done != st.Counts.Total {
			t.Errorf("the views count %+v", st.Counts)
		}
		_ = j.Close()
	})
}

func TestSkipLeavesATargetToResume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, wishes := firmware(3)
		w.Before = brackets(t, time.Second)
		last := backends.HostRef("esx-03")
		res, _, j := controlled(t, w, wishes, engine.Limits{Parallel: 1}, func(r *engine.Remote) {
			time.Sleep(500 * time.Millisecond)
			ask(t, r, engine.ControlSkip, last)
			if _, err := r.Ask(t.Context(), engine.Control{Do: engine.ControlSkip, Target: last,
				By: "anna"}); backends.KindOf(err) != backends.KindRefused {
				t.Errorf("a second skip: %v", err)
			}
		})
		if res.Status != engine.StatusPartial {
			t.Errorf("%s: %v", res.Status, states(res))
		}
		for host, want := range map[string]engine.NodeState{"esx-02": engine.NodeDone, "esx-03": engine.NodeBlocked} {
			n := node(t, res, "open "+rebootID(host))
			if n.State != want || want == engine.NodeBlocked && !strings.Contains(n.Err.Error(), "anna") {
				t.Errorf("%s: %s, %v", host, n.State, n.Err)
			}
		}
		if got := controls(j); !slices.Equal(got, []string{"anna skip host/esx-03"}) {
			t.Errorf("journal: %v", got)
		}
	})
}

// repaired makes the first set of an id fail.
func repaired(w *World, id string) {
	var once sync.Once
	w.Fault = func(c Call) (err error) {
		if (c.Verb == "set" || c.Verb == "setmany") && c.Setting.ID() == id {
			once.Do(func() { err = backends.Errorf(backends.KindPermission, c.Setting.Target.Name, "Grant it.", "injected") })
		}
		return err
	}
}

func TestRetry(t *testing.T) {
	for name, tt := range map[string]struct {
		id   string
		says string
	}{
		"of a step while the target is in service is at once": {setting(backends.HostRef("esx-01"), backends.KindOption, "x").ID(),
			"tried again when the run is continued"},
		"of a step while the target is down is after this stage":     {firmwareID("esx-01"), "after this stage"},
		"of the last target, and the waves that it stopped, goes on": {firmwareID("esx-02"), "after this stage"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, wishes := firmware(3)
				w.Before = brackets(t, time.Second)
				repaired(w, tt.id)
				target := backends.HostRef("esx-01")
				if strings.Contains(tt.id, "esx-02") {
					target = backends.HostRef("esx-02")
				}
				res, rec, j := controlled(t, w, wishes, engine.Limits{Parallel: 1}, func(r *engine.Remote) {
					time.Sleep(500 * time.Millisecond)
					ask(t, r, engine.ControlPause, backends.Ref{})
					if target.Name == "esx-02" {
						ask(t, r, engine.ControlContinue, backends.Ref{})
						time.Sleep(3 * time.Second)
						ask(t, r, engine.ControlPause, backends.Ref{})
					}
					time.Sleep(time.Minute)
					if text := ask(t, r, engine.ControlRetry, target); !strings.Contains(text, tt.says) {
						t.Errorf("it says %q", text)
					}
					ask(t, r, engine.ControlContinue, backends.Ref{})
				})
				if res.Status != engine.StatusDone || !w.Plan(wishes).Empty() {
					t.Errorf("%s: %v %v", res.Status, states(res), controls(j))
				}
				var st engine.State
				first := 0
				for _, e := range rec.events {
					if st.Fold(e); e.First {
						first++
					}
				}
				if first != 1 {
					t.Errorf("%d beginnings of an attempt were told", first)
				}
				if c := st.Counts; c.Failed+c.Blocked+c.Running > 0 || c.Ended() != c.Total {
					t.Errorf("the views count %+v", c)
				}
			})
		})
	}
}

// filling is a disk that accepts no more data once it is full.
type filling struct {
	journal.File
	full atomic.Bool
}

func (f *filling) Write(b []byte) (int, error) {
	if f.full.Load() {
		return 0, syscall.ENOSPC
	}
	return f.File.Write(b)
}

func TestControlOfAFullDiskStopsTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, wishes := firmware(2)
		w.Before = brackets(t, time.Second)
		room := &filling{}
		j, err := journal.Create(t.TempDir(), header(w.Plan(wishes)), nil, journal.WithFile(func(f journal.File) journal.File {
			room.File = f
			return room
		}))
		if err != nil {
			t.Fatal(err)
		}
		jb := job(w, wishes, j)
		jb.Limits.Parallel, jb.Remote = 1, engine.NewRemote()
		go func() {
			time.Sleep(500 * time.Millisecond)
			room.full.Store(true)
			if _, err := jb.Remote.Ask(t.Context(), engine.Control{Do: engine.ControlPause}); !errors.Is(err, syscall.ENOSPC) {
				t.Errorf("a pause that cannot be journalled: %v", err)
			}
		}()
		res, err := engine.Run(t.Context(), jb)
		if !errors.Is(err, syscall.ENOSPC) || len(w.Calls("open")) != len(w.Calls("close", "abort")) {
			t.Errorf("%s, %v, %v", res.Status, err, w.Calls("open", "close", "abort"))
		}
		_ = j.Close()
	})
}
