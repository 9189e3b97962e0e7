package engine_test

import (
	"context"
	"math"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/engine"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
)

func TestFailureBlocksItsTargetAndWhatWaitsForItAndNothingElse(t *testing.T) {
	w, wishes := fabric()
	w.Fault = failing(optionID("esx-01"), backends.KindPermission)
	jb, j := fresh(t, w, wishes)
	var rec recorder
	jb.Sink = rec.sink
	res, err := engine.Run(t.Context(), jb)
	if err != nil || res.Status != engine.StatusPartial || res.Status.Exit() != 5 {
		t.Fatalf("%s, %v", res.Status, err)
	}
	want := map[string]engine.NodeState{
		optionID("esx-01"): engine.NodeFailed, firewallID("esx-01"): engine.NodeBlocked,
		optionID("esx-02"): engine.NodeDone, firewallID("esx-02"): engine.NodeDone, switchID: engine.NodeDone,
		"open host/esx-01/host-reboot": engine.NodeBlocked,
	}
	for id, state := range want {
		if got := node(t, res, id).State; got != state {
			t.Errorf("%s: %s, want %s", id, got, state)
		}
	}
	if n := node(t, res, optionID("esx-01")); backends.KindOf(n.Err) != backends.KindPermission || backends.HintOf(n.Err) == "" {
		t.Errorf("error of the failed node: %v", n.Err)
	}
	if rec.count(engine.EventFailed, optionID("esx-01")) != 1 {
		t.Error("not one failed event")
	}
	if len(res.Differs) == 0 {
		t.Error("nothing said of what still differs")
	}

	w.Fault = nil
	jb.Sink = nil
	if res, err = engine.Resume(t.Context(), job(w, wishes, j)); err != nil || res.Status != engine.StatusDone {
		t.Fatalf("resume: %s, %v: %v", res.Status, err, states(res))
	}
	if !w.Plan(wishes).Empty() {
		t.Error("the resume left something to do")
	}
}

func TestFailedBodyStillPowersTheVMOn(t *testing.T) {
	w, wishes := fabric()
	vm := backends.VMRef("vm-01")
	memory := setting(vm, backends.KindMemory, "")
	w.Fault = func(c Call) error {
		if strings.HasPrefix(c.Verb, "set") && c.Setting.Target == vm {
			return backends.Errorf(backends.KindPermanent, "vm-01", "", "no")
		}
		return nil
	}
	jb, _ := fresh(t, w, wishes)
	res, err := engine.Run(t.Context(), jb)
	if err != nil || res.Status != engine.StatusPartial {
		t.Fatalf("%s, %v", res.Status, err)
	}
	if s := node(t, res, memory.ID()).State; s != engine.NodeFailed {
		t.Errorf("memory: %s", s)
	}
	if s := node(t, res, "vm/vm-01/vm-power").State; s != engine.NodeDone {
		t.Errorf("power on again: %s", s)
	}
	if w.Snapshot()["power vm/vm-01"] != "" {
		t.Error("the VM was left off")
	}
}

func TestPartOfASetManyFails(t *testing.T) {
	w, wishes := fabric()
	bad := setting(backends.HostRef("esx-02"), backends.KindMember, dvs).ID()
	w.Fault = func(c Call) error {
		if c.Verb == "setmany part" && c.Setting.ID() == bad {
			return backends.Errorf(backends.KindPermanent, "esx-02", "", "the pNIC is in use")
		}
		return nil
	}
	jb, _ := fresh(t, w, wishes)
	res, err := engine.Run(t.Context(), jb)
	if err != nil {
		t.Fatal(err)
	}
	good := setting(backends.HostRef("esx-01"), backends.KindMember, dvs).ID()
	if node(t, res, good).State != engine.NodeDone || node(t, res, bad).State != engine.NodeFailed {
		t.Errorf("members: %v", states(res))
	}
	if s := node(t, res, setting(backends.VMRef("vm-01"), backends.KindAdapter, pg).ID()).State; s != engine.NodeBlocked {
		t.Errorf("the adapter waits for all members and is %s", s)
	}
}

func TestConflictIsNotOverwritten(t *testing.T) {
	w, wishes := options(2)
	jb, _ := fresh(t, w, wishes)
	colleague := setting(backends.HostRef("esx-001"), backends.KindOption, "Net.PVRDMAVmknic")
	w.Put(colleague, val("vmk7"))
	jb.Replan = nil
	res, err := engine.Run(t.Context(), jb)
	if err != nil || res.Status != engine.StatusPartial {
		t.Fatalf("%s, %v", res.Status, err)
	}
	n := node(t, res, colleague.ID())
	if backends.KindOf(n.Err) != backends.KindConflict || !strings.Contains(n.Err.Error(), "changed since the plan was made") {
		t.Errorf("error: %v", n.Err)
	}
	if v := w.Value(colleague); v != val("vmk7") {
		t.Errorf("the value of somebody else became %s", v)
	}
}

func TestSetThatFailsAfterItsEffectIsDoneAndOneThatLiesFails(t *testing.T) {
	w, wishes := options(2)
	lying := setting(backends.HostRef("esx-002"), backends.KindOption, "Net.PVRDMAVmknic")
	w.Fault = func(c Call) error {
		if c.Verb == "set" && c.Setting.ID() == optionID("esx-001") {
			w.Put(c.Setting, c.To)
			return backends.Errorf(backends.KindTransient, "esx-001", "", "connection reset")
		}
		return nil
	}
	jb, _ := fresh(t, w, wishes)
	jb.Setters[backends.KindOption] = liar{jb.Setters[backends.KindOption], lying.ID()}
	res, err := engine.Run(t.Context(), jb)
	if err != nil {
		t.Fatal(err)
	}
	if n := node(t, res, optionID("esx-001")); n.State != engine.NodeDone {
		t.Errorf("done but reported as an error: %s, %v", n.State, n.Err)
	}
	if n := node(t, res, lying.ID()); n.State != engine.NodeFailed || !strings.Contains(n.Err.Error(), "reads back as absent") {
		t.Errorf("accepted without effect: %s, %v", n.State, n.Err)
	}
}

