//go:build e2e

package form_test

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/creack/pty"

	"github.com/rdma-setup/rdma-setup/backends/testclass"
	"github.com/rdma-setup/rdma-setup/wizard/report"
)

// A terminal runs the real program on a pseudo-terminal.
type terminal struct {
	t       *testing.T
	cmd     *exec.Cmd
	tty     *os.File
	dir     string
	ended   chan error
	drained chan struct{} // closed when no process writes any more
	width   uint16
	keys    int

	mu     sync.Mutex
	drawn  strings.Builder // since the last clear
	output strings.Builder
	news   chan struct{}
}

func build(t *testing.T) string {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "rdma-setup")
	if out, err := exec.Command("go", "build", "-o", bin, "github.com/rdma-setup/rdma-setup").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return bin
}

func start(t *testing.T, bin string, env []string, args ...string) *terminal {
	t.Helper()
	s := &terminal{t: t, cmd: exec.Command(bin, args...), dir: t.TempDir(), ended: make(chan error, 1), drained: make(chan struct{}),
		width: 120, news: make(chan struct{}, 1)}
	s.cmd.Dir = s.dir
	s.cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.dir, "XDG_STATE_HOME=" + s.dir, "TERM=xterm-256color",
		"LANG=C.UTF-8"}, env...)
	var err error
	if s.tty, err = pty.StartWithSize(s.cmd, &pty.Winsize{Rows: 40, Cols: s.width}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.tty.Close()
		_ = s.cmd.Process.Kill()
	})
	go s.read()
	go func() { s.ended <- s.cmd.Wait() }()
	return s
}

func (s *terminal) read() {
	defer close(s.drained)
	b := make([]byte, 1<<16)
	for {
		n, err := s.tty.Read(b)
		s.mu.Lock()
		s.drawn.Write(b[:n])
		s.output.Write(b[:n])
		s.mu.Unlock()
		select {
		case s.news <- struct{}{}:
		default:
		}
		if err != nil {
			return
		}
	}
}

// text returns what was drawn since clear, without colours and blanks, because the screen is drawn in parts.
func (s *terminal) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(strings.Fields(ansi.Strip(s.drawn.String())), "")
}

func (s *terminal) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drawn.Reset()
}

// shows waits until one of the texts was drawn and returns it. Text that is already on the screen is not drawn again; a change of
// the size makes the program redraw it.
func (s *terminal) shows(texts ...string) string {
	s.t.Helper()
	limit, redraw := time.After(5*time.Minute), time.NewTicker(2*time.Second)
	defer redraw.Stop()
	for {
		for _, text := range texts {
			if strings.Contains(s.text(), strings.Join(strings.Fields(text), "")) {
				s.clear()
				return text
			}
		}
		select {
		case <-s.news:
		case <-redraw.C:
			s.width ^= 1
			if err := pty.Setsize(s.tty, &pty.Winsize{Rows: 40, Cols: s.width}); err != nil {
				s.t.Fatal(err)
			}
		case err := <-s.ended:
			s.t.Fatalf("the program ended (%v) before %q was drawn:\n%s", err, texts, s.text())
		case <-limit:
			s.t.Fatalf("%q was not drawn:\n%s", texts, last(s.text()))
		}
	}
}

func (s *terminal) press(keys string) {
	s.t.Helper()
	if _, err := s.tty.WriteString(keys); err != nil {
		s.t.Fatal(err)
	}
	s.keys++
}

// exit waits for the end and returns the exit code.
func (s *terminal) exit() int {
	s.t.Helper()
	select {
	case err := <-s.ended:
		// The last output may not have arrived yet.
		select {
		case <-s.drained:
		case <-time.After(time.Minute):
			s.t.Errorf("somebody keeps the terminal open:\n%s", s.text())
		}
		var bad *exec.ExitError
		if err != nil && !errors.As(err, &bad) {
			s.t.Fatal(err)
		}
		return s.cmd.ProcessState.ExitCode()
	case <-time.After(10 * time.Minute):
		s.t.Fatalf("the program does not end:\n%s", s.text())
	}
	return -1
}

