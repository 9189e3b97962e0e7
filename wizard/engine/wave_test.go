package engine_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/engine"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
)

// firmware returns n hosts with a value that needs a reboot, and an option that does not.
func firmware(n int) (*World, []Wish) {
	w := NewWorld()
	var wishes []Wish
	for i := range n {
		h := backends.HostRef(fmt.Sprintf("esx-%02d", i+1))
		wishes = append(wishes,
			Wish{Setting: setting(h, backends.KindOption, "x"), To: val(1)},
			Wish{Setting: setting(h, KindFirmware, "SRIOV_EN"), To: val(1), Within: []backends.BracketKind{backends.BracketReboot}})
	}
	return w, wishes
}

func rebootID(host string) string { return "host/" + host + "/host-reboot" }

func firmwareID(host string) string {
	return setting(backends.HostRef(host), KindFirmware, "SRIOV_EN").ID()
}

func TestHostsGoDownInWaves(t *testing.T) {
	for _, c := range []struct {
		down   int
		most   int
		rounds int // of open and close, a second each
	}{{1, 1, 6}, {2, 2, 3}, {6, 6, 1}} {
		t.Run(fmt.Sprintf("%d down", c.down), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, wishes := firmware(6)
				w.Before = brackets(t, time.Second)
				jb, j := fresh(t, w, wishes)
				jb.Limits = engine.Limits{HostsDown: c.down}
				begin := time.Now()
				res, err := engine.Run(t.Context(), jb)
				if err != nil || res.Status != engine.StatusDone {
					t.Fatalf("%s, %v: %v", res.Status, err, states(res))
				}
				if w.MaxDown() != c.most {
					t.Errorf("%d hosts down at once, want %d", w.MaxDown(), c.most)
				}
				if took, want := time.Since(begin), time.Duration(2*c.rounds)*time.Second; took != want {
					t.Errorf("it took %s, want %s", took, want)
				}
				_ = j.Close() // inside the bubble
			})
		})
	}
}

func TestWaveStopsAtAHostThatDoesNotComeBack(t *testing.T) {
	w, wishes := firmware(4)
	w.Fault = func(c Call) error {
		if c.Verb == "close" && c.Setting.Target.Name == "esx-02" {
			return backends.Errorf(backends.KindUnreachable, "esx-02", "Look at its console.", "it did not come back")
		}
		return nil
	}
	jb, j := fresh(t, w, wishes)
	jb.Limits.Parallel = 1 // the hosts become ready in order
	res, err := engine.Run(t.Context(), jb)
	if err != nil || res.Status != engine.StatusPartial {
		t.Fatalf("%s, %v", res.Status, err)
	}
	for id, want := range map[string]engine.NodeState{
		rebootID("esx-01"): engine.NodeDone, rebootID("esx-02"): engine.NodeFailed,
		"open " + rebootID("esx-03"): engine.NodeBlocked, firmwareID("esx-04"): engine.NodeBlocked,
		setting(backends.HostRef("esx-04"), backends.KindOption, "x").ID(): engine.NodeDone,
	} {
		if got := node(t, res, id); got.State != want {
			t.Errorf("%s: %s, want %s", id, got.State, want)
		}
	}
	if err := node(t, res, "open "+rebootID("esx-03")).Err; err == nil || !strings.Contains(err.Error(), "esx-02") {
		t.Errorf("why esx-03 was not begun: %v", err)
	}
	w.Fault = nil
	if res, err = engine.Resume(t.Context(), job(w, wishes, j)); err != nil || res.Status != engine.StatusDone {
		t.Fatalf("resume: %s, %v: %v", res.Status, err, states(res))
	}
	for id, v := range w.Snapshot() {
		if strings.HasPrefix(id, "pending") || strings.HasPrefix(id, "maintenance") {
			t.Errorf("left over: %s %s", id, v)
		}
	}
	if n := len(w.Calls("close")); n != 5 {
		t.Errorf("%d reboots were asked for, want 4 and one again: %v", n, w.Calls("close"))
	}
}

func TestNoRebootForABodyThatWasNotDone(t *testing.T) {
	for name, bad := range map[string]string{"open fails": "open", "body cannot be read": "read"} {
		t.Run(name, func(t *testing.T) {
			w, wishes := firmware(1)
			w.Fault = func(c Call) error {
				if c.Verb == bad && c.Setting.Kind != backends.KindOption {
					return backends.Errorf(backends.KindPermanent, "esx-01", "", "no")
				}
				return nil
			}
			jb, _ := fresh(t, w, wishes)
			res, err := engine.Run(t.Context(), jb)
			if err != nil || res.Status != engine.StatusPartial {
				t.Fatalf("%s, %v", res.Status, err)
			}
			if a, c := len(w.Calls("abort")), len(w.Calls("close")); a != 1 || c != 0 {
				t.Errorf("%d aborts and %d reboots", a, c)
			}
			if w.Snapshot()["maintenance host/esx-01"] != "" {
				t.Error("the host was left in maintenance mode")
			}
		})
	}
}

func TestBracketWithoutBodyHasItsEffect(t *testing.T) {
	w := NewWorld()
	h := backends.HostRef("esx-01")
	fw := setting(h, KindFirmware, "SRIOV_EN")
	jb, _ := planned(t, w, plan.Plan{
		Changes:  []plan.Change{change(fw, backends.Absent, val(1))},
		Brackets: []plan.Bracket{{Kind: backends.BracketReboot, Target: h, After: []string{fw.ID()}}},
	})
	res, err := engine.Run(t.Context(), jb)
	if err != nil || res.Status != engine.StatusDone {
		t.Fatalf("%s, %v: %v", res.Status, err, states(res))
	}
	if n := len(w.Calls("close")); n != 1 || w.Snapshot()[fw.ID()] != "1" {
		t.Errorf("%d reboots, %v", n, w.Snapshot())
	}
}

func TestBracketIsOpenedLate(t *testing.T) {
	w, wishes := fabric()
	jb, _ := fresh(t, w, wishes)
	if res, err := engine.Run(t.Context(), jb); err != nil || res.Status != engine.StatusDone {
		t.Fatalf("%s, %v", res.Status, err)
	}
	group := false
	for _, c := range w.Calls("set", "open") {
		group = group || c.Setting.ID() == groupID
		if c.Verb == "open" && c.Setting.Target.Type == backends.TypeVM && !group {
			t.Errorf("%s is off before its port group is there", c.Setting.Target)
		}
	}
}

// brackets makes every opening and closing take the given time.
func brackets(t *testing.T, d time.Duration) func(context.Context, Call) {
	t.Helper()
	return func(ctx context.Context, c Call) {
		if c.Verb != "open" && c.Verb != "close" {
			return
		}
		select {
		case <-time.After(d):
		case <-ctx.Done():
		}
	}
}
