package report_test

import (
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/perftest"
	"github.com/rdma-setup/rdma-setup/wizard/report"
)

// The chain decides what comes first, not the order in which the checks were asked.
func TestVerdictNamesTheFirstBrokenLink(t *testing.T) {
	fail := func(id, target string) checks.Finding {
		return checks.Finding{ID: id, Target: backends.HostRef(target), Status: checks.Fail, Evidence: "seen"}
	}
	for _, tt := range []struct {
		all  []checks.Finding
		want string
	}{
		{[]checks.Finding{fail("GST-OS-001", "vm-01"), fail("HOST-FW-PVRDMA-007", "esx-02")}, "First broken link: HOST-FW-PVRDMA-007 on esx-02: seen"},
		{[]checks.Finding{{ID: "HOST-POWER-009", Status: checks.Warn}, fail("X-001", "esx-01"), fail("X-002", "esx-02")}, "First broken link: X-001 on esx-01: seen"},
	} {
		if got, status := (&report.Report{Checks: tt.all}).Verdict(); got != tt.want || status != checks.Fail {
			t.Errorf("got %q (%s), want %q", got, status, tt.want)
		}
	}
}

// A test between rails tells nothing of line rate.
func TestVerdictOfRails(t *testing.T) {
	for verdict, want := range map[perftest.Verdict]string{
		perftest.VerdictPass: "RDMA works: 1 measurement at expected line rate",
		perftest.VerdictFail: "Rails are not connected as they should be: 1 cross_rail test failed",
	} {
		r := &report.Report{Measurements: []perftest.Measurement{{Test: "ib_send_bw", Verdict: perftest.VerdictPass}, {Test: perftest.CrossRail, Verdict: verdict}}}
		if got, _ := r.Verdict(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
