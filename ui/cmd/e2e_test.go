//go:build e2e

package cmd_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/vmware/govmomi/simulator"

	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

func TestE2EPVRDMAFromNothingToMeasured(t *testing.T) {
	t.Parallel()
	s := serve(t, "--hosts", "4", "--vms", "4")
	start := s.facts()
	out, _ := s.must(0, "apply", "-f", s.answers("pvrdma"), "--yes", "-o", "json")
	res := result(t, out)
	if res.Status != "done" || len(res.Measurements) == 0 {
		t.Errorf("result %+v", res)
	}
	for _, m := range res.Measurements {
		if m.Verdict != "pass" || !m.Simulated {
			t.Errorf("%+v", m)
		}
	}
	end := s.facts()
	if got := end["dvs RDMA-DVS"]; !strings.HasPrefix(got, "mtu 9000 ") || !strings.HasSuffix(got, "nioc false members 4") {
		t.Errorf("dvs: %s", got)
	}
	for i := 1; i <= 4; i++ {
		host, vm := fmt.Sprintf("host esx-%02d ", i), fmt.Sprintf("vm vm-%02d ", i)
		for key, want := range map[string]string{
			host + "vmknic": "vmk0", host + "ruleset pvrdma": "true", host + "member of RDMA-DVS": "key-vim.host.PhysicalNic-vmnic2",
			vm + "memory": "locked true reserved 8192 of 8192",
		} {
			if end[key] != want {
				t.Errorf("%s is %q, want %q", key, end[key], want)
			}
		}
		if got := end[vm+"adapters"]; strings.Count(got, "VirtualVmxnet3Vrdma rocev2 on RDMA-PG start true") != 1 {
			t.Errorf("%sadapters: %s", vm, got)
		}
	}
	for _, v := range s.guests() {
		s.restart(v)
		if got := s.guest(v, "ibv_devinfo"); !strings.Contains(got, "PORT_ACTIVE") {
			t.Errorf("%s after a reboot:\n%s", v.Name, got)
		}
	}
	out, _ = s.must(0, "apply", "-f", s.answers("pvrdma"), "--yes", "-o", "json")
	if res := result(t, out); res.Status != "unchanged" {
		t.Errorf("a second apply: %+v", res)
	}
	s.must(0, "plan", "-f", s.answers("pvrdma"), "--detailed-exitcode")
	s.must(0, "rollback", "--yes")
	if diff := cmp.Diff(start, s.facts()); diff != "" {
		t.Errorf("before and after the rollback:\n%s", diff)
	}
}

// restart reboots a guest and waits until it responds with another boot id.
func (s *site) restart(v answers.VM) {
	s.t.Helper()
	const bootID = "cat /proc/sys/kernel/random/boot_id"
	before := s.guest(v, bootID)
	_, _ = s.tryGuest(v, s.sudo("reboot")) // the connection ends when the guest reboots
	until(s.t, v.Name+" is back", func() bool {
		out, err := s.tryGuest(v, bootID)
		return err == nil && out != before
	})
}

type e2eResult struct {
	Status       string
	Run          string
	Measurements []struct {
		From, To, Test, Verdict string
		Simulated               bool
	}
}

// result returns the last line of apply -o json.
func result(t *testing.T, out string) e2eResult {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(out), "\n")
	var r e2eResult
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &r); err != nil {
		t.Fatalf("last line %q: %v", lines[len(lines)-1], err)
	}
	return r
}

func TestE2EScenarioMixed(t *testing.T) {
	t.Parallel()
	s := serve(t, "--scenario", "mixed")
	_, errs := s.must(3, "apply", "-f", s.answers("pvrdma"), "--yes")
	var bad []string
	for line := range strings.Lines(errs) {
		if host, _, ok := strings.Cut(strings.TrimPrefix(line, "error: "), ":"); ok && strings.HasPrefix(line, "error: esx-") {
			bad = append(bad, host)
		}
	}
	for _, reason := range []string{"RDMA device", "iWARP", "link", "management"} {
		if !strings.Contains(errs, reason) {
			t.Errorf("no reason speaks of %s:\n%s", reason, errs)
		}
	}
	if runs, _ := s.must(0, "runs", "-o", "json"); !strings.Contains(runs, `"runs": []`) {
		t.Errorf("a refused apply was recorded: %s", runs)
	}
	good := s.without(bad)
	s.must(0, "apply", "-f", good, "--yes", "-o", "json")
}

