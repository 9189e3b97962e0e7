package cmd_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rdma-setup/rdma-setup/backends/lab"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
	"github.com/rdma-setup/rdma-setup/backends/testclass"
)

// TestWindowTooShortForTheSecondWave: the run begins at 03:00, the first host is back at 04:30, and run.window.until is 05:00. The
// second host stays in service, the run lists the remaining work, and a resume in the next night finishes it.
func TestWindowTooShortForTheSecondWave(t *testing.T) {
	testclass.Full(t)
	t.Parallel()
	b, file := sriovBench(t, lab.Options{Scenario: "sriov-half", Hosts: 2, VMs: 2})
	file = edited(t, file, "vfs: 8", "vfs: 8\nmeasure: {bandwidth: false, latency: false}\nrun: {window: {until: \"05:00\"}}")
	begin := time.Date(2026, 11, 23, 3, 0, 0, 0, time.FixedZone("CET", 3600))
	b.now = func() time.Time {
		if b.lab.World().Log.Calls()["ExitMaintenanceMode_Task"] > 0 {
			return begin.Add(90 * time.Minute)
		}
		return begin
	}
	_, said := b.must(5, "apply", "-f", file, "--yes")
	for _, want := range []string{"by 2026-11-23 05:00 CET (run.window.until)", "not started: esx-02", "rdma-setup resume "} {
		if !strings.Contains(said, want) {
			t.Errorf("it does not say %q:\n%s", want, said)
		}
	}
	b.wentDown("esx-01")
	b.now = func() time.Time { return begin.Add(20 * time.Hour) }
	b.must(0, "resume", "--yes")
	b.wentDown("esx-01", "esx-02")
}

// wentDown checks which hosts have been in maintenance mode, in order, and that all are back with their VMs on.
func (b *bench) wentDown(hosts ...string) {
	b.t.Helper()
	var were []string
	for _, e := range b.lab.World().Log.Events() {
		if e.What == world.HostMaintenance && e.Detail == "true" {
			were = append(were, e.Host)
		}
	}
	if strings.Join(were, " ") != strings.Join(hosts, " ") {
		b.t.Errorf("hosts %v were in maintenance mode, want %v", were, hosts)
	}
	b.lab.World().View(func(s *world.State) {
		for _, h := range s.Hosts {
			if h.Maintenance {
				b.t.Errorf("%s is still in maintenance mode", h.Name)
			}
		}
		for _, v := range s.VMs {
			if !v.On {
				b.t.Errorf("%s is off", v.Name)
			}
		}
	})
}

// TestLateConsentDoesNotMoveTheWindow: the window of a plan ends before the run begins, while its backups are made. No host goes
// out of service: the run does not assume the window of the next day.
func TestLateConsentDoesNotMoveTheWindow(t *testing.T) {
	t.Parallel()
	b, file := sriovBench(t, lab.Options{Scenario: "sriov-half", Hosts: 1, VMs: 1})
	file = edited(t, file, "vfs: 8", "vfs: 8\nmeasure: {bandwidth: false, latency: false}\nrun: {window: {until: \"05:00\"}}")
	begin := time.Date(2026, 11, 23, 3, 0, 0, 0, time.UTC)
	b.now = func() time.Time {
		if made, _ := filepath.Glob(filepath.Join(b.env["XDG_STATE_HOME"], "rdma-setup", "runs", "*", "backup", "vms.json")); len(made) > 0 {
			return begin.Add(121 * time.Minute)
		}
		return begin
	}
	if _, said := b.must(5, "apply", "-f", file, "--yes"); !strings.Contains(said, "not started: esx-01") {
		t.Errorf("it does not say what is left:\n%s", said)
	}
	b.wentDown()
}
