package vsphere_test

import (
	"testing"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/lab"
	events "github.com/rdma-setup/rdma-setup/backends/lab/world"
)

// TestNoOperationTwice loses the answer to an operation, before or after it took effect. If the bracket is opened and closed again,
// as a resume does, it succeeds, and no host is rebooted and no VM powered off twice.
func TestNoOperationTwice(t *testing.T) {
	for _, tt := range []struct {
		method string
		open   backends.BracketKind
		of     backends.Ref
	}{
		{"RebootHost_Task", backends.BracketReboot, backends.HostRef("esx-01")},
		{"EnterMaintenanceMode_Task", backends.BracketReboot, backends.HostRef("esx-01")},
		{"ExitMaintenanceMode_Task", backends.BracketReboot, backends.HostRef("esx-01")},
		{"ShutdownGuest", backends.BracketVMPower, backends.VMRef("vm-01")},
		{"WaitForUpdatesEx", backends.BracketReboot, backends.HostRef("esx-01")},
		{"WaitForUpdatesEx", backends.BracketVMPower, backends.VMRef("vm-01")},
		{"PowerOnVM_Task", backends.BracketVMPower, backends.VMRef("vm-01")},
	} {
		for _, do := range []string{"drop", "drop-after", "fault:SystemError"} {
			if (tt.method == "WaitForUpdatesEx") != (do == "fault:SystemError") {
				continue // the answer to the operation or to the wait for its task is lost
			}
			t.Run(string(tt.open)+" "+tt.method+" "+do, func(t *testing.T) {
				t.Parallel()
				l, c := startLab(t, lab.Options{Hosts: 2, VMs: 1, RebootTime: 300 * time.Millisecond, BootTime: 50 * time.Millisecond,
					Faults: []string{"method=" + tt.method + ",nth=1,do=" + do}})
				b := c.Brackets()[tt.open]
				before := stateOf(t, b, tt.of)
				atLast(t, func() error { return b.Open(t.Context(), tt.of, nil) })
				atLast(t, func() error { return b.Close(t.Context(), tt.of, before, nil) })
				at := map[backends.BracketKind]backends.BracketKind{backends.BracketReboot: backends.BracketMaintenance}[tt.open]
				want := backends.ValueOf("normal")
				if at == "" {
					at, want = tt.open, before
				}
				if v := stateOf(t, c.Brackets()[at], tt.of); v != want {
					t.Errorf("it ends as %s, want %s", v, want)
				}
				down, off := 0, 0
				for _, e := range l.World().Log.Events() {
					switch {
					case e.What == events.HostDown:
						down++
					case e.What == events.VMPower && e.Detail == "off":
						off++
					}
				}
				if tt.open == backends.BracketReboot && down != 1 || tt.open == backends.BracketVMPower && (down != 0 || off != 1) {
					t.Errorf("hosts went down %d times, VMs off %d times", down, off)
				}
			})
		}
	}
}

// atLast runs a step that may fail once, and runs it again as a resume would.
func atLast(t *testing.T, step func() error) {
	t.Helper()
	err := step()
	if err != nil {
		t.Logf("first: %v", err)
		err = step()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestNoHostEntersMaintenanceLater loses every wait for the task that evacuates a host: when the bracket has been left, the host is
// in service, and no task takes it out of service later.
func TestNoHostEntersMaintenanceLater(t *testing.T) {
	for range 20 { // on a busy machine the host may have entered it before anybody waits
		if slips(t) {
			return
		}
	}
	t.Error("nobody ever had to wait")
}

// slips reports whether the request for maintenance mode was sent when nobody could wait for it any more.
func slips(t *testing.T) bool {
	t.Helper()
	l, c := startLab(t, lab.Options{Hosts: 2, VMs: 1, Faults: []string{"method=WaitForUpdatesEx,do=fault:SystemError"}})
	host := backends.HostRef("esx-01")
	b := c.Brackets()[backends.BracketReboot]
	before := stateOf(t, b, host)
	if err := b.Open(t.Context(), host, nil); err == nil {
		return false
	}
	l.World().Faults.Clear()
	if err := b.(backends.Aborter).Abort(t.Context(), host, before, nil); err != nil {
		t.Fatal(err)
	}
	in := c.Brackets()[backends.BracketMaintenance]
	if v := stateOf(t, in, host); v != backends.ValueOf("normal") {
		t.Errorf("it is %s", v)
	}
	if calls := l.World().Log.Calls(); calls["EnterMaintenanceMode_Task"] != 1 {
		t.Errorf("it was told %d times", calls["EnterMaintenanceMode_Task"])
	}
	return true
}
