package engine_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/engine"
)

// shells is an SSH bracket that cannot be opened on some hosts.
type shells map[string]backends.ErrorKind

func (s shells) State(context.Context, backends.Ref) (backends.Value, error) {
	return val(map[string]bool{"running": false}), nil
}

func (s shells) Open(_ context.Context, t backends.Ref, _ backends.Progress) error {
	if kind, bad := s[t.Name]; bad {
		return backends.Errorf(kind, t.Name, "", "nobody gets in")
	}
	return nil
}

func (s shells) Close(context.Context, backends.Ref, backends.Value, backends.Progress) error {
	return nil
}

// asking is an SSH bracket during whose prompt the operator ends the program; it records how long closing may take.
type asking struct {
	shells
	interrupt func()
	closing   []time.Duration
}

func (a *asking) Open(ctx context.Context, _ backends.Ref, _ backends.Progress) error {
	a.interrupt()
	return ctx.Err()
}

func (a *asking) Close(ctx context.Context, _ backends.Ref, _ backends.Value, _ backends.Progress) error {
	end, _ := ctx.Deadline()
	a.closing = append(a.closing, time.Until(end))
	return ctx.Err()
}

// TestAnInterruptedProofIsClosedInTime: brackets that were open when the operator ended the program are closed, within 700 ms
// unless the job sets another limit, and nothing was changed.
func TestAnInterruptedProofIsClosedInTime(t *testing.T) {
	for limit, most := range map[time.Duration]time.Duration{0: 700 * time.Millisecond, time.Hour: 30 * time.Minute} {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		w := NewWorld()
		before := w.Snapshot()
		jb, _ := fresh(t, w,
			[]Wish{{Setting: setting(backends.HostRef("esx-01"), backends.KindOption, "x"), To: val(1),
				Within: []backends.BracketKind{backends.BracketSSH}}})
		ask := &asking{interrupt: cancel}
		jb.Brackets[backends.BracketSSH], jb.Limits.PutBack = ask, limit
		res, err := engine.Run(ctx, jb)
		if len(ask.closing) != 1 || ask.closing[0] > most || limit > 0 && ask.closing[0] < most/2 {
			t.Errorf("limit %s: %s, %v: closed with %v left, want at most %s", limit, res.Status, err, ask.closing, most)
		}
		same(t, "the world", before, w.Snapshot())
	}
}

// TestRollbackGoesOnWithoutHostsThatDoNotAnswer: the firmware of three hosts was set in their shells, and one of them no longer
// answers. The others are rolled back now, that one when it answers again. A refused password stops the rollback, because it can be
// corrected.
func TestRollbackGoesOnWithoutHostsThatDoNotAnswer(t *testing.T) {
	w := NewWorld()
	var wishes []Wish
	for _, name := range []string{"esx-01", "esx-02", "esx-03"} {
		wishes = append(wishes, Wish{Setting: setting(backends.HostRef(name), backends.KindOption, "x"), To: val(1),
			Within: []backends.BracketKind{backends.BracketSSH}})
	}
	before := w.Snapshot()
	closed := shells{}
	with := func(jb engine.Job) engine.Job {
		jb.Brackets[backends.BracketSSH] = closed
		return jb
	}
	jb, j := fresh(t, w, wishes)
	if res, err := engine.Run(t.Context(), with(jb)); err != nil || res.Status != engine.StatusDone {
		t.Fatalf("%s, %v: %v", res.Status, err, states(res))
	}
	var unproven *engine.ProofError
	closed["esx-02"] = backends.KindAuth
	if res, err := engine.Rollback(t.Context(), with(unwinding(w, wishes, j))); !errors.As(err, &unproven) {
		t.Fatalf("refused: %s, %v: %v", res.Status, err, states(res))
	}
	closed["esx-02"] = backends.KindUnreachable
	res, err := engine.Rollback(t.Context(), with(unwinding(w, wishes, j)))
	if err != nil || res.Status != engine.StatusPartial {
		t.Fatalf("away: %s, %v: %v", res.Status, err, states(res))
	}
	if n := node(t, res, "open host/esx-02/host-ssh"); n.State != engine.NodeFailed || n.Err == nil {
		t.Errorf("the host that is away: %s, %v", n.State, n.Err)
	}
	for _, wish := range wishes {
		if undone := w.Value(wish.Setting).IsAbsent(); undone != (wish.Target.Name != "esx-02") {
			t.Errorf("%s was taken back: %t", wish.ID(), undone)
		}
	}
	delete(closed, "esx-02")
	if res, err := engine.Rollback(t.Context(), with(unwinding(w, wishes, j))); err != nil || res.Status != engine.StatusDone {
		t.Fatalf("back again: %s, %v: %v", res.Status, err, states(res))
	}
	same(t, "the world", before, w.Snapshot())
}
