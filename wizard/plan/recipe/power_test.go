package recipe_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
)

// TestOneMoreVMOnASwitchThatChanges: vm-02 has its PVRDMA adapter already and is off while the switch gets another MTU (KB
// 328676); vm-01 is new and comes first in the answers. Neither the plan nor the way back waits for itself.
func TestOneMoreVMOnASwitchThatChanges(t *testing.T) {
	inv := newInventory(2)
	a := newAnswers(inv)
	a.Switch.MTU = 1500
	both := slices.Clone(a.VMs)
	a.VMs = both[1:]
	apply(t, a, inv)
	start := clone(t, inv)
	a.VMs, a.Switch.MTU = both, 9000
	back := apply(t, a, inv) // it builds and carries out the plans, and fails on a cycle
	takeBack(t, inv, back)
	if diff := cmp.Diff(start.VMs, inv.VMs); diff != "" {
		t.Errorf("the VMs after the rollback (-want +got):\n%s", diff)
	}
}

// TestPowerWaves: what a plan says and refuses of VMs that are off at the same time.
func TestPowerWaves(t *testing.T) {
	inv := newInventory(8)
	a := newAnswers(inv)
	for i := range a.VMs {
		a.VMs[i].Group = []string{"db", ""}[i%2]
	}
	p := mustBuild(t, a, inv, plan.Options{})
	if !slices.Contains(p.Notes, "at most 2 of 8 VMs are off at the same time (run.power.max_unavailable)") {
		t.Errorf("notes %q", p.Notes)
	}
	canary := 0
	for _, b := range p.Brackets {
		if b.Kind != backends.BracketVMPower {
			continue
		}
		if waits := slices.Contains(b.After, "vm/vm-01/vm-power"); waits != (b.Target.Name != "vm-01") {
			t.Errorf("%s waits for %q", b.ID(), b.After)
		} else if waits {
			canary++
		}
		if slices.Contains(b.Apart, "db") != (b.Target.Name == "vm-01" || b.Target.Name == "vm-03" || b.Target.Name == "vm-05" || b.Target.Name == "vm-07") {
			t.Errorf("%s is kept apart from %q", b.ID(), b.Apart)
		}
	}
	if canary != 7 {
		t.Errorf("%d VMs wait for the first one", canary)
	}
	a.Run.Power = answers.Power{MaxUnavailable: answers.AllVMs}
	p = mustBuild(t, a, inv, plan.Options{})
	if !slices.Contains(p.Notes, "all 8 VMs may be off at the same time (run.power.max_unavailable: all)") {
		t.Errorf("notes %q", p.Notes)
	}
}
