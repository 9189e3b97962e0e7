package cmd_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/lab"
	"github.com/rdma-setup/rdma-setup/backends/testclass"
	"github.com/rdma-setup/rdma-setup/ui/plain"
	"github.com/rdma-setup/rdma-setup/wizard/engine"
	"github.com/rdma-setup/rdma-setup/wizard/engine/journal"
)

// A goingRun is a run in progress in this process: its journal, lock and log.
type goingRun struct {
	t     *testing.T
	state string
	j     *journal.Journal
	lock  *journal.Lock
	log   *os.File
}

const goingVC = "11111111-2222-3333-4444-555555555555"

func beginRun(t *testing.T, state string) *goingRun {
	t.Helper()
	j, err := journal.Create(state, journal.Header{VCenter: goingVC, Mode: "pvrdma", Made: time.Now()}, []byte("{}"))
	if err == nil {
		err = j.Append(journal.Record{Type: journal.TypeBegin, Phase: journal.PhaseApply})
	}
	testclass.OK(t, err)
	lock, err := journal.Acquire(t.Context(), state, goingVC, journal.Holder{Run: j.Run(), PID: os.Getpid(), User: "operator",
		Since: time.Now(), Targets: []string{j.Run()}})
	testclass.OK(t, err)
	log, err := journal.OpenLog(state, j.Run())
	testclass.OK(t, err)
	return &goingRun{t: t, state: state, j: j, lock: lock, log: log}
}

func (g *goingRun) event(e engine.Event) {
	g.t.Helper()
	var b bytes.Buffer
	plain.JSONLines(&b)(e)
	g.write(b.String())
}

func (g *goingRun) write(text string) {
	g.t.Helper()
	if _, err := g.log.WriteString(text); err != nil {
		g.t.Fatal(err)
	}
}

// end writes the result of the run, if it has one, and releases its lock.
func (g *goingRun) end(status engine.Status) {
	g.t.Helper()
	var err error
	if status != "" {
		err = g.j.Append(journal.Record{Type: journal.TypeResult, Status: string(status)})
		report := fmt.Sprintf(`{"run":%q,"status":%q,"made":%q,"checks":[{"id":"HOST-CONN-001","status":"pass"}]}`, g.j.Run(), status,
			time.Now().Add(time.Second).Format(time.RFC3339Nano))
		err = errors.Join(err, journal.WriteFile(g.state, g.j.Run(), "report.json", []byte(report)))
	}
	if err := errors.Join(err, g.j.Close(), g.log.Close()); err != nil {
		g.t.Fatal(err)
	}
	g.lock.Release()
}

// TestAttach follows runs of this process from another process. Earlier events are printed first, then each new event when it is
// written, complete lines only. The result of the run determines the exit code.
func TestAttach(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		status engine.Status
		code   int
		says   string
	}{
		{engine.StatusDone, 0, "the run has ended: done, set_up, exit code 0"},
		{engine.StatusPartial, 5, "rdma-setup resume"},
		{engine.StatusFailed, 1, "rdma-setup resume"},
		{"", 130, "the run was interrupted"}, // the process of the run has ended
	} {
		t.Run("ends "+string(tt.status), func(t *testing.T) {
			t.Parallel()
			state := t.TempDir()
			g := beginRun(t, state)
			at := time.Date(2026, 11, 23, 10, 15, 0, 0, time.UTC)
			host := backends.HostRef("esx-01")
			g.event(engine.Event{Type: engine.EventStarted, Time: at, Node: "n", Target: host, Title: "set option Net.PVRDMAVmknic to vmk0"})

			c := exec.CommandContext(t.Context(), "rdma-setup", "attach", "--state-dir", state)
			var errs bytes.Buffer
			c.Stderr = &errs
			out, err := c.StdoutPipe()
			if err == nil {
				err = c.Start()
			}
			testclass.OK(t, err)
			lines := bufio.NewScanner(out)
			next := func(want string) {
				t.Helper()
				if !lines.Scan() || !strings.Contains(lines.Text(), want) {
					t.Errorf("got %q, want %q\n%s", lines.Text(), want, errs.String())
				}
			}
			next("begin       esx-01: set option Net.PVRDMAVmknic to vmk0")
			g.write(`{"time":"2026-11-23T10:15:01Z","level":"DEBUG","msg":"call"}` + "\n") // a run at log level debug writes these lines too
			g.write(`{"event":"skipped","time":"2026-11-23T10:15:02Z","node":"n","target":"host/esx-01",`)
			g.write(`"title":"set option Net.PVRDMAVmknic to vmk0","text":"it is so already"}` + "\n")
			next("already set esx-01: set option Net.PVRDMAVmknic to vmk0: it is so already")
			g.end(tt.status)
			for lines.Scan() {
				t.Errorf("more: %s", lines.Text())
			}
			err = c.Wait()
			if code := c.ProcessState.ExitCode(); code != tt.code || !strings.Contains(errs.String(), tt.says) {
				t.Errorf("exit %d (%v), want %d\n%s", code, err, tt.code, errs.String())
			}
		})
	}
}

