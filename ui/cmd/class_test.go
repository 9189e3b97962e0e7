package cmd_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends/lab"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/perftest"
)

// Mode sriov configures a lossless class by default, and the test runs in it. Guests on VFs do not see the counters of the
// port: the class is configured and not proven, which is no failure.
func TestSRIOVIsMeasuredInTheConfiguredClass(t *testing.T) {
	t.Parallel()
	b, file := sriovBench(t, lab.Options{Scenario: "sriov-ready", Hosts: 2, VMs: 2})
	out, errs := b.must(0, "apply", "-f", file, "--yes", "-o", "json")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	var res struct {
		Measurements []perftest.Measurement `json:"measurements"`
	}
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &res); err != nil {
		t.Fatal(err)
	}
	if len(res.Measurements) == 0 {
		t.Fatalf("nothing was measured\n%s", errs)
	}
	for _, m := range res.Measurements {
		if !strings.Contains(m.Command, " --tclass=106 ") || m.TrafficClass != 106 || m.ClassProven {
			t.Errorf("%s: traffic class %d, proven %t: %s", m.Test, m.TrafficClass, m.ClassProven, m.Command)
		}
		if lost, _, read := m.Lost(); !read || lost != 0 || m.Lossless == nil || m.Lossless.Verdict != perftest.VerdictUnknown {
			t.Errorf("%s: %d lost, read %t, %+v", m.Test, lost, read, m.Lossless)
		}
	}
	text, _ := b.must(0, "report")
	if !strings.Contains(text, "class configured, not proven") || !strings.Contains(text, "lossless not proven") {
		t.Errorf("the report does not tell the three verdicts apart:\n%s", text)
	}
	out, _ = b.must(0, "report", "-o", "json")
	var rep struct {
		Checks []checks.Finding `json:"checks"`
	}
	if err := json.Unmarshal([]byte(out), &rep); err != nil {
		t.Fatal(err)
	}
	answered := map[string]checks.Status{}
	for _, f := range rep.Checks {
		answered[f.ID] = f.Status
	}
	if answered["PAIR-LOSS-011"] != checks.Pass || answered["GST-CNT-026"] != checks.Pass {
		t.Errorf("PAIR-LOSS-011 %s, GST-CNT-026 %s", answered["PAIR-LOSS-011"], answered["GST-CNT-026"])
	}
}

// measure.link_gbps stands in the place of the port's speed, and measure.repeat runs each test so often.
func TestLinkSpeedAndRepetitionsOfTheAnswers(t *testing.T) {
	t.Parallel()
	b := newBench(t, lab.Options{Scenario: "done", Hosts: 2, VMs: 2})
	file := filepath.Join(b.lab.Dir(), "answers-pvrdma.yaml")
	text, err := os.ReadFile(file)
	if err == nil {
		err = os.WriteFile(file, append(regexp.MustCompile(`(?m)^measure:.*\n`).ReplaceAll(text, nil), "measure: {latency: false, repeat: 2, link_gbps: 50.5}\n"...), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	out, _ := b.must(0, "bench", "-f", file, "--pairs", "vm-01:vm-02", "-o", "json")
	var rep struct {
		Measurements []perftest.Measurement `json:"measurements"`
	}
	if err := json.Unmarshal([]byte(out), &rep); err != nil || len(rep.Measurements) != 1 {
		t.Fatalf("%v: %d measurements", err, len(rep.Measurements))
	}
	if m := rep.Measurements[0]; m.LinkGbps != 50.5 || m.Repeats != 2 || m.Verdict != perftest.VerdictWarn || !strings.Contains(m.Hint, "contradicts what is reported") {
		t.Errorf("link %g, %d repetitions, %s: %s", m.LinkGbps, m.Repeats, m.Verdict, m.Hint)
	}
}
