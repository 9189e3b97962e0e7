package cmd_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends/lab"
	"github.com/rdma-setup/rdma-setup/backends/testclass"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/perftest"
)

// Mode sriov configures a lossless class by default, and the test runs in it. Guests on VFs cannot read the counters of the port:
// the class is configured but not proven, which is not a failure.
func TestSRIOVIsMeasuredInTheConfiguredClass(t *testing.T) {
	testclass.Full(t)
	t.Parallel()
	b, file := sriovBench(t, lab.Options{Scenario: "sriov-ready", Hosts: 2, VMs: 2})
	out, errs := b.must(0, "apply", "-f", file, "--yes", "-o", "json")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	var res struct {
		Measurements []perftest.Measurement `json:"measurements"`
	}
	testclass.OK(t, json.Unmarshal([]byte(lines[len(lines)-1]), &res))
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
	testclass.OK(t, json.Unmarshal([]byte(out), &rep))
	answered := map[string]checks.Status{}
	for _, f := range rep.Checks {
		answered[f.ID] = f.Status
	}
	if answered["PAIR-LOSS-011"] != checks.Pass || answered["GST-CNT-026"] != checks.Pass {
		t.Errorf("PAIR-LOSS-011 %s, GST-CNT-026 %s", answered["PAIR-LOSS-011"], answered["GST-CNT-026"])
	}
}

// measure.link_gbps replaces the speed of the port, and measure.repeat sets how often each test runs.
func TestLinkSpeedAndRepetitionsOfTheAnswers(t *testing.T) {
	t.Parallel()
	b := newBench(t, lab.Options{Scenario: "done", Hosts: 2, VMs: 2})
	file := filepath.Join(b.lab.Dir(), "answers-pvrdma.yaml")
	text, err := os.ReadFile(file)
	if err == nil {
		err = os.WriteFile(file, append(regexp.MustCompile(`(?m)^measure:.*\n`).ReplaceAll(text, nil),
			"measure: {latency: false, repeat: 2, link_gbps: 50.5}\n"...), 0o600)
	}
	testclass.OK(t, err)
	out, _ := b.must(0, "bench", "-f", file, "--pairs", "vm-01:vm-02", "-o", "json")
	var rep struct {
		Measurements []perftest.Measurement `json:"measurements"`
	}
	if err := json.Unmarshal([]byte(out), &rep); err != nil || len(rep.Measurements) != 1 {
		t.Fatalf("%v: %d measurements", err, len(rep.Measurements))
	}
	if m := rep.Measurements[0]; m.LinkGbps != 50.5 || m.Repeats != 2 || m.Verdict != perftest.VerdictUnknown ||
		!strings.Contains(m.Hint, "more than a link of 50.5 Gb/s") {
		t.Errorf("link %g, %d repetitions, %s: %s", m.LinkGbps, m.Repeats, m.Verdict, m.Hint)
	}
}

// One pair is enough to find a switch that does not trust DSCP: the port of the receiving host counts another priority.
func TestSwitchThatTrustsNoDSCP(t *testing.T) {
	testclass.Full(t)
	t.Parallel()
	b, file := sriovBench(t, lab.Options{Scenario: "broken-dscp-trust", Hosts: 3, VMs: 3})
	_, errs := b.must(1, "apply", "-f", file, "--yes", "-o", "json")
	out, _ := b.must(0, "report", "-o", "json")
	var rep struct {
		Measurements []perftest.Measurement `json:"measurements"`
	}
	testclass.OK(t, json.Unmarshal([]byte(out), &rep))
	disproven := 0
	for _, m := range rep.Measurements {
		if m.Class != nil && m.Class.Verdict == perftest.VerdictFail && strings.Contains(m.Class.Hint, "trust DSCP") &&
			strings.Contains(m.Class.Evidence, "received in priority 0") {
			disproven++
		}
	}
	if disproven == 0 {
		t.Errorf("the class is not disproven\n%s\n%s", out, errs)
	}
	for _, m := range b.incast(file, 1) {
		if m.Verdict != perftest.VerdictFail || m.Lossless.Verdict != perftest.VerdictFail ||
			!strings.Contains(m.Hint, "set every port of the path to trust DSCP") {
			t.Errorf("%s -> %s under load: %s, lossless %s: %s", m.From, m.To, m.Verdict, m.Lossless.Verdict, m.Hint)
		}
	}
}

