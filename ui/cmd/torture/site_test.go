package torture

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rdma-setup/rdma-setup/backends/lab"
	"github.com/rdma-setup/rdma-setup/backends/lab/timing"
	"github.com/rdma-setup/rdma-setup/backends/testclass"
	"github.com/rdma-setup/rdma-setup/ui/cmd"
	"github.com/rdma-setup/rdma-setup/ui/cmd/console"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// A mode is a row of the test matrices: what is set up, and on which lab.
type mode struct {
	name     string
	of       string // the mode of the answers, if the name differs
	scenario string
	hosts    int
	reboot   time.Duration
	systems  []string       // of the guests; nil: those of the scenario
	clock    timing.Clock   // how long commands take
	netplan  string         // /etc/netplan/50-cloud-init.yaml of the guests, "" for the lab's
	stays    *regexp.Regexp // facts that a rollback leaves in place, as the plan says
}

var modes = []mode{
	{name: "pvrdma", scenario: "healthy", hosts: 2},
	{name: "sriov", scenario: "bare", hosts: 2, reboot: 200 * time.Millisecond, stays: regexp.MustCompile(`\.VIBs\.(mft|nmst)\.`)},
	{name: "gpudirect", scenario: "gpudirect", hosts: 2, reboot: 200 * time.Millisecond},
	{name: "pvrdma-rails", of: "pvrdma", scenario: "rails", hosts: 2},
	{name: "sriov-rails", of: "sriov", scenario: "rails", hosts: 2, reboot: 200 * time.Millisecond},
}

// often returns the modes of make test: two rails, whose runs include the steps of one. make e2e-full adds one
// rail.
func often() []mode {
	if testclass.All {
		return []mode{modes[0], modes[3]}
	}
	return modes[3:4]
}

// small returns the mode on a lab of one host, for the tests that are part of every test run.
func (m mode) small() mode { m.hosts = 1; return m }

// sample is what make test and make e2e-full include; make torture runs everything.
var sample = struct {
	modes []mode
	every int // one of this many kinds of harm is injected
}{often(), 20}

// A site is a lab with a state directory and answers without measurements.
type site struct {
	t       *testing.T
	lab     *lab.Lab
	env     map[string]string
	mode    mode
	answers string
	vms     []answers.VM
	confirm func(string) (bool, error) // answers prompts as on a terminal; nil: there is no terminal
}

func serve(t *testing.T, m mode) *site {
	t.Helper()
	files := ""
	if m.netplan != "" {
		files = t.TempDir()
		dir := filepath.Join(files, "all", "etc", "netplan")
		if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, "50-cloud-init.yaml"), []byte(m.netplan),
			0o600)); err != nil {
			t.Fatal(err)
		}
	}
	l, err := lab.Start(t.Context(), lab.Options{
		Hosts: m.hosts, VMs: m.hosts, Scenario: m.scenario, Dir: t.TempDir(), RebootTime: m.reboot, BootTime: 50 * time.Millisecond,
		Systems: m.systems, Commands: m.clock, GuestFiles: files,
	})
	if err != nil {
		t.Fatal(err)
	}
	// nil: package testing keeps this function, and with it the lab, until all parallel tests have ended
	t.Cleanup(func() { l.Close(); l = nil })
	state := t.TempDir()
	s := &site{t: t, lab: l, mode: m, env: map[string]string{"HOME": state, "XDG_STATE_HOME": state, "XDG_CONFIG_HOME": state}}
	for _, kv := range l.Env() {
		key, value, _ := strings.Cut(kv, "=")
		s.env[key] = value
	}
	s.answers = s.rewrite(filepath.Join(l.Dir(), "answers-"+cmp.Or(m.of, m.name)+".yaml"), func(a *answers.Answers) {
		a.Run.Bystanders = answers.BystandersShutdown
		a.Measure.Bandwidth, a.Measure.Latency = false, false
		s.vms = a.VMs
	})
	return s
}

