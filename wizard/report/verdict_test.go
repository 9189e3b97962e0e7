package report_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/perftest"
	"github.com/rdma-setup/rdma-setup/wizard/report"
)

// Every row of the table of verdicts, with its exit codes.
func TestDecide(t *testing.T) {
	row := func(s checks.Status, quiet bool) report.Report {
		return report.Report{Checks: []checks.Finding{{ID: "HOST-CONN-001", Status: checks.Pass},
			{ID: "HOST-POWER-009", Status: s, Quiet: quiet}}}
	}
	met := func(v perftest.Verdict, gbps float64, err string) report.Report {
		r := row(checks.Pass, false)
		r.Measurements = []perftest.Measurement{{Test: "ib_send_bw", AchievedGbps: gbps, Error: err, Verdict: v}}
		return r
	}
	run := func(status, err string, exit int) report.Report {
		r := row(checks.Pass, false)
		r.Run, r.Status, r.Err, r.ErrExit = "run", status, err, exit
		return r
	}
	const none = -1
	untouched := row(checks.Fail, false)
	untouched.Unconfigured = true
	unread := met(perftest.VerdictPass, 97, "")
	unread.Checks[1].Status = checks.Unknown
	brokeOff := met(perftest.VerdictPass, 97, "")
	brokeOff.Err, brokeOff.ErrExit = "vCenter is gone", 4
	for name, tt := range map[string]struct {
		r                   report.Report
		want                report.Name
		apply, bench, check int
	}{
		"measured as expected":                 {met(perftest.VerdictPass, 97, ""), report.Works, 0, 0, 0},
		"not measured here":                    {row(checks.Pass, false), report.SetUp, 0, none, 0},
		"waits for the operator":               {row(checks.Unknown, true), report.SetUp, 0, none, 0},
		"an unverified row warns":              {row(checks.Warn, true), report.SetUp, 0, none, 0},
		"a warning":                            {row(checks.Warn, false), report.WithWarnings, 0, 0, 1},
		"should have been read and was not":    {row(checks.Unknown, false), report.NotMeasured, 1, 1, 1},
		"not read beside a good measurement":   {unread, report.WithWarnings, 0, 0, 1},
		"a doubtful measurement":               {met(perftest.VerdictWarn, 80, ""), report.WithWarnings, 0, 0, 1},
		"nothing is configured":                {untouched, report.NotSetUp, none, 3, 1},
		"a row failed":                         {row(checks.Fail, false), report.Broken, 1, 1, 2},
		"below the expectation":                {met(perftest.VerdictFail, 9, ""), report.Broken, 1, 1, 2},
		"a measurement without a result":       {met(perftest.VerdictUnknown, 0, "perftest is missing"), report.NotMeasured, 1, 1, 1},
		"a measurement that could not connect": {met(perftest.VerdictFail, 0, "cannot connect"), report.NotMeasured, 1, 1, 1},
		"some targets failed":                  {run("partial", "", 0), report.PartlyApplied, 5, none, none},
		"interrupted":                          {run("interrupted", "", 0), report.PartlyApplied, 130, none, none},
		"nothing was achieved":                 {run("failed", "vCenter is gone", 4), report.NotApplied, 4, none, none},
		"refused":                              {report.Report{Err: "no pNIC", ErrExit: 3}, report.NotApplied, 3, none, none},
		"no log-in":                            {report.Report{Err: "wrong password", ErrExit: 4}, report.Unknown, 4, 4, 3},
		"nothing was asked":                    {report.Report{}, report.Unknown, 4, 4, 3},
		"good until it broke off":              {brokeOff, report.NotMeasured, none, 4, none},
	} {
		for command, exit := range map[report.Command]int{report.Apply: tt.apply, report.Bench: tt.bench, report.Check: tt.check} {
			if exit == none {
				continue
			}
			r := tt.r
			r.Command = command
			v := report.Decide(&r)
			if v.Name != tt.want || v.Exit != exit || v.Summary == "" ||
				(v.Cause == "") == (v.Mark() != checks.Pass && v.Name != report.NotSetUp && name != "nothing was asked") &&
					tt.r.Status == "" {
				t.Errorf("%s of %s: %s, exit %d, %q, cause %q", name, command, v.Name, v.Exit, v.Summary, v.Cause)
			}
		}
	}
}

// The chain determines what comes first, not the order in which the checks ran.
func TestVerdictNamesTheFirstBrokenLink(t *testing.T) {
	fail := func(id, target string) checks.Finding {
		return checks.Finding{ID: id, Target: backends.HostRef(target), Status: checks.Fail, Evidence: "seen"}
	}
	for _, tt := range []struct {
		all  []checks.Finding
		want string
	}{
		{[]checks.Finding{fail("GST-OS-001", "vm-01"), fail("HOST-FW-PVRDMA-007", "esx-02")},
			"First broken link: HOST-FW-PVRDMA-007 on esx-02: seen"},
		{[]checks.Finding{{ID: "HOST-POWER-009", Status: checks.Warn}, fail("X-001", "esx-01"), fail("X-002", "esx-02")},
			"First broken link: X-001 on esx-01: seen"},
	} {
		if v := report.Decide(&report.Report{Checks: tt.all}); v.Summary != tt.want || v.Name != report.Broken {
			t.Errorf("got %q (%s), want %q", v.Summary, v.Name, tt.want)
		}
	}
}