// without writes answers that exclude the named hosts and the VMs on them.
func (s *site) without(hosts []string) string {
	s.t.Helper()
	var inv struct {
		VMs []struct{ Name, Host string }
	}
	out, _ := s.must(0, "discover", "-o", "json")
	if err := json.Unmarshal([]byte(out), &inv); err != nil {
		s.t.Fatal(err)
	}
	bad := map[string]bool{}
	for _, h := range hosts {
		bad[h] = true
	}
	for _, v := range inv.VMs {
		if bad[v.Host] {
			bad[v.Name] = true
		}
	}
	f, err := os.Open(s.answers("pvrdma"))
	if err != nil {
		s.t.Fatal(err)
	}
	defer f.Close()
	a, err := answers.Load(f, f.Name())
	if err != nil {
		s.t.Fatal(err)
	}
	a.Hosts.Names = deleted(a.Hosts.Names, func(n string) bool { return bad[n] })
	a.VMs = deleted(a.VMs, func(v answers.VM) bool { return bad[v.Name] })
	path := filepath.Join(s.t.TempDir(), "good.yaml")
	w, err := os.Create(path)
	if err != nil {
		s.t.Fatal(err)
	}
	defer w.Close()
	if err := answers.Save(w, a); err != nil {
		s.t.Fatal(err)
	}
	return path
}

func deleted[T any](list []T, drop func(T) bool) []T {
	var out []T
	for _, e := range list {
		if !drop(e) {
			out = append(out, e)
		}
	}
	return out
}

func TestE2EScenarioDone(t *testing.T) {
	t.Parallel()
	s := serve(t, "--scenario", "done")
	s.must(0, "plan", "-f", s.answers("pvrdma"), "--detailed-exitcode")
	s.must(0, "check", "-f", s.answers("pvrdma"))
	s.must(0, "check", "-f", s.answers("pvrdma"), "--quick")
}

func TestE2EScenarioDrifted(t *testing.T) {
	t.Parallel()
	s := serve(t, "--scenario", "drifted")
	s.must(2, "check", "-f", s.answers("pvrdma"), "--quick")
	s.must(10, "plan", "-f", s.answers("pvrdma"), "--detailed-exitcode")
	s.must(0, "apply", "-f", s.answers("pvrdma"), "--yes", "-o", "json")
	s.must(0, "check", "-f", s.answers("pvrdma"), "--quick")
}

func TestE2EFirewallForgottenOnOneHostShows(t *testing.T) {
	t.Parallel()
	s := serve(t, "--scenario", "done")
	s.shutFirewall("esx-02")
	out, _, code := s.run("bench", "-f", s.answers("pvrdma"), "-o", "json")
	if code != 1 || !strings.Contains(out, "TCP fallback") {
		t.Errorf("exit %d, and the report says nothing about TCP fallback:\n%s", code, tail(out))
	}
	checked, _ := s.must(2, "check", "-f", s.answers("pvrdma"), "--quick")
	if !strings.Contains(checked, "HOST-FW-PVRDMA-007") || !strings.Contains(checked, "esx-02") {
		t.Errorf("check does not name the firewall of esx-02:\n%s", checked)
	}
}

func TestE2EOneHostFailsOthersFinish(t *testing.T) {
	t.Parallel()
	s := serve(t, "--hosts", "3", "--vms", "3", "--fault", "host=esx-02,method=EnableRuleset,nth=1,do=fault:NoPermission")
	out, _ := s.must(5, "apply", "-f", s.answers("pvrdma"), "--yes", "-o", "json")
	if res := result(t, out); res.Status != "partial" {
		t.Errorf("result %+v", res)
	}
	after := s.facts()
	for _, h := range []string{"esx-01", "esx-03"} {
		if after["host "+h+" ruleset pvrdma"] != "true" || after["host "+h+" vmknic"] != "vmk0" {
			t.Errorf("%s is not done", h)
		}
	}
	s.must(0, "resume", "--yes", "-o", "json")
	s.must(0, "plan", "-f", s.answers("pvrdma"), "--detailed-exitcode")
	for key, value := range s.facts() {
		if strings.HasSuffix(key, " adapters") && strings.Count(value, "Vrdma") != 1 {
			t.Errorf("%s: %s", key, value)
		}
	}
	s.must(0, "resume", "--yes")
}

// TestE2EKillAndResume kills apply with SIGKILL at ten random times. Resume must reach the state of an undisturbed run, and
// rollback must restore the start.
func TestE2EKillAndResume(t *testing.T) {
	for _, half := range []string{"five", "five more"} {
		t.Run(half, func(t *testing.T) {
			t.Parallel()
			killAndResume(t)
		})
	}
}

