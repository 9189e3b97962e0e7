package cmd_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rdma-setup/rdma-setup/backends/lab"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/ui/cmd"
	"github.com/rdma-setup/rdma-setup/ui/cmd/console"
)

// A bench is a lab and the commands that run on it, in this process.
type bench struct {
	t   *testing.T
	lab *lab.Lab
	env map[string]string
	now func() time.Time // nil: time.Now

	interrupts chan os.Signal // nil: none
}

// closeAtEnd closes a lab when the test has ended. Package testing keeps the functions of Cleanup until all parallel tests have ended:
// this one does not keep the lab.
func closeAtEnd(t *testing.T, l *lab.Lab) {
	t.Cleanup(func() { _ = l.Close(); l = nil })
}

func newBench(t *testing.T, o lab.Options) *bench {
	t.Helper()
	o.Dir = t.TempDir()
	l, err := lab.Start(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	closeAtEnd(t, l)
	return &bench{t: t, lab: l, env: environment(l, o.Dir)}
}

// run executes a command without a terminal; "ANSWERS" stands for the lab's answers for PVRDMA.
func (b *bench) run(args ...string) (code int, stdout, stderr string) {
	b.t.Helper()
	for i := range args {
		if args[i] == "ANSWERS" {
			args[i] = filepath.Join(b.lab.Dir(), "answers-pvrdma.yaml")
		}
	}
	now := b.now
	if now == nil {
		now = time.Now
	}
	var out, errs bytes.Buffer
	code = cmd.Run(context.Background(), &console.Env{
		Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs, Getenv: func(key string) string { return b.env[key] }, Now: now,
		Terminal:   func() bool { return false },
		Executable: os.Executable,
		Interrupts: func() (<-chan os.Signal, func()) { return b.interrupts, func() {} },
	}, args)
	return code, out.String(), errs.String()
}

// change modifies the world from outside the program under test.
func (b *bench) change(e world.Event, f func(s *world.State)) {
	b.t.Helper()
	err := b.lab.World().Update(func(s *world.State) ([]world.Event, error) { f(s); return []world.Event{e}, nil })
	if err != nil {
		b.t.Fatal(err)
	}
}

func TestChecksAfterABaselineNameWhatDrifted(t *testing.T) {
	t.Parallel()
	b := newBench(t, lab.Options{Scenario: "done", Hosts: 2, VMs: 2})
	if code, out, errs := b.run("check", "-f", "ANSWERS", "--save-baseline"); code != 0 ||
		!strings.Contains(errs, "baseline saved in "+b.env["HOME"]) {
		t.Fatalf("exit %d\n%s%s", code, out, errs)
	}
	if code, out, _ := b.run("check", "-f", "ANSWERS"); code != 0 || !strings.Contains(out, "compared with the baseline of ") {
		t.Fatalf("nothing has changed: exit %d\n%s", code, out)
	}
	last := "esx-02"
	b.change(world.Event{What: world.HostHardware, Host: last}, func(s *world.State) {
		h := s.Hosts[1]
		for n, p := range h.PNICs[2:4] {
			d := h.PCIDevice(p.PCI)
			p.PCI = []string{"0000:b1:00.0", "0000:b1:00.1"}[n]
			d.Address, p.Firmware, p.SpeedMbps = p.PCI, "16.33.1048", 50000
		}
		h.Module(connectX.Driver()).Parameter("trust_state").Value = "1"
	})
	for _, up := range []bool{false, true} {
		if err := b.lab.World().SetLink("esx-01", "vmnic2", up); err != nil {
			t.Fatal(err)
		}
	}
	b.change(world.Event{What: world.SwitchChanged, Switch: "RDMA-DVS"}, func(s *world.State) { s.Switch("RDMA-DVS").MTU = 5000 })
	code, out, errs := b.run("check", "-f", "ANSWERS", "-o", "json")
	var doc struct{ Results []checks.Finding }
	if err := json.Unmarshal([]byte(out), &doc); err != nil {
		t.Fatalf("%v: %s%s", err, out, errs)
	}
	if code == 0 {
		t.Error("exit 0, though all this has drifted")
	}
	told := map[string]string{}
	for _, f := range doc.Results {
		if strings.Contains(f.Evidence, "baseline") && f.Status != checks.Pass && f.Status != checks.Unknown {
			told[f.ID+" "+f.Target.Name] = f.Evidence
		}
	}
	for row, word := range map[string]string{
		"HOST-PNIC-MAC-005 " + last:      "the baseline has it at 0000:3b:00.0",
		"HOST-PNIC-FWMATRIX-007 " + last: "baseline: firmware 16.35.4030",
		"HOST-PNIC-SPEED-004 " + last:    "baseline: speed 100G",
		"CL-PARAM-009 " + last:           "baseline: " + connectX.Driver() + " trust_state unset",
		"DVS-MTU-006 RDMA-DVS":           "baseline: MTU 9000",
		"HOST-PNIC-STATE-003 esx-01":     "vmnic2 is up at 100G, RDMA device active; baseline: the link went down once since",
	} {
		if !strings.Contains(told[row], word) {
			t.Errorf("%s says %q, not %q", row, told[row], word)
		}
	}
	if len(told) != 6 {
		t.Errorf("told of the baseline: %v", told)
	}
	if code, out, _ := b.run("check", "-f", "ANSWERS", "--baseline", "none"); strings.Contains(out, "compared with") || code == 0 {
		t.Errorf("without a baseline: exit %d\n%s", code, out)
	}
}

func TestBaselineRequiresPassingChecks(t *testing.T) {
	t.Parallel()
	b := newBench(t, lab.Options{Scenario: "broken-firewall", Hosts: 2, VMs: 2})
	file := filepath.Join(b.env["HOME"], "sub", "good.json")
	code, _, errs := b.run("check", "--quick", "-f", "ANSWERS", "--save-baseline", file)
	if _, err := os.Stat(file); err == nil || code != 2 || !strings.Contains(errs, "HOST-FW-PVRDMA-007 of esx-02") {
		t.Errorf("exit %d, file %v: %s", code, err, errs)
	}
	if code, _, errs = b.run("check", "--quick", "-f", "ANSWERS", "--save-baseline", file, "--force"); code != 2 ||
		!strings.Contains(errs, "neither module parameters nor guests") {
		t.Errorf("forced: exit %d: %s", code, errs)
	}
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("%v %v", info, err)
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(raw), b.env["GOVC_PASSWORD"]) {
		t.Error("the baseline holds the password")
	}
	for name, text := range map[string]string{
		"of another vCenter":     strings.Replace(string(raw), `"instance_uuid": "`, `"instance_uuid": "0`, 1),
		"torn":                   string(raw[:len(raw)/2]),
		"another document":       `{"results":[]}`,
		"a later version's":      strings.Replace(string(raw), `"format": 1`, `"format": 2`, 1),
		"a link that leads away": "",
	} {
		other := filepath.Join(t.TempDir(), "other.json")
		if text == "" {
			other = filepath.Join(b.env["HOME"], "nowhere.json")
		} else if err := os.WriteFile(other, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if code, out, errs := b.run("check", "--quick", "-f", "ANSWERS", "--baseline", other); code != 3 || !strings.Contains(errs, "error:") {
			t.Errorf("%s: exit %d\n%s%s", name, code, out, errs)
		}
	}
	for _, args := range [][]string{{"--force"}, {"somewhere.json"}, {"--save-baseline", "--only", "HOST-CONN-001"}} {
		if code, _, errs := b.run(append([]string{"check"}, args...)...); code != 3 || !strings.Contains(errs, "error:") {
			t.Errorf("%v: exit %d: %s", args, code, errs)
		}
	}
	code, _, errs = b.run("check", "--only", "HOST-FW-PVRDMA-08")
	if code != 3 || !strings.Contains(errs, "did you mean HOST-FW-PVRDMA-007?") {
		t.Errorf("exit %d: %s", code, errs)
	}
}

// openLab starts a lab that is closed when the test ends.
func openLab(t *testing.T, o lab.Options) *lab.Lab {
	t.Helper()
	l, err := lab.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	closeAtEnd(t, l)
	return l
}
