package engine_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/engine"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
)

// crowded is a host that reboots, with two VMs that are off during the reboot.
func crowded() plan.Plan {
	h := backends.HostRef("esx-01")
	reboot := plan.Bracket{Kind: backends.BracketReboot, Target: h}
	p := plan.Plan{Changes: []plan.Change{change(setting(h, KindFirmware, "SRIOV_EN"), backends.Absent, val(1), reboot.ID())}}
	for _, name := range []string{"vm-01", "vm-02"} {
		v := backends.VMRef(name)
		power := plan.Bracket{Kind: backends.BracketVMPower, Target: v, Effect: plan.VMPowerCycle, Leave: val("on"),
			Around: []string{reboot.ID()}}
		p.Brackets = append(p.Brackets, power)
		p.Changes = append(p.Changes, change(setting(v, backends.KindMemory, ""), backends.Absent, val(1), power.ID()))
	}
	p.Brackets = append(p.Brackets, reboot)
	return p
}

// together is a change for which two VMs are off.
func together() plan.Plan {
	p := cycles(2)
	p.Changes[0].Within = []string{powerID(1), powerID(2)}
	return p
}

// TestGateHoldsTheWholeWave: while the gate holds a wave, no target of it goes out of service; the same is true if the gate
// refuses, if the operator stops the run, and if the window has become too short in the meantime.
func TestGateHoldsTheWholeWave(t *testing.T) {
	passed := 10 * time.Minute
	for name, p := range map[string]func() plan.Plan{"VMs of a host": crowded, "VMs together": together} {
		for _, c := range []struct {
			end    string
			status engine.Status
			limits engine.Limits
			gate   error
			opens  bool
		}{
			{"passes", engine.StatusDone, engine.Limits{}, nil, true},
			{"refuses", engine.StatusFailed, engine.Limits{}, backends.Errorf(backends.KindTransient, "vm-01", "", "a backup reads it"), false},
			{"is stopped", engine.StatusInterrupted, engine.Limits{}, nil, false},
			{"ends too late", engine.StatusPartial, engine.Limits{Until: time.Unix(1, 0)}, nil, false},
		} {
			t.Run(name+", the gate "+c.end, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					begin := time.Now()
					w := NewWorld()
					w.Before = func(_ context.Context, call Call) {
						if call.Verb == "open" && (!c.opens || time.Since(begin) < passed) {
							t.Errorf("%s goes out of service after %s", call.Setting.Target, time.Since(begin))
						}
					}
					jb, j := planned(t, w, p())
					jb.Limits = c.limits
					if !jb.Limits.Until.IsZero() {
						jb.Limits.Until = begin.Add(65 * time.Minute)
						passed = time.Hour
					} else {
						passed = 10 * time.Minute
					}
					stop := make(chan struct{})
					jb.Stop = stop
					if c.end == "is stopped" {
						time.AfterFunc(time.Minute, func() { close(stop) })
					}
					asked := 0
					jb.Gate = func(ctx context.Context, _ engine.Wave, _ func(string)) error {
						asked++
						select {
						case <-time.After(passed):
							return c.gate
						case <-ctx.Done():
							return ctx.Err()
						}
					}
					res, err := engine.Run(t.Context(), jb)
					if err != nil || res.Status != c.status {
						t.Errorf("%s, %v, want %s: %v", res.Status, err, c.status, states(res))
					}
					if asked != 1 {
						t.Errorf("the gate was asked %d times", asked)
					}
					if took := time.Since(begin); c.end == "is stopped" && took > 2*time.Minute {
						t.Errorf("the run went on for %s after the stop", took)
					}
					_ = j.Close() // inside the bubble
				})
			})
		}
	}
}

// TestRollbackNeedsTheWindowOnce: the half of the window that a wave reserves for its undo is available to the rollback.
func TestRollbackNeedsTheWindowOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, wishes := firmware(1)
		jb, j := fresh(t, w, wishes)
		if res, err := engine.Run(t.Context(), jb); err != nil || res.Status != engine.StatusDone {
			t.Fatalf("%s, %v: %v", res.Status, err, states(res))
		}
		again := unwinding(w, wishes, j)
		again.Limits.Until = time.Now().Add(40 * time.Minute) // 25 are expected
		if res, err := engine.Rollback(t.Context(), again); err != nil || res.Status != engine.StatusDone {
			t.Errorf("rollback: %s, %v: %v %v", res.Status, err, states(res), res.Notes)
		}
		_ = j.Close()
	})
}