func killAndResume(t *testing.T) {
	t.Helper()
	s := serve(t, "--hosts", "2", "--vms", "2")
	s.must(0, "plan", "-f", s.answers("pvrdma")) // opens the listeners
	start := s.facts()
	begun := time.Now()
	s.must(0, "apply", "-f", s.quick(), "--yes", "-o", "json")
	took := time.Since(begun)
	end := s.facts()
	s.must(0, "rollback", "--yes", "-o", "json")
	if diff := cmp.Diff(start, s.facts()); diff != "" {
		t.Fatalf("an undisturbed rollback does not lead back:\n%s", diff)
	}
	for i := range 5 {
		at := time.Duration(rand.Int64N(int64(took)))
		cmd := s.command("apply", "-f", s.quick(), "--yes", "-o", "json")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		timer := time.AfterFunc(at, func() { cmd.Process.Kill() })
		cmd.Wait()
		timer.Stop()
		if run := s.interrupted(); run != "" {
			// The run is named, because resume without a name ignores a run that was killed before its first change.
			s.must(0, "resume", run, "--yes", "-o", "json")
		} else {
			s.must(0, "apply", "-f", s.quick(), "--yes", "-o", "json")
		}
		if diff := cmp.Diff(end, s.facts()); diff != "" {
			t.Fatalf("killed after %s (%d): resumed to another end:\n%s", at, i, diff)
		}
		s.must(0, "rollback", "--yes", "-o", "json")
		if diff := cmp.Diff(start, s.facts()); diff != "" {
			t.Fatalf("killed after %s (%d): rolled back to another start:\n%s", at, i, diff)
		}
	}
}

// interrupted returns the interrupted run, or "".
func (s *site) interrupted() string {
	s.t.Helper()
	var doc struct {
		Runs []struct{ Run, Status string }
	}
	out, _ := s.must(0, "runs", "-o", "json")
	if err := json.Unmarshal([]byte(out), &doc); err != nil {
		s.t.Fatal(err)
	}
	for _, r := range doc.Runs {
		if r.Status == "interrupted" {
			return r.Run
		}
	}
	return ""
}

// quick writes answers without the measurement.
func (s *site) quick() string {
	s.t.Helper()
	path := filepath.Join(s.state, "quick.yaml")
	b, err := os.ReadFile(s.answers("pvrdma"))
	if err != nil {
		s.t.Fatal(err)
	}
	f, err := answers.Load(strings.NewReader(string(b)), "pvrdma")
	if err != nil {
		s.t.Fatal(err)
	}
	f.Measure.Bandwidth, f.Measure.Latency = false, false
	w, err := os.Create(path)
	if err != nil {
		s.t.Fatal(err)
	}
	defer w.Close()
	if err := answers.Save(w, f); err != nil {
		s.t.Fatal(err)
	}
	return path
}

func TestE2EConnecting(t *testing.T) {
	t.Parallel()
	s := serve(t, "--hosts", "1", "--vms", "1")
	s.env = append(s.env, "GOVC_PASSWORD=hunter2")
	_, errs := s.must(4, "discover")
	if strings.Contains(errs, "hunter2") || !strings.Contains(errs, "hint:") {
		t.Errorf("stderr:\n%s", errs)
	}
	begun := time.Now()
	s.must(4, "discover", "--url", "https://127.0.0.1:1/sdk")
	if took := time.Since(begun); took > time.Minute {
		t.Errorf("it took %s to find out that nobody is there", took)
	}
}

func TestE2EDiscoverMakesTheSameCallsForAnyNumberOfHosts(t *testing.T) {
	t.Parallel()
	calls := map[int]int{}
	for _, n := range []int{4, 200} {
		s := serve(t, "--hosts", fmt.Sprint(n), "--vms", fmt.Sprint(n))
		out, _ := s.must(0, "discover", "-o", "json")
		var doc struct {
			APICalls int `json:"api_calls"`
			Hosts    []struct{}
		}
		if err := json.Unmarshal([]byte(out), &doc); err != nil {
			t.Fatal(err)
		}
		if len(doc.Hosts) != n {
			t.Errorf("%d hosts found, want %d", len(doc.Hosts), n)
		}
		calls[n] = doc.APICalls
	}
	if calls[4] != calls[200] || calls[200] > 10 {
		t.Errorf("calls by number of hosts: %v; want the same, at most 10", calls)
	}
}

func TestE2EStockSimulatorHasNoRoCE(t *testing.T) {
	t.Parallel()
	m := simulator.VPX()
	if err := m.Create(); err != nil {
		t.Fatal(err)
	}
	defer m.Remove()
	srv := m.Service.NewServer()
	defer srv.Close()
	s := serve(t, "--hosts", "1", "--vms", "1")
	password, _ := srv.URL.User.Password()
	s.env = append(s.env, "GOVC_URL="+srv.URL.Scheme+"://"+srv.URL.Host+srv.URL.Path, "GOVC_USERNAME="+srv.URL.User.Username(),
		"GOVC_PASSWORD="+password, "GOVC_INSECURE=1", "GOVC_TLS_CA_CERTS=")
	_, errs := s.must(3, "discover")
	if !strings.Contains(errs, "can carry RDMA") || !strings.Contains(errs, "nvmxnet3") {
		t.Errorf("it does not say what it saw:\n%s", errs)
	}
}
