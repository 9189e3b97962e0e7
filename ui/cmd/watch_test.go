package cmd_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rdma-setup/rdma-setup/backends/lab"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
	"github.com/rdma-setup/rdma-setup/checks/watch"
	"github.com/rdma-setup/rdma-setup/ui/cmd"
	"github.com/rdma-setup/rdma-setup/ui/cmd/console"
)

// A reader collects the output of a command and lets tests wait for a text.
type reader struct {
	mu   sync.Mutex
	text bytes.Buffer
	more chan struct{}
}

func newReader() *reader { return &reader{more: make(chan struct{}, 1)} }

func (r *reader) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.text.Write(b)
	select {
	case r.more <- struct{}{}:
	default:
	}
	return len(b), nil
}

func (r *reader) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.String()
}

// wait waits until a text occurs n times in the output.
func (r *reader) wait(t *testing.T, words string, n int) {
	t.Helper()
	limit := time.After(time.Minute)
	for strings.Count(r.String(), words) < n {
		select {
		case <-r.more:
		case <-limit:
			text := r.String()
			t.Fatalf("%q did not come %d times:\n%s", words, n, text[max(0, len(text)-3000):])
		}
	}
}

// watch starts a watch without a terminal; stop ends it by a signal and returns the exit code.
func (b *bench) watch(args ...string) (out *reader, stop func() int) {
	b.t.Helper()
	b.interrupts = make(chan os.Signal, 1)
	signals := b.interrupts
	out = newReader()
	end := b.begin(out, &bytes.Buffer{}, append([]string{"check", "-f", filepath.Join(b.lab.Dir(), "answers-pvrdma.yaml"), "--watch", "1s"}, args...)...)
	return out, func() int {
		signals <- syscall.SIGINT
		return end()
	}
}

// begin starts a command without a terminal in the background; end waits for its exit code.
func (b *bench) begin(out, errs io.Writer, args ...string) (end func() int) {
	b.t.Helper()
	signals, done := b.interrupts, make(chan int, 1)
	go func() {
		done <- cmd.Run(context.Background(), &console.Env{
			Stdin: strings.NewReader(""), Stdout: out, Stderr: errs, Getenv: func(key string) string { return b.env[key] }, Now: time.Now,
			Terminal:   func() bool { return false },
			Executable: os.Executable,
			Interrupts: func() (<-chan os.Signal, func()) { return signals, func() {} },
		}, args)
	}()
	return func() int { return <-done }
}

func TestAWatchOutlivesVCenterAndItsSession(t *testing.T) {
	t.Parallel()
	b := newBench(t, lab.Options{Scenario: "done", Hosts: 2, VMs: 2, Idle: 400 * time.Millisecond}) // the session expires between two checks
	out, stop := b.watch("--quick")
	out.wait(t, "nothing has changed", 1)
	b.change(world.Event{What: world.HostFirewall, Host: "esx-02"}, func(s *world.State) { s.Hosts[1].Ruleset("pvrdma").Enabled = false })
	out.wait(t, "worse  HOST-FW-PVRDMA-007 esx-02: pass -> fail, ruleset pvrdma is off", 1)
	if err := b.lab.World().Faults.Add("method=RetrievePropertiesEx,do=fault:HostCommunication"); err != nil {
		t.Fatal(err)
	}
	out.wait(t, "AWAY since", 2)
	b.lab.World().Faults.Clear()
	b.change(world.Event{What: world.HostFirewall, Host: "esx-02"}, func(s *world.State) { s.Hosts[1].Ruleset("pvrdma").Enabled = true })
	out.wait(t, "better HOST-FW-PVRDMA-007 esx-02: fail -> pass", 1)
	if code := stop(); code != 130 {
		t.Errorf("exit %d", code)
	}
	if !strings.Contains(out.String(), "#x") {
		t.Errorf("the history shows no failure with vCenter away behind it:\n%s", out.String())
	}
}

func TestAWatchInJSONPrintsOneLinePerCheck(t *testing.T) {
	t.Parallel()
	b := newBench(t, lab.Options{Scenario: "done", Hosts: 2, VMs: 2})
	out, stop := b.watch("-o", "json")
	out.wait(t, "\n", 1)
	b.change(world.Event{What: world.SwitchChanged, Switch: "RDMA-DVS"}, func(s *world.State) { s.Switch("RDMA-DVS").NIOC = true })
	out.wait(t, `"changes":[{`, 1)
	if code := stop(); code != 130 {
		t.Errorf("exit %d", code)
	}
	var changes []watch.Change
	for _, line := range strings.Split(strings.TrimSpace(out.String()), "\n") {
		var doc struct {
			Status   string
			Results  []any
			APICalls int `json:"api_calls"`
			Changes  []watch.Change
		}
		if err := json.Unmarshal([]byte(line), &doc); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if len(doc.Results) == 0 || doc.APICalls == 0 {
			t.Errorf("%d results of %d calls", len(doc.Results), doc.APICalls)
		}
		changes = append(changes, doc.Changes...)
	}
	if len(changes) != 1 || changes[0].ID != "DVS-NIOC-005" {
		t.Errorf("%+v", changes)
	}
}

func TestAWatchKeepsAFileUpToDate(t *testing.T) {
	t.Parallel()
	b := newBench(t, lab.Options{Scenario: "broken-firewall", Hosts: 2, VMs: 2})
	file := filepath.Join(b.env["HOME"], "rdma.prom")
	out, stop := b.watch("--quick", "-o", "prometheus", "--out", file)
	out.wait(t, "nothing has changed", 1)
	if code := stop(); code != 130 {
		t.Errorf("exit %d", code)
	}
	if text, err := os.ReadFile(file); err != nil || !strings.Contains(string(text), "HOST-FW-PVRDMA-007") {
		t.Errorf("%v: %s", err, text)
	}
	for _, args := range [][]string{{"--watch", "10ms"}, {"--watch", "5s", "-o", "junit"}, {"--watch", "5s", "--fix"}, {"--watch", "5s", "--pairs", "ring"}} {
		if code, _, errs := b.run(append([]string{"check", "-f", "ANSWERS"}, args...)...); code != 3 || !strings.Contains(errs, "hint:") {
			t.Errorf("%v: exit %d: %s", args, code, errs)
		}
	}
}
