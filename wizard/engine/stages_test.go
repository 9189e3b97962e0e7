package engine_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/engine"
	"github.com/rdma-setup/rdma-setup/wizard/engine/journal"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
)

func TestUnknownValueIsPutOffToTheNextStage(t *testing.T) {
	w, wishes := fabric()
	address := setting(backends.GuestRef("vm-01"), backends.KindAddress, pg).ID()
	if c := w.Plan(wishes).Change(address); c == nil || c.To.Known() {
		t.Fatal("the test wants an address that is not known yet")
	}
	jb, j := fresh(t, w, wishes)
	var rec recorder
	jb.Sink = rec.sink
	res, err := engine.Run(t.Context(), jb)
	if err != nil || res.Status != engine.StatusDone || node(t, res, address).State != engine.NodeDone {
		t.Fatalf("%s, %v: %v", res.Status, err, states(res))
	}
	if n := rec.count(engine.EventPlanned, ""); n != 2 {
		t.Errorf("%d stages", n)
	}
	stages := 0
	for _, r := range j.State().Records {
		if r.Type == journal.TypeStage {
			stages++
		}
	}
	if stages != 2 {
		t.Errorf("%d stages in the journal", stages)
	}
}

func TestUnknownValueWithoutASecondPlanIsSaid(t *testing.T) {
	w, wishes := fabric()
	jb, _ := fresh(t, w, wishes)
	jb.Replan = nil
	res, err := engine.Run(t.Context(), jb)
	address := setting(backends.GuestRef("vm-01"), backends.KindAddress, pg).ID()
	if err != nil || res.Status != engine.StatusPartial || node(t, res, address).State != engine.NodePending {
		t.Fatalf("%s, %v: %v", res.Status, err, states(res))
	}
}

func TestLaterStageBeyondTheCeilingAsks(t *testing.T) {
	more := Wish{Setting: setting(backends.HostRef("esx-009"), backends.KindOption, "surprise"), To: val(1)}
	for name, yes := range map[string]bool{"no": false, "yes": true} {
		t.Run(name, func(t *testing.T) {
			w, wishes := options(1)
			jb, _ := fresh(t, w, wishes)
			asked := ""
			jb.AskBeyond = func(_ context.Context, what string, _ plan.Plan) bool {
				asked = what
				return yes
			}
			jb.Replan = w.Replanner(append(wishes, more))
			res, err := engine.Run(t.Context(), jb)
			if err != nil || asked != more.ID() {
				t.Fatalf("asked for %q, %v", asked, err)
			}
			if set := w.Value(more.Setting) == val(1); set != yes {
				t.Errorf("set: %v", set)
			}
			if want := map[bool]engine.Status{false: engine.StatusPartial, true: engine.StatusDone}[yes]; res.Status != want {
				t.Errorf("%s, want %s", res.Status, want)
			}
			if !yes && (len(res.Differs) != 1 || len(res.Notes) == 0) {
				t.Errorf("differs %v, notes %v", res.Differs, res.Notes)
			}
		})
	}
}

func TestChangeThatDoesNotStayIsSaidAndEnds(t *testing.T) {
	w, wishes := options(1)
	jb, _ := fresh(t, w, wishes)
	replan := jb.Replan
	jb.Replan = func(ctx context.Context) (*plan.Plan, error) {
		w.Put(wishes[0].Setting, val("set back by somebody"))
		return replan(ctx)
	}
	res, err := engine.Run(t.Context(), jb)
	if res.Status != engine.StatusPartial {
		t.Fatalf("%s, %v: %v", res.Status, err, states(res))
	}
	if err == nil || !strings.Contains(err.Error(), "the change succeeded, but a later read shows set back by somebody") ||
		backends.HintOf(err) == "" {
		t.Errorf("%v, hint %q", err, backends.HintOf(err))
	}
	if len(res.Differs) != 1 || len(w.Calls("set")) != 2 {
		t.Errorf("differs %v after %d sets", res.Differs, len(w.Calls("set")))
	}
}

