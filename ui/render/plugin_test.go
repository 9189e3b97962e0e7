package render_test

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"maps"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/perftest"
	"github.com/rdma-setup/rdma-setup/ui/render"
	"github.com/rdma-setup/rdma-setup/ui/theme"
	"github.com/rdma-setup/rdma-setup/wizard/report"
)

func TestPluginLine(t *testing.T) {
	shut := func(host string) checks.Finding {
		return finding("HOST-FW-PVRDMA-007", host, checks.Fail, "ruleset pvrdma is off | on", "")
	}
	fine := finding("HOST-CONN-001", "esx-01", checks.Pass, "the host is connected", "")
	down := finding("GST-VERBS-012", "vm-01", checks.Fail, "PORT_DOWN", "")
	hot := finding("HOST-POWER-009", "esx-01", checks.Warn, "power policy dynamic", "")
	quiet := checks.Finding{ID: "SW-PFC-001", Status: checks.Unknown, Quiet: true}
	for _, tt := range []struct {
		all  []checks.Finding
		want string
	}{
		{[]checks.Finding{fine, quiet},
			"RDMA OK - 1 passed, 0 warnings, 0 failed, 0 unknown, 1 not read; not read: BIOS, firmware, driver, switch, VM, guest, pair"},
		{[]checks.Finding{fine, hot}, "RDMA WARNING - HOST-POWER-009 esx-01: power policy dynamic"},
		{[]checks.Finding{down, hot, shut("esx-02")},
			"RDMA CRITICAL - HOST-FW-PVRDMA-007 esx-02: ruleset pvrdma is off / on (and 1 more failed)"},
		{[]checks.Finding{shut("esx-\x1b[2J02"), shut("esx-03"), shut("esx-04")},
			"RDMA CRITICAL - HOST-FW-PVRDMA-007 esx-?[2J02: ruleset pvrdma is off / on (and 2 more failed)"},
		{[]checks.Finding{finding("X-1", "a", checks.Fail, "not in the catalogue", "")}, "RDMA CRITICAL - X-1 a: not in the catalogue"},
	} {
		r := &report.Report{Command: report.Check, Checks: tt.all}
		if got := render.PluginLine(r, report.Decide(r)); got != tt.want {
			t.Errorf("got  %s\nwant %s", got, tt.want)
		}
	}
	r := &report.Report{Command: report.Check, Err: "vCenter | cannot\nbe reached"}
	if got := render.PluginLine(r, report.Decide(r)); got != "RDMA UNKNOWN - vCenter / cannot be reached" {
		t.Error(got)
	}
}

// Every format is a view of one verdict: its name, its exit code, and the state of each link.
func TestEveryFormatShowsTheVerdict(t *testing.T) {
	views := map[string]func(io.Writer, *report.Report) error{
		"nagios": render.Nagios, "json": render.JSON,
		"text": func(w io.Writer, r *report.Report) error { return render.Terminal(w, r, theme.Plain()) },
	}
	maps.Copy(views, formats)
	met := func(v perftest.Verdict, gbps float64) []perftest.Measurement {
		return []perftest.Measurement{{From: "vm-01", To: "vm-02", Test: "ib_send_bw", AchievedGbps: gbps, ExpectedGbps: 98, Verdict: v}}
	}
	fine := finding("HOST-CONN-001", "esx-01", checks.Pass, "the host is connected", "")
	for _, r := range []report.Report{
		{Command: report.Check, Checks: []checks.Finding{fine}},
		{Command: report.Bench, Measurements: met(perftest.VerdictPass, 97)},
		{Command: report.Apply, Run: "run", Status: "done",
			Checks: []checks.Finding{fine, finding("HOST-POWER-009", "esx-01", checks.Warn, "dynamic", "")}},
		{Command: report.Check, Checks: []checks.Finding{fine, finding("HOST-FW-PVRDMA-007", "esx-02", checks.Fail, "off", "")},
			Measurements: met(perftest.VerdictFail, 9)},
		{Command: report.Check, Unconfigured: true, Checks: []checks.Finding{finding("HOST-FW-PVRDMA-007", "esx-02", checks.Fail, "off", "")}},
		{Command: report.Apply, Run: "run", Status: "partial", Checks: []checks.Finding{fine}},
		{Command: report.Bench, Measurements: met(perftest.VerdictUnknown, 0)},
		{Command: report.Check, Err: "wrong password"},
	} {
		v := report.Decide(&r)
		shown := map[string]string{}
		for format, write := range views {
			var b bytes.Buffer
			if err := write(&b, &r); err != nil {
				t.Fatal(err)
			}
			shown[format] = b.String()
		}
		md := strings.ReplaceAll(v.Line(), "_", `\_`)
		for format, want := range map[string][]string{
			"html":   {v.Line()},
			"md":     {"- verdict: " + md},
			"junit":  {fmt.Sprintf(`name="verdict" value="%s"`, v.Name), fmt.Sprintf(`name="exit" value="%d"`, v.Exit)},
			"prom":   {fmt.Sprintf(`rdma_setup_status{vcenter="unknown"} %d`, v.Exit), fmt.Sprintf(`verdict="%s"`, v.Name)},
			"nagios": {"RDMA " + strings.ToUpper(v.Word()) + " - "},
			"json":   {fmt.Sprintf(`"verdict": "%s"`, v.Name), fmt.Sprintf(`"exit": %d`, v.Exit)},
			"text":   {v.Line()},
		} {
			got := shown[format]
			for _, w := range want {
				if !strings.Contains(got, w) {
					t.Errorf("%s, %s: no %q in\n%s", v.Name, format, w, got)
				}
			}
		}
		for _, l := range v.Chain {
			if got := shown["json"]; !strings.Contains(got, fmt.Sprintf("\"name\": %q,\n      \"status\": %q", l.Name, l.Worst)) {
				t.Errorf("%s: %s is not %s in\n%s", v.Name, l.Name, l.Worst, got)
			}
			if len(r.Checks)+len(r.Measurements) == 0 {
				continue
			}
			if got := shown["md"]; !strings.Contains(got, fmt.Sprintf("| %s | %s %s |", l.Name, mark(l.Worst),
				strings.ReplaceAll(string(l.Worst), "_", " "))) &&
				l.Worst != checks.Unknown {
				t.Errorf("%s: %s is not %s in\n%s", v.Name, l.Name, l.Worst, got)
			}
		}
	}
}

func mark(s checks.Status) string {
	return cmp.Or(map[checks.Status]string{checks.Pass: "✓", checks.Warn: "!", checks.Fail: "✗"}[s], "–")
}
