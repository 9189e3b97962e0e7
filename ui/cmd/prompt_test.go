package cmd_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/term"

	"github.com/rdma-setup/rdma-setup/backends/lab"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

// A screen collects what a program has written to a terminal.
type screen struct {
	mu    sync.Mutex
	text  bytes.Buffer
	wrote chan struct{}
}

func (s *screen) follow(from *os.File) {
	b := make([]byte, 4096)
	for {
		n, err := from.Read(b)
		s.mu.Lock()
		s.text.Write(b[:n])
		s.mu.Unlock()
		select {
		case s.wrote <- struct{}{}:
		default:
		}
		if err != nil {
			return
		}
	}
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

func (s *screen) await(t *testing.T, text string) {
	t.Helper()
	limit := time.After(5 * time.Minute) // after this time the program is considered hung
	for !strings.Contains(s.String(), text) {
		select {
		case <-s.wrote:
		case <-limit:
			t.Fatalf("it did not ask %q:\n%s", text, s)
		}
	}
}

// TestInterruptAtPrompts presses Ctrl-C at each kind of prompt, and sends a signal there: the program exits with code 130, and
// leaves the terminal and the hosts unchanged. TestAnInterruptedProofIsClosedInTime bounds how long it may take.
func TestInterruptAtPrompts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l, err := lab.Start(t.Context(), lab.Options{Hosts: 2, VMs: 2, Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	answers := filepath.Join(dir, "answers-pvrdma.yaml")
	shells, err := lab.Start(t.Context(), lab.Options{Scenario: "sriov-half", Hosts: 1, VMs: 1, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer shells.Close()
	sriov := []string{"apply", "-f", filepath.Join(shells.Dir(), "answers-sriov.yaml"), "--yes"}
	for _, tt := range []struct {
		name   string
		env    []string // variables of the lab's environment to leave out
		args   []string
		before []string // prompts before it, and their answers
		asks   string
	}{
		{"the vCenter password", []string{"GOVC_PASSWORD"}, []string{"discover"}, nil, "password of "},
		{"the vCenter password, the second time", []string{"GOVC_PASSWORD"}, []string{"discover"}, []string{"password of ", "wrong\r"},
			"password of "},
		{"an unknown certificate", []string{"GOVC_TLS_CA_CERTS"}, []string{"discover"}, nil, "Trust it for this run?"},
		{"an unknown host key", []string{"RDMA_SETUP_KNOWN_HOSTS"}, []string{"plan", "-f", answers}, nil, "Trust it and remember it?"},
		{"the sudo password", []string{"RDMA_SETUP_SUDO_PASSWORD"}, []string{"plan", "-f", answers}, nil, "sudo password in the guests"},
		{"the log-in password of guests", []string{"RDMA_SETUP_GUEST_PASSWORD", "RDMA_SETUP_SSH_KEY"}, []string{"plan", "-f", answers}, nil,
			"log-in password in the guests"},
		{"the password of an ESXi host", []string{"RDMA_SETUP_ESXI_PASSWORD", "RDMA_SETUP_SSH_KEY"}, sriov, nil,
			"password of the ESXi host esx-0"},
		{"that password, the second time", []string{"RDMA_SETUP_ESXI_PASSWORD", "RDMA_SETUP_SSH_KEY"}, sriov,
			[]string{"password of the ESXi host esx-0", "wrong\r", "too? [y/N]", "n\r"}, "(refused; once more)"},
		{"whether it is that of all hosts", []string{"RDMA_SETUP_ESXI_PASSWORD", "RDMA_SETUP_SSH_KEY"}, sriov,
			[]string{"password of the ESXi host esx-0", "wrong\r"}, "too? [y/N]"},
		{"the consent", nil, []string{"apply", "-f", answers}, nil, "[y/N]"},
	} {
		for _, by := range []string{"Ctrl-C", "SIGINT"} {
			t.Run(tt.name+" by "+by, func(t *testing.T) {
				dir := t.TempDir()
				c := exec.CommandContext(t.Context(), "rdma-setup-in-no-hurry", tt.args...)
				c.Env = append(os.Environ(), "HOME="+dir, "XDG_STATE_HOME="+dir, "XDG_CONFIG_HOME="+dir, "TERM=xterm")
				l := l
				if strings.HasPrefix(tt.args[2%len(tt.args)], shells.Dir()) {
					l = shells
				}
				for _, line := range l.Env() {
					if name, _, _ := strings.Cut(line, "="); !slices.Contains(tt.env, name) {
						c.Env = append(c.Env, line)
					}
				}
				tty, err := pty.Start(c)
				if err != nil {
					t.Fatal(err)
				}
				defer tty.Close()
				before, err := term.GetState(int(tty.Fd()))
				if err != nil {
					t.Fatal(err)
				}
				s := &screen{wrote: make(chan struct{}, 1)}
				go s.follow(tty)
				for i := 0; i+1 < len(tt.before); i += 2 {
					s.await(t, tt.before[i])
					s.mu.Lock()
					s.text.Reset()
					s.mu.Unlock()
					if _, err := tty.WriteString(tt.before[i+1]); err != nil {
						t.Fatal(err)
					}
				}
				s.await(t, tt.asks)
				if by == "Ctrl-C" {
					_, err = tty.Write([]byte{3})
				} else {
					err = c.Process.Signal(os.Interrupt)
				}
				if err != nil {
					t.Fatal(err)
				}
				_ = c.Wait() // the exit code is checked later
				if code := c.ProcessState.ExitCode(); code != 130 {
					t.Errorf("exit code %d:\n%s", code, s)
				}
				if after, err := term.GetState(int(tty.Fd())); err != nil || *after != *before {
					t.Errorf("the terminal was left in another state (%v)", err)
				}
				shells.World().View(func(w *world.State) {
					if w.Hosts[0].Service("TSM-SSH").Running {
						t.Error("the SSH service of the host was left running")
					}
				})
			})
		}
	}
}