// A measurement without a result is not called slow.
func TestVerdictOfMeasurementsWithoutAResult(t *testing.T) {
	slow := perftest.Measurement{Test: "ib_send_bw", AchievedGbps: 9, Verdict: perftest.VerdictFail}
	none := perftest.Measurement{Test: "ib_send_lat", Error: "no RDMA device with an active port in vm-01", Verdict: perftest.VerdictFail}
	for want, all := range map[string][]perftest.Measurement{
		"RDMA does not work as it should: 1 of 2 measurements below what the hardware can do, 1 without a result": {slow, none},
		"Not measured: 1 of 1 measurement without a result":                                                       {none},
	} {
		if got := report.Decide(&report.Report{Measurements: all}).Summary; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// A test between rails proves nothing about line rate.
func TestVerdictOfRails(t *testing.T) {
	for verdict, want := range map[perftest.Verdict]string{
		perftest.VerdictPass: "RDMA works: 1 bandwidth measurement at expected line rate",
		perftest.VerdictFail: "Rails are not connected as they should be: 1 cross_rail test failed",
	} {
		r := &report.Report{Measurements: []perftest.Measurement{{Test: "ib_send_bw", AchievedGbps: 97, Verdict: perftest.VerdictPass},
			{Test: perftest.CrossRail, Verdict: verdict}}}
		if got := report.Decide(r).Summary; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// Ports of one card with an unknown PCIe width are measured together without a verdict: that is neither a warning nor a pass.
func TestVerdictOfAllRailsAtOnce(t *testing.T) {
	alone := perftest.Measurement{Test: "ib_send_bw", RailFrom: "rail-1", RailTo: "rail-1", Verdict: perftest.VerdictPass}
	for _, c := range []struct {
		verdict perftest.Verdict
		err     string
		want    string
	}{
		{perftest.VerdictUnknown, "", "RDMA works: 1 bandwidth measurement at expected line rate; all rails at once measured, not judged"},
		{perftest.VerdictUnknown, "the guest was lost",
			"RDMA works: 1 bandwidth measurement at expected line rate; not measured: 1 of 2 measurements without a result"},
		{perftest.VerdictWarn, "", "RDMA works, with warnings for 1 measurement"},
		{perftest.VerdictPass, "", "RDMA works: 2 bandwidth measurements at expected line rate"},
	} {
		r := &report.Report{Measurements: []perftest.Measurement{alone,
			{Test: "ib_send_bw " + perftest.LoadRails, Load: perftest.LoadRails, Verdict: c.verdict, Error: c.err}}}
		if got := report.Decide(r).Summary; got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

// JSON has the matrix of rails that the other formats show: a row for each rail, and a cell for each rail that it reached or not.
func TestRailMatrixInJSON(t *testing.T) {
	m := func(from, to, test string, v perftest.Verdict) perftest.Measurement {
		return perftest.Measurement{From: "a", To: "b", RailFrom: from, RailTo: to, Test: test, Verdict: v}
	}
	r := report.Report{Measurements: []perftest.Measurement{m("rail-1", "rail-1", "ib_send_bw", perftest.VerdictPass),
		m("rail-2", "rail-2", "ib_send_bw", perftest.VerdictFail), m("rail-1", "rail-2", perftest.CrossRail, perftest.VerdictPass)}}
	text, err := json.Marshal(r)
	want := `"rail_matrix":{"rails":["rail-1","rail-2"],"rows":[[` +
		`{"from":"rail-1","to":"rail-1","verdict":"pass","text":"1 of 1 pairs as expected"},` +
		`{"from":"rail-1","to":"rail-2","verdict":"pass","text":"0 reached, 0 not, 1 not tested; "}],` +
		`[{"from":"rail-2","to":"rail-1","verdict":"unknown","text":"not tested"},` +
		`{"from":"rail-2","to":"rail-2","verdict":"fail","text":"0 of 1 pairs as expected"}]]}`
	if err != nil || !strings.Contains(string(text), want) {
		t.Errorf("%v\n%s", err, text)
	}
	r.Measurements = r.Measurements[:1]
	if text, _ := json.Marshal(r); strings.Contains(string(text), "rail_matrix") {
		t.Error(string(text))
	}
}

// A load at line rate that lost packets of the class works, but is not lossless: the report has both verdicts. Below line rate it
// does not work.
func TestVerdictsStandSideBySide(t *testing.T) {
	lossy := &perftest.Proof{Verdict: perftest.VerdictFail, Evidence: "packets were lost"}
	for gbps, want := range map[float64]string{
		48: "RDMA works, with warnings for 1 measurement; class proven; lossless disproven: packets were lost",
		20: "RDMA does not work as it should: 1 of 1 measurement below what the hardware can do; class proven; lossless disproven: " +
			"packets were lost",
	} {
		r := report.Report{Status: "done",
			Measurements: []perftest.Measurement{{Test: "ib_write_bw incast", Load: perftest.LoadIncast, AchievedGbps: gbps, ExpectedGbps: 49,
				Verdict: perftest.VerdictFail, Class: &perftest.Proof{Verdict: perftest.VerdictPass}, Lossless: lossy}}}
		if v := report.Decide(&r); v.Summary != want || v.Name != report.Broken {
			t.Errorf("%s: %q", v.Name, v.Summary)
		}
	}
}