func TestReplanThatFailsIsAnErrorOfTheRun(t *testing.T) {
	w, wishes := options(1)
	jb, _ := fresh(t, w, wishes)
	jb.Replan = func(context.Context) (*plan.Plan, error) {
		return nil, backends.Errorf(backends.KindUnreachable, "", "", "vCenter does not answer")
	}
	res, err := engine.Run(t.Context(), jb)
	if res.Status != engine.StatusPartial || backends.KindOf(err) != backends.KindUnreachable {
		t.Errorf("%s, %v", res.Status, err)
	}
}

func TestSkipLeavesAChangeAlone(t *testing.T) {
	w, wishes := options(1)
	jb, _ := fresh(t, w, wishes)
	jb.Skip = []string{optionID("esx-001")}
	res, err := engine.Run(t.Context(), jb)
	if err != nil || res.Status != engine.StatusPartial || len(res.Differs) != 1 ||
		node(t, res, optionID("esx-001")).State != engine.NodeSkipped {
		t.Fatalf("%s, %v: %v", res.Status, err, states(res))
	}
	if !w.Value(wishes[0].Setting).IsAbsent() || w.Value(wishes[1].Setting) != val(true) {
		t.Errorf("%v", w.Snapshot())
	}
}

func TestNothingToDo(t *testing.T) {
	w, wishes := options(1)
	for _, wish := range wishes {
		w.Put(wish.Setting, wish.To)
	}
	var rec recorder
	res, err := engine.Run(t.Context(), engine.Job{Plan: *w.Plan(wishes), Sink: rec.sink})
	if err != nil || res.Status != engine.StatusUnchanged || res.Status.Exit() != 0 || len(rec.events) != 1 {
		t.Errorf("%s, %v, %v", res.Status, err, rec.events)
	}
}

func TestResumeRefusesOtherAnswersAndAnotherVCenter(t *testing.T) {
	w, wishes := options(1)
	w.Fault = failing(optionID("esx-001"), backends.KindPermanent)
	jb, j := fresh(t, w, wishes)
	if _, err := engine.Run(t.Context(), jb); err != nil {
		t.Fatal(err)
	}
	calls, records := len(w.Calls()), len(j.State().Records)
	other := job(w, wishes, j)
	other.VCenter = "77b2"
	changed := job(w, wishes, j)
	changed.Answers = "mode: test\nhosts: [esx-01]\n"
	for name, c := range map[string]struct {
		job  engine.Job
		says string
	}{
		"vCenter": {other, "is of the vCenter https://vc.example/sdk (50a1), not of 77b2"},
		"answers": {changed, "- hosts: [esx-01, esx-02]\n+ hosts: [esx-01]"},
	} {
		_, err := engine.Resume(t.Context(), c.job)
		if backends.KindOf(err) != backends.KindRefused || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if len(w.Calls()) != calls || len(j.State().Records) != records {
		t.Error("a refused resume did something")
	}
}

// The state that Job.Replan read is the state that the run has left only if nothing was done after it.
func TestResultRecordsWhetherTheWorldWasReadAfterTheLastChange(t *testing.T) {
	for name, tt := range map[string]struct {
		replan func(w *World, wishes []Wish) func(context.Context) (*plan.Plan, error)
		want   bool
	}{
		"to the end": {func(w *World, wishes []Wish) func(context.Context) (*plan.Plan, error) {
			return w.Replanner(wishes)
		}, true},
		"never": {func(*World, []Wish) func(context.Context) (*plan.Plan, error) { return nil }, false},
		"it failed": {func(*World, []Wish) func(context.Context) (*plan.Plan, error) {
			return func(context.Context) (*plan.Plan, error) { return nil, errors.New("nobody answers") }
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			w, wishes := options(2)
			jb, _ := fresh(t, w, wishes)
			jb.Replan = tt.replan(w, wishes)
			res, _ := engine.Run(t.Context(), jb)
			if res.Reread != tt.want {
				t.Errorf("%s: read again %t", res.Status, res.Reread)
			}
		})
	}
}