// liar reports success for one setting and does nothing.
type liar struct {
	backends.Setter
	id string
}

func (l liar) Set(ctx context.Context, s backends.Setting, to backends.Value, p backends.Progress) error {
	if s.ID() == l.id {
		return nil
	}
	return l.Setter.Set(ctx, s, to, p)
}

func TestPanicIsAnError(t *testing.T) {
	w, wishes := options(2)
	w.Fault = func(c Call) error {
		if c.Verb == "set" && c.Setting.ID() == optionID("esx-001") {
			var none []int
			none[len(c.Verb)] = 1
		}
		return nil
	}
	jb, _ := fresh(t, w, wishes)
	res, err := engine.Run(t.Context(), jb)
	if err != nil || res.Status != engine.StatusPartial {
		t.Fatalf("%s, %v", res.Status, err)
	}
	got := node(t, res, optionID("esx-001")).Err
	if got == nil || !strings.Contains(got.Error(), "panic: runtime error: index out of range") ||
		!strings.Contains(got.Error(), "fault_test.go:") {
		t.Errorf("error: %v", got)
	}
}

func TestFirstPriorWinsOverAHalfDoneOne(t *testing.T) {
	w, wishes := options(1)
	start := w.Snapshot()
	w.Fault = func(c Call) error {
		if c.Verb == "set" && c.Setting.ID() == optionID("esx-001") {
			w.Put(c.Setting, val("half"))
			return backends.Errorf(backends.KindPermanent, "esx-001", "", "broke off half-way")
		}
		return nil
	}
	jb, j := fresh(t, w, wishes)
	res, err := engine.Run(t.Context(), jb)
	if err != nil || res.Status != engine.StatusFailed || res.Status.Exit() != 1 {
		t.Fatalf("%s, %v", res.Status, err)
	}
	w.Fault = nil
	if res, err = engine.Resume(t.Context(), job(w, wishes, j)); err != nil || res.Status != engine.StatusDone {
		t.Fatalf("resume: %s, %v: %v", res.Status, err, states(res))
	}
	if res, err = engine.Rollback(t.Context(), unwinding(w, wishes, j)); err != nil || res.Status != engine.StatusDone {
		t.Fatalf("rollback: %s, %v: %v", res.Status, err, states(res))
	}
	same(t, "after the rollback", start, w.Snapshot())
}

func TestRollbackLeavesWhatSomebodyElseChanged(t *testing.T) {
	w, wishes := options(1)
	jb, j := fresh(t, w, wishes)
	if _, err := engine.Run(t.Context(), jb); err != nil {
		t.Fatal(err)
	}
	colleague := setting(backends.HostRef("esx-001"), backends.KindOption, "Net.PVRDMAVmknic")
	w.Put(colleague, val("vmk7"))
	res, err := engine.Rollback(t.Context(), unwinding(w, wishes, j))
	if err != nil || res.Status != engine.StatusPartial || len(res.Conflicts) != 1 {
		t.Fatalf("%s, %v, conflicts %v", res.Status, err, res.Conflicts)
	}
	if j.State().Finished() {
		t.Error("a rollback with a conflict passes for finished")
	}
	if v := w.Value(colleague); v != val("vmk7") {
		t.Errorf("the value of somebody else became %s", v)
	}
	if v := w.Value(setting(backends.HostRef("esx-001"), backends.KindFirewall, "pvrdma")); !v.IsAbsent() {
		t.Errorf("the firewall is still %s", v)
	}
}

func TestPlanThatCannotBeCarriedOutIsRefusedBeforeAnything(t *testing.T) {
	w, wishes := options(1)
	twice := *w.Plan(wishes)
	twice.Changes = append(twice.Changes, twice.Changes[0])
	unknownKind := plan.Plan{Changes: []plan.Change{change(setting(backends.HostRef("a"), "nothing", ""), backends.Absent, val(1))}}
	for name, p := range map[string]plan.Plan{"a change twice": twice, "no setter": unknownKind} {
		jb, _ := planned(t, w, p)
		res, err := engine.Run(t.Context(), jb)
		if err == nil || res.Status != engine.StatusFailed {
			t.Errorf("%s: %s, %v", name, res.Status, err)
		}
		if n := len(w.Calls()); n > 0 {
			t.Errorf("%s: %d calls", name, n)
		}
	}
}

// noData returns a value that no journal can store.
type noData struct{ backends.Setter }

func (n noData) Read(context.Context, backends.Setting) (backends.Value, error) {
	return backends.ValueOf(math.NaN()), nil
}

func TestInvalidValueFailsOnlyItsChange(t *testing.T) {
	w, wishes := options(1)
	jb, _ := fresh(t, w, wishes)
	jb.Setters[backends.KindOption] = noData{jb.Setters[backends.KindOption]}
	res, err := engine.Run(t.Context(), jb)
	if err != nil {
		t.Fatal(err)
	}
	if n := node(t, res, optionID("esx-001")); n.State != engine.NodeFailed || !strings.Contains(n.Err.Error(), "cannot be represented") ||
		len(w.Calls("set")) != 0 {
		t.Errorf("%s, %v, %d sets", n.State, n.Err, len(w.Calls("set")))
	}
}