// kept returns the report that the run saved.
func (s *terminal) kept() report.Report {
	s.t.Helper()
	found, err := filepath.Glob(filepath.Join(s.dir, "rdma-setup", "runs", "*", "report.json"))
	if err != nil || len(found) != 1 {
		s.t.Fatalf("reports %v, %v", found, err)
	}
	b, err := os.ReadFile(found[0])
	if err != nil {
		s.t.Fatal(err)
	}
	var r report.Report
	if err := json.Unmarshal(b, &r); err != nil {
		s.t.Fatal(err)
	}
	return r
}

func (s *terminal) complete() {
	s.t.Helper()
	r := s.kept()
	if r.Status != "done" || !r.Simulated || len(r.Changes) == 0 || len(r.Measurements) == 0 {
		s.t.Errorf("status %q, simulated %t, %d changes, %d measurements", r.Status, r.Simulated, len(r.Changes), len(r.Measurements))
	}
	for _, c := range r.Changes {
		if c.State != "done" && c.State != "skipped" {
			s.t.Errorf("%s is %s: %s", c.ID(), c.State, c.Err)
		}
	}
}

// toPlan accepts each page up to the plan of the private lab, where Enter is the consent.
func (s *terminal) toPlan() {
	s.t.Helper()
	s.pages()
	s.shows("Press Enter to apply")
}

// pages accepts the pages before the plan.
func (s *terminal) pages() {
	s.t.Helper()
	for _, text := range []string{"vCenter address", "Which hosts should be set up", "How should the guests", "Which pNIC of each host",
		"Distributed switch", "Which VMs get an RDMA", "Nothing prevents the setup"} {
		s.shows(text)
		s.press(strings.Repeat("\r", fieldsOf[text]))
	}
}

// fieldsOf is the number of times Enter is pressed on a page of the default answers: once per field.
var fieldsOf = map[string]int{"vCenter address": 2, "Which hosts should be set up": 1, "How should the guests": 1,
	"Which pNIC of each host": 1,
	"Distributed switch":      5, "Which VMs get an RDMA": 1, "Nothing prevents the setup": 1}