// incast has two VMs at a time send to the third, and returns what bench printed.
func (b *bench) incast(file string, code int) []perftest.Measurement {
	t := b.t
	t.Helper()
	out, errs := b.must(code, "bench", "-f", file, "--pairs", "none", "--load", "incast", "-o", "json")
	if !strings.Contains(errs, "incast: 3 rounds with up to 2 senders at once: about ") ||
		!strings.Contains(errs, "GB, at most 100 Gb/s; if nothing is congested, one more round (9 s, 75 GB)") {
		t.Errorf("the cost is not told first:\n%s", errs)
	}
	if !strings.Contains(errs, "loading 1/3  incast of 2 senders to vm-01: about 27 s left\n") ||
		!strings.Contains(errs, "\nloaded 3/3  incast of 2 senders to vm-03: ") {
		t.Errorf("the rounds are not told as they go:\n%s", errs)
	}
	var rep struct {
		Measurements []perftest.Measurement `json:"measurements"`
	}
	testclass.OK(t, json.Unmarshal([]byte(out), &rep))
	if len(rep.Measurements) != 6 {
		t.Fatalf("%d flows\n%s", len(rep.Measurements), errs)
	}
	for _, m := range rep.Measurements {
		if m.Load != "incast" || m.Senders != 2 || !strings.Contains(m.Command, "--tclass=106") || m.Counters == nil {
			t.Fatalf("%+v", m)
		}
	}
	return rep.Measurements
}

// If a port does not pause the lossless priority, each pair passes alone but fails under incast: the result names the pairs that
// send through it, and the side of the cable.
func TestPortWithoutPFCFailsUnderIncastAlone(t *testing.T) {
	testclass.Full(t)
	t.Parallel()
	b, file := sriovBench(t, lab.Options{Scenario: "broken-pfc-priority", Hosts: 3, VMs: 3})
	b.must(0, "apply", "-f", file, "--yes")
	for _, m := range b.incast(file, 1) {
		bad := m.FromHost == "esx-03"
		switch {
		case bad && (m.Verdict != perftest.VerdictFail || m.Lossless.Verdict != perftest.VerdictFail ||
			!strings.Contains(m.Hint, "vm-03 -> "+m.To+" lost packets (packet_seq_err +") ||
			!strings.Contains(m.Hint, "at the switch port of esx-03 vmnic2: the host has it for priority 3")):
			t.Errorf("%s -> %s: %s %s", m.From, m.To, m.Verdict, m.Hint)
		case !bad && (m.Verdict == perftest.VerdictFail || m.Lossless.Verdict != perftest.VerdictPass):
			t.Errorf("%s -> %s: %s %s, %+v", m.From, m.To, m.Verdict, m.Hint, m.Lossless)
		}
	}
}

// A card that sends too few messages per second fails because of the shape of its curve, even if its best row is good.
func TestSlowSmallMessagesFail(t *testing.T) {
	testclass.Full(t)
	t.Parallel()
	b, file := sriovBench(t, lab.Options{Scenario: "slow-small", Hosts: 2, VMs: 2})
	b.must(0, "apply", "-f", file, "--yes", "--measure=false")
	out, _ := b.must(1, "bench", "-f", file, "-o", "json")
	var rep struct {
		Measurements []perftest.Measurement `json:"measurements"`
	}
	testclass.OK(t, json.Unmarshal([]byte(out), &rep))
	slow := 0
	for _, m := range rep.Measurements {
		if m.Test != perftest.SendBandwidth {
			continue
		}
		slow++
		if m.Verdict == perftest.VerdictPass || !strings.Contains(m.Hint, "message rate") {
			t.Errorf("%s -> %s: %s %s", m.From, m.To, m.Verdict, m.Hint)
		}
	}
	if slow != 2 {
		t.Errorf("%d bandwidths were measured", slow)
	}
}