// rewrite saves modified answers next to the existing ones.
func (s *site) rewrite(path string, change func(*answers.Answers)) string {
	s.t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		s.t.Fatal(err)
	}
	a, err := answers.Load(bytes.NewReader(b), path)
	if err != nil {
		s.t.Fatal(err)
	}
	change(a)
	var out bytes.Buffer
	if err := answers.Save(&out, a); err != nil {
		s.t.Fatal(err)
	}
	path = strings.TrimSuffix(path, ".yaml") + "-again.yaml"
	if err := os.WriteFile(path, out.Bytes(), 0o600); err != nil {
		s.t.Fatal(err)
	}
	return path
}

// A said is the output of a command and how it ended; code -1: it was killed.
type said struct {
	out, errs string
	code      int
	took      time.Duration
}

func (s said) String() string { return tail(s.out) + "\n" + tail(s.errs) }

func tail(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-25):], "\n")
}

// here runs a command line in this process; limit bounds single calls.
func (s *site) here(limit time.Duration, args ...string) said {
	var out, errs bytes.Buffer
	begun := time.Now()
	code := cmd.Run(context.Background(), &console.Env{
		Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs, Getenv: func(key string) string { return s.env[key] }, Now: time.Now,
		Terminal:   func() bool { return s.confirm != nil },
		Confirm:    s.confirm,
		Executable: os.Executable,
		Interrupts: func() (<-chan os.Signal, func()) { return nil, func() {} },
		CallLimit:  limit,
	}, args)
	return said{out.String(), errs.String(), code, time.Since(begun)}
}

// child runs a command line in a separate process, into which a harm is injected.
func (s *site) child(harm string, args ...string) said {
	s.t.Helper()
	return s.start(harm, args...).end()
}

// A begun is a running command line in a separate process.
type begun struct {
	t         *testing.T
	cmd       *exec.Cmd
	out, errs bytes.Buffer
	since     time.Time
}

// start starts a command line in a separate process.
func (s *site) start(harm string, args ...string) *begun {
	s.t.Helper()
	self, err := os.Executable()
	if err != nil {
		s.t.Fatal(err)
	}
	b := &begun{t: s.t, cmd: exec.Command(self, args...), since: time.Now()}
	b.cmd.Env = []string{childKey + "=" + harm}
	for key, value := range s.env {
		b.cmd.Env = append(b.cmd.Env, key+"="+value)
	}
	b.cmd.Stdout, b.cmd.Stderr = &b.out, &b.errs
	if err := b.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	return b
}

// end waits for the process.
func (b *begun) end() said {
	b.t.Helper()
	err := b.cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		b.t.Fatal(err)
	}
	return said{b.out.String(), b.errs.String(), b.cmd.ProcessState.ExitCode(), time.Since(b.since)}
}

func (s *site) apply() []string { return []string{"apply", "-f", s.answers, "--yes", "-o", "json"} }

// run returns the last run in the state directory, and its status; "" if there is none.
func (s *site) run() (id, status string) {
	s.t.Helper()
	got := s.here(0, "runs", "-o", "json")
	var doc struct {
		Runs []struct{ Run, Status string }
	}
	if err := json.Unmarshal([]byte(got.out), &doc); got.code != 0 || err != nil {
		s.t.Fatalf("runs: %v\n%s", err, got)
	}
	if len(doc.Runs) == 0 {
		return "", ""
	}
	slices.SortFunc(doc.Runs, func(a, b struct{ Run, Status string }) int { return strings.Compare(a.Run, b.Run) })
	last := doc.Runs[len(doc.Runs)-1]
	return last.Run, last.Status
}

// finish completes the setup: it resumes the last run, or starts a new one.
func (s *site) finish() said {
	s.t.Helper()
	if id, status := s.run(); id != "" && status != "not begun" && status != "rolled back" {
		return s.here(0, "resume", id, "--yes", "-o", "json")
	}
	return s.here(0, s.apply()...)
}

// back rolls back the last run.
func (s *site) back() said {
	s.t.Helper()
	id, _ := s.run()
	return s.here(0, "rollback", id, "--yes", "-o", "json")
}

// forget deletes the existing runs, so that the next one is the last.
func (s *site) forget() {
	s.t.Helper()
	if err := os.RemoveAll(filepath.Join(s.env["XDG_STATE_HOME"], "rdma-setup", "runs")); err != nil {
		s.t.Fatal(err)
	}
}
