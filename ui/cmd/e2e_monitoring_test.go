//go:build e2e

package cmd_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends/testclass"
)

// sample is a line of a document: the series, and its value.
var sample = regexp.MustCompile(`(?m)^(rdma_setup_\S.*) (\S+)$`)

// alerting are tests of promtool: a document that gets old, one of two sites that goes away, and no document at all.
const alerting = `rule_files: [rdma-setup.rules.yml]
evaluation_interval: 1m
tests:
  - interval: 1m
    input_series:
      - {series: 'rdma_setup_last_run_timestamp_seconds{vcenter="a",instance="i"}', values: '0x120'}
      - {series: 'rdma_setup_last_run_timestamp_seconds{vcenter="b",instance="i"}', values: '0+60x30 stale'}
    alert_rule_test:
      - {alertname: RDMADocumentOld, eval_time: 45m, exp_alerts: []}
      - alertname: RDMADocumentOld
        eval_time: 46m
        exp_alerts: [{exp_labels: {severity: warning, vcenter: a, instance: i}, exp_annotations: {
          summary: The last check of a was 46m 0s ago,
          description: Look at the timer and the service rdma-setup-check@ on i. Other alerts show an old state.}}]
      - {alertname: RDMADocumentAbsent, eval_time: 30m, exp_alerts: []}
      - alertname: RDMADocumentAbsent
        eval_time: 40m
        exp_alerts: [{exp_labels: {severity: warning, vcenter: b, instance: i}, exp_annotations: {
          summary: There is no result of the RDMA check of b,
          description: "Look at rdma-setup-check@, at node_exporter, and at the directory of its textfile collector."}}]
  - interval: 1m
    input_series: []
    alert_rule_test:
      - alertname: RDMADocumentAbsent
        eval_time: 10m
        exp_alerts: [{exp_labels: {severity: warning}, exp_annotations: {
          summary: There is no result of the RDMA check,
          description: "Look at rdma-setup-check@, at node_exporter, and at the directory of its textfile collector."}}]
`

// TestE2EMonitoring tries generate monitoring with systemd, Prometheus and node_exporter of Debian, on two sites at once: one in
// order, one with a closed firewall.
func TestE2EMonitoring(t *testing.T) {
	t.Parallel()
	dir, documents := t.TempDir(), t.TempDir()
	tool := func(stdin string, name string, args ...string) string {
		t.Helper()
		c := exec.Command(name, args...)
		c.Dir, c.Stdin = dir, strings.NewReader(stdin)
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	write := func(name, text string) {
		t.Helper()
		testclass.Write(t, filepath.Join(dir, name), text)
	}
	good, bad := serve(t, "--hosts", "2", "--vms", "2", "--scenario", "done"), serve(t, "--hosts", "2", "--vms", "2", "--scenario",
		"broken-firewall")
	good.must(0, "generate", "monitoring", "--dir", dir, "--textfiles", documents, "--program", good.bin)
	tool("", "systemd-analyze", "verify", "./rdma-setup-check@.service", "./rdma-setup-check@.timer")
	tool("", "promtool", "check", "rules", "rdma-setup.rules.yml")
	write("alerting.yml", alerting)
	tool("", "promtool", "test", "rules", "alerting.yml")

	// The command of the service, for each site.
	unit := testclass.Read(t, filepath.Join(dir, "rdma-setup-check@.service"))
	_, command, _ := strings.Cut(string(unit), "\nExecStart="+good.bin+" ")
	command, _, _ = strings.Cut(command, "\n")
	series := ""
	for name, s := range map[string]*site{"good": good, "bad": bad} {
		code := map[string]int{"good": 0, "bad": 2}[name]
		s.must(code, strings.Fields(strings.NewReplacer("/etc/rdma-setup/%i.yaml", s.answers("pvrdma"), "%i", name).Replace(command))...)
		doc := testclass.Read(t, filepath.Join(documents, "rdma-setup-"+name+".prom"))
		if said := tool(string(doc), "promtool", "check", "metrics"); said != "" {
			t.Errorf("%s: %s", name, said)
		}
		for _, m := range sample.FindAllStringSubmatch(string(doc), -1) {
			series += fmt.Sprintf("      - {series: '%s', values: '%sx90'}\n", strings.ReplaceAll(m[1], "'", "''"), m[2])
		}
	}
	vcenter := bad.value("GOVC_URL")
	write("sites.yml", fmt.Sprintf(`rule_files: [rdma-setup.rules.yml]
evaluation_interval: 1m
tests:
  - interval: 1m
    input_series:
%s    alert_rule_test:
      - alertname: RDMABroken
        eval_time: 60m
        exp_alerts: [{exp_labels: {severity: critical, vcenter: '%[2]s', verdict: broken}, exp_annotations: {
          summary: 'RDMA of %[2]s is broken', description: 'HOST-FW-PVRDMA-007 esx-02: ruleset pvrdma is off'}}]
      - alertname: RDMACheckFailed
        eval_time: 60m
        exp_alerts: [{exp_labels: {severity: critical, vcenter: '%[2]s', id: HOST-FW-PVRDMA-007, status: fail}, exp_annotations: {
          summary: 'HOST-FW-PVRDMA-007 fails on 1 targets of %[2]s',
          description: 'rdma-setup check --explain HOST-FW-PVRDMA-007 describes it. Its targets: rdma_setup_check_status.'}}]
      - {alertname: RDMADegraded, eval_time: 60m, exp_alerts: []}
      - {alertname: RDMAUnknown, eval_time: 60m, exp_alerts: []}
      - {alertname: RDMADocumentOld, eval_time: 60m, exp_alerts: []}
      - {alertname: RDMADocumentAbsent, eval_time: 60m, exp_alerts: []}
`, series, vcenter))
	tool("", "promtool", "test", "rules", "sites.yml")

	page := exported(t, documents)
	if !strings.Contains(page, "\nnode_textfile_scrape_error 0\n") || strings.Count(page, "\nrdma_setup_status{") != 2 {
		t.Errorf("node_exporter:\n%s", tail(page))
	}
}

var listening = regexp.MustCompile(`address=(127\.0\.0\.1:[1-9][0-9]*)`)

// exported returns the metrics of a node_exporter with these documents.
func exported(t *testing.T, documents string) string {
	t.Helper()
	c := exec.Command("prometheus-node-exporter", "--web.listen-address=127.0.0.1:0", "--collector.disable-defaults", "--collector.textfile",
		"--collector.textfile.directory="+documents)
	log, err := c.StderrPipe()
	if err == nil {
		err = c.Start()
	}
	testclass.OK(t, err)
	defer func() { _, _ = c.Process.Kill(), c.Wait() }()
	var said bytes.Buffer
	for lines := bufio.NewScanner(io.TeeReader(log, &said)); lines.Scan(); {
		if m := listening.FindStringSubmatch(lines.Text()); m != nil {
			answer, err := http.Get("http://" + m[1] + "/metrics")
			testclass.OK(t, err)
			defer answer.Body.Close()
			page, err := io.ReadAll(answer.Body)
			testclass.OK(t, err)
			return string(page)
		}
	}
	t.Fatalf("node_exporter does not listen:\n%s", said.String())
	return ""
}
