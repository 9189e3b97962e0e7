package report_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
	"github.com/rdma-setup/rdma-setup/wizard/report"
)

func step(target backends.Ref, kind backends.Kind, state, err, hint string) report.Outcome {
	return report.Outcome{Change: plan.Change{Setting: backends.Setting{Target: target, Kind: kind, Name: "x"}, To: backends.ValueOf(true)},
		State: state, Err: err, Hint: hint}
}

// Findings about a change that failed, or that waits for a failed one, are caused by its failure. Unrelated findings are causes of
// their own.
func TestCauses(t *testing.T) {
	esx, vm, guest := backends.HostRef("esx-1"), backends.VMRef("vm-1"), backends.GuestRef("vm-1")
	r := &report.Report{
		Changes: []report.Outcome{
			step(esx, backends.KindFirewall, "failed", "esx-1: permission denied", "grant it"),
			step(backends.HostRef("esx-2"), backends.KindFirewall, "failed", "esx-2: permission denied", "grant it"),
			step(vm, backends.KindAdapter, "blocked", "esx-1: enable failed", ""),
			step(guest, backends.KindPort, "blocked", "", ""),
		},
		Checks: []checks.Finding{
			{ID: "GST-PORT-010", Target: guest, Status: checks.Fail},
			{ID: "HOST-FW-PVRDMA-007", Target: esx, Status: checks.Fail},
			{ID: "VM-NIC-DVS-019", Target: vm, Status: checks.Fail},
			{ID: "GST-GID-019", Target: guest, Status: checks.Unknown, Evidence: "no device"},
			{ID: "HOST-NTP-004", Target: esx, Status: checks.Fail, Evidence: "no NTP server", Remedy: "Configure NTP."},
			{ID: "HOST-POWER-009", Target: esx, Status: checks.Warn},
		},
	}
	got := r.Causes()
	if len(got) != 2 {
		t.Fatalf("causes %+v", got)
	}
	if c := got[0]; len(c.Targets) != 2 || c.Err != "permission denied" || c.Remedy != "grant it" || c.NotTried != 2 ||
		len(c.Consequences) != 4 {
		t.Errorf("first cause %+v", c)
	}
	if want := "2 changes were not tried because of it; 3 checks fail as a consequence; 1 check warns or could not be evaluated for the " +
		"same reason"; got[0].Follow() != want {
		t.Errorf("%q", got[0].Follow())
	}
	if c := got[1]; c.Check != "HOST-NTP-004" || c.Remedy != "Configure NTP." || len(c.Consequences) != 0 {
		t.Errorf("second cause %+v", c)
	}
	r.Err, r.Hint = "vCenter does not answer", "Check the network."
	if c := r.Causes(); len(c) != 3 || c[1].Err != r.Err || c[1].Remedy != r.Hint {
		t.Errorf("with the error of the run: %+v", c)
	} else if b, err := json.Marshal(c); err != nil || strings.Contains(string(b), "null") {
		t.Errorf("a list is null: %v %s", err, b)
	}
	r.Status = report.RolledBack
	if c := r.Causes(); c != nil {
		t.Errorf("rolled back: %+v", c)
	}
}

// A host that does not come back is the one cause: of its VM that cannot be powered on, of the checks that say so, and of the end of
// the run, which could not plan for it.
func TestHostThatDoesNotComeBackIsOneCause(t *testing.T) {
	esx, vm := backends.HostRef("esx-1"), backends.VMRef("vm-1")
	r := &report.Report{
		Err: "esx-1: vCenter is not connected to it", ErrOn: []backends.Ref{esx},
		Failures: []report.Failure{{Target: vm, Step: "power on", Err: "vm-1: disconnected", On: esx},
			{Target: esx, Step: "reboot", Err: "esx-1: it has not come back"}},
		Changes: []report.Outcome{step(vm, backends.KindAdapter, "blocked", `vm-1: "power on" failed`, "")},
		Checks: []checks.Finding{{ID: "HOST-CONN-001", Target: esx, Status: checks.Fail}, {ID: "VM-POWER-001", Target: vm, Status: checks.Fail},
			{ID: "HOST-CONN-001", Target: backends.HostRef("esx-2"), Status: checks.Fail}},
	}
	got := r.Causes()
	if len(got) != 2 || got[0].Err != "it has not come back" || got[0].NotTried != 1 || len(got[0].Steps) != 1 || len(got[0].Consequences) != 2 {
		t.Errorf("%+v", got)
	}
}