// A load finds each problem of the physical network and names its cause.
func TestLoadNamesTheCause(t *testing.T) {
	testclass.Full(t)
	t.Parallel()
	for _, tc := range []struct {
		scenario string
		code     int
		verdict  perftest.Verdict
		lossless perftest.Verdict
		says     string
	}{
		{"broken-pfc-switch", 1, "fail", "fail", "PFC is not active at the switch port of"},
		{"broken-ecn", 0, "warn", "pass", "ECN is configured but not active"},
	} {
		t.Run(tc.scenario, func(t *testing.T) {
			b, file := sriovBench(t, lab.Options{Scenario: tc.scenario, Hosts: 3, VMs: 3})
			b.must(0, "apply", "-f", file, "--yes", "--measure=false")
			for _, m := range b.incast(file, tc.code) {
				if m.Verdict != tc.verdict || m.Lossless.Verdict != tc.lossless || !strings.Contains(m.Hint, tc.says) {
					t.Errorf("%s -> %s: %s, lossless %s: %s", m.From, m.To, m.Verdict, m.Lossless.Verdict, m.Hint)
				}
			}
		})
	}
}

// The measurement of one pair names its cause: a hop that passes only small frames is not reported as different program versions,
// and a narrow slot is named by its bandwidth, with the latency of large messages as a consequence. Tests that are not listed pass.
func TestPairNamesTheCause(t *testing.T) {
	testclass.Full(t)
	t.Parallel()
	for scenario, says := range map[string]map[string]string{
		"slow-large": {perftest.SendBandwidth: "bandwidth drops from 128 KiB on: 48."},
		"broken-mtu-hop": {perftest.SendLatency: "",
			perftest.SendBandwidth: "messages of more than 1024 bytes are lost, and pings of more than 1472 bytes too: a hop between esx-0"},
		"pcie-x4": {perftest.SendBandwidth: "no packet was lost: check for a narrow PCIe slot in either host (28.",
			perftest.SendLatency: "see ib_send_bw"},
	} {
		t.Run(scenario, func(t *testing.T) {
			b, file := sriovBench(t, lab.Options{Scenario: scenario, Hosts: 2, VMs: 2})
			b.must(0, "apply", "-f", file, "--yes", "--measure=false")
			out, _ := b.must(1, "bench", "-f", file, "-o", "json")
			var rep struct {
				Measurements []perftest.Measurement `json:"measurements"`
			}
			if err := json.Unmarshal([]byte(out), &rep); err != nil || len(rep.Measurements) != 4 {
				t.Fatalf("%v: %d measurements", err, len(rep.Measurements))
			}
			for _, m := range rep.Measurements {
				verdict, want := perftest.VerdictPass, ""
				if hint, named := says[m.Test]; named {
					verdict, want = perftest.VerdictFail, hint
				}
				if m.Verdict != verdict || !strings.Contains(m.Hint, want) || strings.Contains(m.Error, "version") {
					t.Errorf("%s %s -> %s: %s %q, hint %q", m.Test, m.From, m.To, m.Verdict, m.Error, m.Hint)
				}
			}
		})
	}
}

// Pairs of two leaf switches pass with the additional latency of the switches between them, which their expected value includes and
// names; the leaf switches are identified by LLDP.
func TestSwitchesBetweenLeavesAreExpected(t *testing.T) {
	testclass.Full(t)
	t.Parallel()
	b, file := sriovBench(t, lab.Options{Scenario: "leaf-spine", Hosts: 4, VMs: 4})
	b.must(0, "apply", "-f", file, "--yes", "--measure=false")
	out, _ := b.must(0, "bench", "-f", file, "-o", "json")
	var rep struct {
		Measurements []perftest.Measurement `json:"measurements"`
	}
	testclass.OK(t, json.Unmarshal([]byte(out), &rep))
	across := 0
	for _, m := range rep.Measurements {
		if m.Test != perftest.SendLatency {
			continue
		}
		odd := func(host string) bool { return host == "esx-01" || host == "esx-03" }
		us, why := 3.0, ""
		if odd(m.FromHost) != odd(m.ToHost) {
			across++
			us, why = 5, "1 us more for each of 2 further switches"
		}
		if m.ExpectedUs != us || !strings.Contains(m.Why, why) || strings.Contains(m.Why, "switches") != (why != "") {
			t.Errorf("%s -> %s: up to %g us: %s", m.FromHost, m.ToHost, m.ExpectedUs, m.Why)
		}
	}
	if across != 2 || len(rep.Measurements) != 8 {
		t.Errorf("%d pairs of two leaves in %d measurements", across, len(rep.Measurements))
	}
}
