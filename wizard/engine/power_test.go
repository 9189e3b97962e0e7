package engine_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/engine"
	"github.com/rdma-setup/rdma-setup/wizard/engine/journal"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
)

// cycles returns a plan of n VMs that are on and must be off for one change each.
func cycles(n int) plan.Plan {
	var p plan.Plan
	for i := range n {
		vm := backends.VMRef(fmt.Sprintf("vm-%02d", i+1))
		b := plan.Bracket{Kind: backends.BracketVMPower, Target: vm, Effect: plan.VMPowerCycle}
		p.Brackets = append(p.Brackets, b)
		p.Changes = append(p.Changes, change(setting(vm, backends.KindMemory, ""), backends.Absent, val(i), b.ID()))
	}
	return p
}

func powerID(n int) string { return fmt.Sprintf("vm/vm-%02d/vm-power", n) }

func TestVMsGoOffInWaves(t *testing.T) {
	for name, c := range map[string]struct {
		limit, most int
		plan        func(p *plan.Plan)
	}{
		"no limit":  {0, 12, nil},
		"one":       {1, 1, nil},
		"four":      {4, 4, nil},
		"not whole": {5, 5, nil},
		"kept apart": {4, 4, func(p *plan.Plan) { // every second VM belongs to one group: one of them at a time, the others beside it
			for i := range p.Brackets {
				if i%2 == 0 {
					p.Brackets[i].Apart = []string{"db"}
				}
			}
		}},
		"all kept apart": {4, 1, func(p *plan.Plan) {
			for i := range p.Brackets {
				p.Brackets[i].Apart = []string{"db", "web"}
			}
		}},
		"together, in more than the limit": {2, 3, func(p *plan.Plan) { // one change needs three of them off
			p.Changes[0].Within = []string{powerID(1), powerID(2), powerID(3)}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := NewWorld()
				w.Before = brackets(t, time.Second)
				p := cycles(12)
				if c.plan != nil {
					c.plan(&p)
				}
				jb, j := planned(t, w, p)
				jb.Limits = engine.Limits{VMsOff: c.limit}
				res, err := engine.Run(t.Context(), jb)
				if err != nil || res.Status != engine.StatusDone {
					t.Fatalf("%s, %v: %v", res.Status, err, states(res))
				}
				if w.MaxOff() != c.most {
					t.Errorf("%d VMs off at once, want %d", w.MaxOff(), c.most)
				}
				_ = j.Close() // inside the bubble
			})
		})
	}
}

func TestNoVMGoesOffAfterOneThatDidNotStart(t *testing.T) {
	w := NewWorld()
	w.Fault = func(c Call) error {
		if c.Verb == "close" && c.Setting.Target.Name == "vm-02" {
			return backends.Errorf(backends.KindPermanent, "vm-02", "Read its vmware.log.", "it does not start")
		}
		return nil
	}
	jb, _ := planned(t, w, cycles(4))
	jb.Limits = engine.Limits{VMsOff: 1, Parallel: 1}
	res, err := engine.Run(t.Context(), jb)
	if err != nil || res.Status != engine.StatusPartial {
		t.Fatalf("%s, %v", res.Status, err)
	}
	for n, want := range map[int]engine.NodeState{1: engine.NodeDone, 2: engine.NodeFailed} {
		if got := node(t, res, powerID(n)); got.State != want {
			t.Errorf("%s: %s, want %s", got.ID, got.State, want)
		}
	}
	for _, n := range []int{3, 4} {
		if got := node(t, res, "open "+powerID(n)); got.State != engine.NodeBlocked {
			t.Errorf("%s: %s", got.ID, got.State)
		}
	}
	if err := node(t, res, "open "+powerID(3)).Err; err == nil || !strings.Contains(err.Error(), "vm-02") {
		t.Errorf("why vm-03 was not begun: %v", err)
	}
}

// TestResumeCountsVMsThatAreStillOff: VMs that a killed attempt has left powered off are counted first.
func TestResumeCountsVMsThatAreStillOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := NewWorld()
		p := cycles(8)
		dir := t.TempDir()
		j := create(t, dir, &p, (&Crash{}).File())
		for n := 1; n <= 3; n++ { // killed when three of them were off
			vm := backends.VMRef(fmt.Sprintf("vm-%02d", n))
			if err := j.Append(journal.Record{Type: journal.TypeOpening, Node: powerID(n), Target: vm, Kind: string(backends.BracketVMPower),
				Prior: val("on"), To: val("on")}); err != nil {
				t.Fatal(err)
			}
			if err := w.Brackets()[backends.BracketVMPower].Open(t.Context(), vm, nil); err != nil {
				t.Fatal(err)
			}
		}
		w.Before = brackets(t, time.Second)
		jb := engine.Job{Plan: p, Setters: w.Setters(), Brackets: w.Brackets(), Journal: j, Limits: engine.Limits{VMsOff: 3}}
		jb.Replan = w.Replanner(nil)
		res, err := engine.Resume(t.Context(), jb)
		if err != nil || res.Status != engine.StatusDone {
			t.Fatalf("%s, %v: %v", res.Status, err, states(res))
		}
		if w.MaxOff() != 3 {
			t.Errorf("%d VMs off at once, want 3", w.MaxOff())
		}
		_ = j.Close()
	})
}

func TestTogether(t *testing.T) {
	p := cycles(5)
	reboot := plan.Bracket{Kind: backends.BracketReboot, Target: backends.HostRef("esx-01"), Effect: plan.HostReboot}
	p.Brackets = append(p.Brackets, reboot)
	p.Brackets[0].Around, p.Brackets[1].Around = []string{reboot.ID()}, []string{reboot.ID()}
	p.Changes[2].Within = []string{powerID(3), powerID(4)}
	got := fmt.Sprint(plan.Together(p.Brackets, p.Changes))
	want := fmt.Sprint([][]string{{powerID(1), powerID(2)}, {powerID(3), powerID(4)}, {powerID(5)}})
	if got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