// TestAttachExitsLikeItsRun compares the exit code of a run with that of attach.
func TestAttachExitsLikeItsRun(t *testing.T) {
	testclass.Full(t)
	t.Parallel()
	for name, tt := range map[string]struct {
		options lab.Options
		code    int
	}{
		"works":        {lab.Options{}, 0},
		"broken":       {lab.Options{Scenario: "slow-large"}, 1},
		"not measured": {lab.Options{Scenario: "perftest-versions"}, 1},
		"partly":       {lab.Options{Faults: []string{"host=esx-02,method=EnableRuleset,nth=1,do=fault:NoPermission"}}, 5},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tt.options.Hosts, tt.options.VMs = 2, 2
			b := newBench(t, tt.options)
			_, said := b.must(tt.code, "apply", "-f", "ANSWERS", "--yes")
			if code, _, errs := b.run("attach"); code != tt.code {
				t.Errorf("attach exits %d, the run %d\n%s\n%s", code, tt.code, errs, said)
			}
		})
	}
}

// TestAttachLeavesTheRunAlone interrupts attach; the run continues.
func TestAttachLeavesTheRunAlone(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	g := beginRun(t, state)
	g.event(engine.Event{Type: engine.EventStarted, Node: "n", Target: backends.HostRef("esx-01"), Title: "reboot"})
	c := exec.CommandContext(t.Context(), "rdma-setup", "attach", "--state-dir", state, g.j.Run(), "-o", "json")
	var errs bytes.Buffer
	c.Stderr = &errs
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	testclass.OK(t, err)
	lines := bufio.NewScanner(out)
	if !lines.Scan() || !strings.HasPrefix(lines.Text(), `{"schemaVersion":1,"event":"started"`) {
		t.Errorf("got %q", lines.Text())
	}
	testclass.OK(t, c.Process.Signal(syscall.SIGINT))
	_ = lines.Scan()
	_ = c.Wait()
	if code := c.ProcessState.ExitCode(); code != 130 || !strings.Contains(errs.String(), "the run continues") {
		t.Errorf("exit %d\n%s", code, errs.String())
	}
	if !journal.Running(state, goingVC, g.j.Run()) {
		t.Error("the run has lost its lock")
	}
	g.end(engine.StatusDone)
}

// TestAttachWithoutARun covers state directories without a run, or without the named run.
func TestAttachWithoutARun(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	for _, args := range [][]string{{"attach"}, {"attach", "20260101-000000-pvrdma-aaaa"}, {"attach", "../x"}} {
		out, err := exec.CommandContext(t.Context(), "rdma-setup", append(args, "--state-dir", state)...).CombinedOutput()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != 2 || !strings.Contains(string(out), "hint:") {
			t.Errorf("%s: %v\n%s", fmt.Sprint(args), err, out)
		}
	}
}
