package render_test

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/wizard/report"
)

var (
	metricHead  = regexp.MustCompile(`^# (HELP|TYPE) ([a-zA-Z_:][a-zA-Z0-9_:]*) (.+)$`)
	metricValue = regexp.MustCompile(`^([a-zA-Z_:][a-zA-Z0-9_:]*)(\{.*\})? (\S+)$`)
	metricLabel = regexp.MustCompile(`^([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(,|$)`)
)

// exposition parses the text format of Prometheus as strictly as its specification and node_exporter require:
// HELP and TYPE once and before the samples, the samples of a metric together, no duplicates, no timestamps.
func exposition(doc string) (map[string]float64, error) {
	if !strings.HasSuffix(doc, "\n") {
		return nil, errors.New("the last line has no end")
	}
	samples, done := map[string]float64{}, map[string]bool{}
	name, heads := "", 0
	for _, line := range strings.Split(strings.TrimSuffix(doc, "\n"), "\n") {
		if h := metricHead.FindStringSubmatch(line); h != nil {
			if h[2] != name {
				if done[h[2]] {
					return nil, fmt.Errorf("%s comes back", h[2])
				}
				name, heads, done[h[2]] = h[2], 0, true
			}
			if heads++; heads > 2 || h[1] == "TYPE" && h[3] != "gauge" {
				return nil, fmt.Errorf("line %q", line)
			}
			continue
		}
		s := metricValue.FindStringSubmatch(line)
		if s == nil || s[1] != name || heads != 2 {
			return nil, fmt.Errorf("line %q", line)
		}
		if err := labels(s[2]); err != nil {
			return nil, err
		}
		v, err := strconv.ParseFloat(s[3], 64)
		if _, twice := samples[s[1]+s[2]]; err != nil || twice {
			return nil, fmt.Errorf("value or double in %q", line)
		}
		samples[s[1]+s[2]] = v
	}
	return samples, nil
}

func labels(set string) error {
	seen := map[string]bool{}
	rest := strings.TrimSuffix(strings.TrimPrefix(set, "{"), "}")
	for rest != "" {
		m := metricLabel.FindStringSubmatch(rest)
		if m == nil || seen[m[1]] {
			return fmt.Errorf("labels %s", set)
		}
		seen[m[1]] = true
		rest = rest[len(m[0]):]
	}
	return nil
}

func TestPrometheusValidatorSees(t *testing.T) {
	for _, bad := range []string{
		"", "x 1\n", "# HELP x y\n# TYPE x gauge\nx 1", "# HELP x y\n# TYPE x gauge\nx{a=\"b} 1\n", "# HELP x y\n# TYPE x gauge\nx 1\nx 2\n",
		"# HELP x y\n# TYPE x gauge\nx 1 2\n",
		"# HELP x y\n# TYPE x gauge\nx{a=\"\\q\"} 1\n", "# HELP x y\n# TYPE x gauge\nx{a=\"1\",a=\"2\"} 1\n", "# HELP x y\nx 1\n",
		"# HELP x y\n# TYPE x gauge\ny 1\n", "# HELP x y\n# TYPE x gauge\nx one\n",
	} {
		if _, err := exposition(bad); err == nil {
			t.Errorf("passes: %q", bad)
		}
	}
}

func TestPrometheusSamples(t *testing.T) {
	r := everything()
	r.Checks = append(r.Checks, r.Checks[0], finding("HOST-FW-PVRDMA-007", `a "b" \c`, checks.Fail, "", ""))
	r.Ports = []checks.Uplink{{Host: "esx-01", Device: "vmnic2", PortStats: backends.PortStats{Pause: 10, Over: 2 * time.Second}}}
	r.Run = "" // of a check
	got, err := exposition(rendered(t, "prom", r))
	if err != nil {
		t.Fatal(err)
	}
	for sample, want := range map[string]float64{
		`rdma_setup_status{VC}`: 2,
		`rdma_setup_check_status{VC,id="HOST-FW-PVRDMA-007",scope="",target="host/esx-02"}`:                                                2,
		`rdma_setup_check_status{VC,id="HOST-FW-PVRDMA-007",scope="",target="host/a \"b\" \\c"}`:                                           2,
		`rdma_setup_check_findings{VC,id="HOST-FW-PVRDMA-007",status="fail"}`:                                                              2,
		`rdma_setup_checks{VC,status="warn"}`:                                                                                              1,
		`rdma_setup_first_broken{VC,id="HOST-FW-PVRDMA-007",scope="",target="host/esx-02"}`:                                                2,
		`rdma_setup_last_run_timestamp_seconds{VC}`:                                                                                        float64(r.Made.Unix()),
		`rdma_setup_bandwidth_bytes_per_second{VC,test="ib_send_bw",from="vm-02",to="vm-01",from_host="esx-02",to_host="esx-01"}`:          21.4e9 / 8,
		`rdma_setup_bandwidth_expected_bytes_per_second{VC,test="ib_send_bw",from="vm-01",to="vm-02",from_host="esx-01",to_host="esx-02"}`: 98e9 / 8,
		`rdma_setup_latency_seconds{VC,test="ib_send_lat",from="vm-02",to="vm-01",from_host="esx-02",to_host="esx-01"}`:                    31.5e-6,
		`rdma_setup_port_pause_frames_per_second{VC,host="esx-01",pnic="vmnic2"}`:                                                          5,
		`rdma_setup_info{VC,version="1.0.0",mode="pvrdma",simulated="true"}`:                                                               1,
	} {
		sample = strings.Replace(sample, "VC", `vcenter="https://vcenter.example/sdk"`, 1)
		if v, ok := got[sample]; !ok || v != want {
			t.Errorf("%s is %g (%v), want %g", sample, v, ok, want)
		}
	}
	for sample := range got {
		if !strings.Contains(sample, `{vcenter="`) || strings.HasPrefix(sample, "rdma_setup_check_status") &&
			(strings.Contains(sample, "CL-VER-002") || strings.Contains(sample, "SW-PFC-001")) {
			t.Errorf("%s: without a vCenter, or a series for what passes or waits", sample)
		}
	}
	if t.Failed() {
		t.Log(rendered(t, "prom", r))
	}
}

// The status is one of the four of monitoring plug-ins, also if the check was stopped and its exit code is 130.
func TestPrometheusOfAStoppedCheck(t *testing.T) {
	got, err := exposition(rendered(t, "prom", &report.Report{Command: report.Check, Err: "interrupted", ErrExit: 130}))
	if v, ok := got[`rdma_setup_status{vcenter="unknown"}`]; err != nil || !ok || v != 3 {
		t.Errorf("status %g, %v", v, err)
	}
}

func TestPrometheusOfNothing(t *testing.T) {
	got, err := exposition(rendered(t, "prom", base()))
	if err != nil || got[`rdma_setup_checks{vcenter="https://vcenter.example/sdk",status="pass"}`] != 0 {
		t.Errorf("%v, %v", got, err)
	}
	for s := range got {
		if strings.HasPrefix(s, "rdma_setup_check_status") {
			t.Errorf("a status of nothing: %s", s)
		}
	}
}
