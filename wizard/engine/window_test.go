package engine_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/engine"
)

// TestNoWaveOutlastsTheWindow: each host is away for 20 minutes. The first one starts because of the expected time (25 minutes, and
// as much for the undo), the second one does not because of the time that the first has taken; the resume in the next window
// finishes.
func TestNoWaveOutlastsTheWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, wishes := firmware(3)
		w.Before = brackets(t, 10*time.Minute)
		jb, j := fresh(t, w, wishes)
		jb.Limits = engine.Limits{HostsDown: 1, Until: time.Now().Add(55 * time.Minute), Reboot: time.Hour}
		res, err := engine.Run(t.Context(), jb)
		if err != nil || res.Status != engine.StatusPartial {
			t.Fatalf("%s, %v: %v", res.Status, err, states(res))
		}
		if opened := w.Calls("open"); len(opened) != 1 || len(w.Calls("close")) != 1 {
			t.Errorf("%d hosts went out of service, want 1", len(opened))
		}
		if notes := strings.Join(res.Notes, "\n"); !strings.Contains(notes, "not started: esx-0") || !strings.Contains(notes, "(2 in total)") ||
			!strings.Contains(notes, "rdma-setup resume "+res.Run) {
			t.Errorf("notes: %s", notes)
		}
		again := job(w, wishes, j)
		again.Limits = engine.Limits{HostsDown: 1, Until: time.Now().Add(24 * time.Hour), Reboot: time.Hour}
		if res, err = engine.Resume(t.Context(), again); err != nil || res.Status != engine.StatusDone {
			t.Fatalf("resume: %s, %v: %v", res.Status, err, states(res))
		}
		_ = j.Close() // inside the bubble
	})
}

// TestWindowHoldsVMsToo: three VMs, one at a time, ten minutes each.
func TestWindowHoldsVMsToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := NewWorld()
		w.Before = brackets(t, 5*time.Minute)
		jb, j := planned(t, w, cycles(3))
		jb.Limits = engine.Limits{VMsOff: 1, Until: time.Now().Add(25 * time.Minute)}
		res, err := engine.Run(t.Context(), jb)
		if err != nil || res.Status != engine.StatusPartial {
			t.Fatalf("%s, %v: %v", res.Status, err, states(res))
		}
		for n, want := range map[int]engine.NodeState{1: engine.NodeDone, 2: engine.NodePending, 3: engine.NodePending} {
			if got := node(t, res, "open "+powerID(n)); got.State != want {
				t.Errorf("%s: %s, want %s", got.ID, got.State, want)
			}
		}
		if opened := w.Calls("open"); len(opened) != 1 || opened[0].Setting.Target != backends.VMRef("vm-01") {
			t.Errorf("opened: %v", opened)
		}
		_ = j.Close()
	})
}