func TestE2EWizard(t *testing.T) {
	bin := build(t)
	t.Run("Enter alone leads to a finished report", func(t *testing.T) {
		s := start(t, bin, nil, "--lab")
		s.toPlan()
		s.press("\r")
		s.shows("Next steps")
		s.press("\r")
		if code := s.exit(); code != 0 || s.keys > 15 {
			t.Errorf("exit code %d after %d keys", code, s.keys)
		}
		s.complete()
		if info, err := os.Stat(filepath.Join(s.dir, "rdma-setup-answers.yaml")); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("the answers: %v, %v", info, err)
		}
	})
	t.Run("a lost terminal ends the screen and not the run", func(t *testing.T) {
		s := start(t, bin, nil, "--lab")
		s.toPlan()
		s.press("\r")
		s.shows("shut down", "power on", "install packages")
		s.tty.Close()
		if code := s.exit(); code != 0 {
			t.Errorf("exit code %d", code)
		}
		s.complete()
	})
	t.Run("a terminal lost in a wave of reboots, and SIGHUP with it", func(t *testing.T) {
		env, file := lossless(t, bin)
		s := start(t, bin, env, "-f", file)
		s.pages()
		s.shows("Scroll to the end (Enter)")
		s.press(strings.Repeat("\r", 50))
		s.shows("the plan was not accepted")
		s.press("yes\r")
		s.shows("reboot, wait")
		s.tty.Close() // the kernel sends SIGHUP to the session
		for range 3 {
			_ = s.cmd.Process.Signal(syscall.SIGHUP)
		}
		if code := s.exit(); code != 0 {
			t.Errorf("exit code %d", code)
			t.Logf("%+v", s.kept())
		}
		if r := s.kept(); r.Status != "done" || len(r.Changes) == 0 {
			t.Errorf("status %q, %d changes", r.Status, len(r.Changes))
		}
		again := start(t, bin, append(env, "XDG_STATE_HOME="+s.dir), "resume", "--yes")
		if code := again.exit(); code != 0 {
			t.Errorf("resume of a finished run: exit code %d\n%s", code, again.text())
		}
	})
	t.Run("a screen of one cell, and back", func(t *testing.T) {
		s := start(t, bin, nil, "--lab")
		s.shows("vCenter address")
		for _, size := range []pty.Winsize{{Rows: 1, Cols: 1}, {Rows: 24, Cols: 79}, {Rows: 2, Cols: 300}} {
			testclass.OK(t, pty.Setsize(s.tty, &size))
		}
		s.shows("Which hosts should be set up", "vCenter address", "make it larger")
		s.press("\x03")
		if code := s.exit(); code != 130 {
			t.Errorf("exit code %d", code)
		}
		s.restored()
	})
	t.Run("SIGPIPE of a connection that was closed leaves the screen", func(t *testing.T) {
		s := start(t, bin, nil, "--lab")
		s.shows("vCenter address")
		for range 3 {
			testclass.OK(t, s.cmd.Process.Signal(syscall.SIGPIPE))
		}
		s.press("\r\r")
		s.shows("Which hosts should be set up")
		s.press("\x03")
		if code := s.exit(); code != 130 {
			t.Errorf("exit code %d", code)
		}
	})
	for name, sig := range map[string]syscall.Signal{"SIGTERM": syscall.SIGTERM, "SIGINT": syscall.SIGINT} {
		t.Run(name+" before a run leaves, and the terminal is as it was", func(t *testing.T) {
			s := start(t, bin, nil, "--lab")
			s.shows("vCenter address")
			testclass.OK(t, s.cmd.Process.Signal(sig))
			if code := s.exit(); code != 130 {
				t.Errorf("exit code %d", code)
			}
			s.restored()
		})
	}
	t.Run("Ctrl-C stops the run and resume is named", func(t *testing.T) {
		s := start(t, bin, nil, "--lab")
		s.toPlan()
		s.press("\r")
		s.shows("shut down", "power on")
		s.press("\x03")
		s.shows("Ctrl-C again stops at once", "Next steps")
		s.shows("rdma-setup resume")
		s.press("\r")
		if code := s.exit(); code != 130 {
			t.Errorf("exit code %d", code)
		}
		r := s.kept()
		if r.Status != "interrupted" {
			t.Errorf("status %q", r.Status)
		}
		// The run is named, as on the last page: Ctrl-C may have come before the first change.
		again := start(t, bin, []string{"XDG_STATE_HOME=" + s.dir}, "resume", r.Run, "--yes")
		if code := again.exit(); code != 0 {
			t.Errorf("resume: exit code %d\n%s", code, again.text())
		}
		s.complete()
	})
	for name, how := range map[string]struct{ env, args []string }{
		"plain questions":             {nil, []string{"--lab", "--accessible"}},
		"plain questions by TERM":     {[]string{"TERM=dumb"}, []string{"--lab"}},
		"plain questions, ACCESSIBLE": {[]string{"ACCESSIBLE=1"}, []string{"--lab"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t, bin, how.env, how.args...)
			for _, q := range []string{"vCenter address", "Account", "Hosts: names", "How should the guests", "Take these pNICs",
				"Distributed switch", "Port group", "MTU,", "VLAN", "vmknic for PVRDMA", "VMs: names", "Take these addresses"} {
				s.shows(q)
				s.press("\n")
			}
			s.shows("Apply these changes?")
			s.press("yes\n")
			if code := s.exit(); code != 0 {
				t.Errorf("exit code %d:\n%s", code, s.text())
			}
			s.complete()
		})
	}
}

// last returns the end of the output, because minutes of redrawing are too long for a message.
func last(text string) string {
	const most = 8000
	return text[max(0, len(text)-most):]
}
