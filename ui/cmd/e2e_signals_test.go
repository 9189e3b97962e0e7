//go:build e2e

package cmd_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// A listener buffers what a command prints and lets tests wait for a text.
type listener struct {
	mu   sync.Mutex
	said bytes.Buffer
}

func (l *listener) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.said.Write(p)
}

func (l *listener) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.said.String()
}

// TestE2ESignals sends signals while the first host reboots. In every case the journal is intact, the exit code is the documented
// one, resume reaches the state of an undisturbed run, and rollback restores the start.
func TestE2ESignals(t *testing.T) {
	t.Parallel()
	s := serve(t, "--hosts", "2", "--vms", "2", "--reboot-time", "1s")
	file := s.lossless()
	start := s.facts()
	s.must(0, "apply", "-f", file, "--yes", "-o", "json")
	end := s.facts()
	s.must(0, "rollback", "--yes", "-o", "json")
	for _, test := range []struct {
		name    string
		signals []syscall.Signal
		status  string
		exit    int
	}{
		{"SIGINT", []syscall.Signal{syscall.SIGINT}, "interrupted", 130},
		{"SIGQUIT", []syscall.Signal{syscall.SIGQUIT}, "interrupted", 130},
		{"SIGTERM", []syscall.Signal{syscall.SIGTERM}, "interrupted", 130},
		{"SIGINT twice", []syscall.Signal{syscall.SIGINT, syscall.SIGINT}, "interrupted", 130},
		{"SIGTERM, then SIGINT", []syscall.Signal{syscall.SIGTERM, syscall.SIGINT}, "interrupted", 130},
		{"SIGHUP", []syscall.Signal{syscall.SIGHUP}, "done", 0},
		{"SIGPIPE", []syscall.Signal{syscall.SIGPIPE}, "done", 0},
		{"SIGHUP twice, then SIGTERM", []syscall.Signal{syscall.SIGHUP, syscall.SIGHUP, syscall.SIGTERM}, "interrupted", 130},
	} {
		said := s.signalled(file, test.exit, func(p *os.Process, said *listener) {
			for i, sig := range test.signals {
				if err := p.Signal(sig); err != nil {
					t.Fatalf("%s: %v", test.name, err)
				}
				if i == 0 && test.exit != 0 && sig != syscall.SIGHUP {
					until(t, "it says that it stops", func() bool { return strings.Contains(said.String(), `"event":"stopping"`) })
				}
			}
		})
		if res := result(t, said); res.Status != test.status {
			t.Errorf("%s: %+v", test.name, res)
		}
		s.must(0, "resume", "--yes", "-o", "json")
		if diff := cmp.Diff(end, s.facts()); diff != "" {
			t.Errorf("%s: resumed to another end:\n%s", test.name, diff)
		}
		s.must(0, "rollback", "--yes", "-o", "json")
		if diff := cmp.Diff(start, s.facts()); diff != "" {
			t.Errorf("%s: rolled back to another start:\n%s", test.name, diff)
		}
	}
}

// signalled runs apply, calls disturb while a host reboots, and returns what was printed.
func (s *site) signalled(file string, exit int, disturb func(*os.Process, *listener)) string {
	s.t.Helper()
	said := &listener{}
	cmd := s.command("apply", "-f", file, "--yes", "-o", "json")
	cmd.Stdout = said
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	rebooting := func() bool {
		for line := range strings.Lines(said.String()) {
			if strings.Contains(line, `"event":"progress"`) && strings.Contains(line, "reboot, wait") {
				return true
			}
		}
		return false
	}
	until(s.t, "a host reboots", rebooting)
	disturb(cmd.Process, said)
	err := cmd.Wait()
	var bad *exec.ExitError
	if err != nil && !errors.As(err, &bad) {
		s.t.Fatal(err)
	}
	if got := cmd.ProcessState.ExitCode(); got != exit {
		s.t.Errorf("exit %d, want %d\n%s", got, exit, tail(said.String()))
	}
	return said.String()
}

// TestE2EStreamsThatAreClosed runs commands with closed standard streams, as cron and faulty scripts do.
func TestE2EStreamsThatAreClosed(t *testing.T) {
	t.Parallel()
	s := serve(t, "--hosts", "1", "--vms", "1")
	for _, test := range []struct {
		line string
		exit int
	}{
		{`"$0" <&-`, 2}, // the wizard, without a terminal
		{`"$0" discover --password-stdin <&-`, 4},
		{`"$0" plan -f "$1" <&- >&- 2>&-`, 0},
		{`"$0" check -f "$1" --quick 2>&- | head -c 1 | wc`, 0},
		{`"$0" apply -f "$1" <&-`, 2}, // no consent is possible
		{`"$0" apply -f "$1" --yes <&- >&- 2>&-`, 0},
		{`"$0" apply -f "$1" <&-`, 0}, // no consent is needed
	} {
		cmd := exec.Command("/bin/sh", "-c", test.line, s.bin, s.quick())
		cmd.Env = s.env
		if strings.Contains(test.line, "password-stdin") {
			cmd.Env = append(cmd.Env, "GOVC_PASSWORD=")
		}
		out, _ := cmd.CombinedOutput()
		if got := cmd.ProcessState.ExitCode(); got != test.exit {
			t.Errorf("%s: exit %d, want %d\n%s", test.line, got, test.exit, out)
		}
	}
	s.must(0, "resume", "--yes")
	if out, _ := s.must(0, "runs"); !strings.Contains(out, " done ") {
		t.Errorf("runs:\n%s", out)
	}
}

// lossless returns answers that require a reboot of every host and change no VM.
func (s *site) lossless() string {
	s.t.Helper()
	f, err := os.Open(s.quick())
	if err != nil {
		s.t.Fatal(err)
	}
	defer f.Close()
	a, err := answers.Load(f, f.Name())
	if err != nil {
		s.t.Fatal(err)
	}
	a.QoS.Lossless, a.VMs = answers.LosslessPFC, nil
	path := filepath.Join(s.state, "lossless.yaml")
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
