package ssh_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/ssh"
	"github.com/rdma-setup/rdma-setup/backends/testclass"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestRun(t *testing.T) {
	noisy := filepath.Join(t.TempDir(), "noisy")
	if err := os.WriteFile(noisy,
		[]byte("#!/bin/sh\necho 'Welcome! << 12'\necho 'last login: never' >&2\n/bin/sh -c \"$1\"\nr=$?\necho bye\nexit $r\n"),
		0o755); err != nil {
		t.Fatal(err)
	}
	for _, shell := range [][]string{{"/bin/sh", "-c"}, {noisy}} {
		s := startServer(t, func(s *server) { s.shell = shell })
		c := dial(t, s, nil)
		for _, test := range []struct {
			name string
			cmd  ssh.Command
			out  string
			err  string
			code int
		}{
			{"arguments arrive as they are", ssh.Command{Argv: []string{"printf", "%s|", "a b", "$(reboot)", "it's", `\n`, "!!", "", "é\tx\ny"}},
				"a b|$(reboot)|it's|\\n|!!||é\tx\ny|", "", 0},
			{"a script of several lines", ssh.Command{Script: "cat <<'END'\n'\\$HOME!\nEND\nexit 3"}, "'\\$HOME!\n", "", 3},
			{"standard input is the caller's", ssh.Command{Argv: []string{"cat"}, Stdin: []byte("a\x00b\n")}, "a\x00b\n", "", 0},
			{"no newline at the end", ssh.Command{Script: "printf x; printf y >&2"}, "x", "y", 0},
			{"a program that does not exist", ssh.Command{Argv: []string{"no-such-program"}}, "", "not found", 127},
			{"the address of the connection", ssh.Command{Script: "echo $SSH_CONNECTION; [ \"$SSH_MEMLOCK\" = \"$(ulimit -l)\" ] && echo same"},
				"192.0.2.1 50000 192.0.2.2 22\nsame\n", "", 0},
			{"system directories are in PATH", ssh.Command{Script: "case $PATH in */usr/sbin*) echo yes;; esac; echo $LC_ALL"}, "yes\nC\n", "", 0},
			{"a syntax error is the script's", ssh.Command{Script: "if"}, "", "yntax error", 2},
		} {
			t.Run(filepath.Base(shell[0])+"/"+test.name, func(t *testing.T) {
				r, err := c.Run(t.Context(), test.cmd)
				testclass.OK(t, err)
				if r.Stdout != test.out || !strings.Contains(r.Stderr, test.err) || (test.err == "" && r.Stderr != "") {
					t.Errorf("stdout %q, stderr %q", r.Stdout, r.Stderr)
				}
				if r.ExitCode != test.code {
					t.Errorf("exit code %d", r.ExitCode)
				}
			})
		}
	}
}

func TestKilledByASignal(t *testing.T) {
	c := dial(t, startServer(t, nil), nil)
	r, err := c.Run(t.Context(), ssh.Command{Script: "echo out; kill -s TERM $$"})
	if err != nil || r.Stdout != "out\n" || r.ExitCode != -1 || r.Signal != "TERM" {
		t.Fatalf("%+v %v", r, err)
	}
}

func TestLoginShells(t *testing.T) {
	for _, shell := range []string{"bash", "dash", "zsh", "fish", "tcsh", "csh", "ksh", "busybox"} {
		path, err := exec.LookPath(shell)
		if err != nil {
			continue // not installed on this machine
		}
		argv := []string{path, "-c"}
		if shell == "busybox" {
			argv = []string{path, "sh", "-c"}
		}
		t.Run(shell, func(t *testing.T) {
			c := dial(t, startServer(t, func(s *server) { s.shell = argv }), nil)
			want := "a'b\"c`d$e!f\\g\nh\\n%s*?[x]{a,b}~#^i^j é"
			r, err := c.Run(t.Context(), ssh.Command{Script: "printf %s " + ssh.Quote(want) + "; exit 7"})
			if err != nil || r.Stdout != want || r.ExitCode != 7 {
				t.Fatalf("%q, exit code %d, %v", r.Stdout, r.ExitCode, err)
			}
		})
	}
}

func TestOutputIsCapped(t *testing.T) {
	c := dial(t, startServer(t, nil), nil)
	lines := 0
	r, err := c.Run(t.Context(), ssh.Command{
		Script:    "head -c 3000000 /dev/zero | tr '\\0' x; echo; echo last; head -c 100000 /dev/zero | tr '\\0' y >&2; exit 5",
		MaxOutput: 1000,
		OnLine: func(l string) {
			lines++
			if len(l) > 1<<17 {
				t.Errorf("a line of %d bytes", len(l))
			}
		},
	})
	if !errors.Is(err, ssh.ErrTooMuch) || backends.KindOf(err) != backends.KindPermanent || !strings.Contains(err.Error(), "1000 bytes") {
		t.Errorf("%v", err)
	}
	if len(r.Stdout) != 1000 || len(r.Stderr) != 1000 || r.ExitCode != 5 || lines < 2 {
		t.Errorf("%d and %d bytes, exit code %d, %d lines", len(r.Stdout), len(r.Stderr), r.ExitCode, lines)
	}
	r, err = c.Run(t.Context(), ssh.Command{Script: "echo fine; head -c 100000 /dev/zero >&2", MaxOutput: 1000})
	if err != nil || r.Stdout != "fine\n" || len(r.Stderr) != 1000 {
		t.Errorf("complaints that are too long: %v, %q, %d bytes", err, r.Stdout, len(r.Stderr))
	}
}

func TestLinesComeWhileItRuns(t *testing.T) {
	c := dial(t, startServer(t, nil), nil)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	fifo := filepath.Join(t.TempDir(), "fifo")
	testclass.OK(t, syscall.Mkfifo(fifo, 0o600))
	var got []string
	r, err := c.Run(ctx, ssh.Command{
		Script: "echo first; read x <" + ssh.Quote(fifo) + "; printf \"$x\"",
		OnLine: func(l string) {
			if got = append(got, l); l == "first" {
				go os.WriteFile(fifo, []byte("second\n"), 0)
			}
		},
	})
	if err != nil || r.Stdout != "first\nsecond" || strings.Join(got, ",") != "first,second" {
		t.Fatalf("%q, lines %q, %v", r.Stdout, got, err)
	}
}

func TestCancelEndsEverythingThatWasStarted(t *testing.T) {
	c := dial(t, startServer(t, nil), nil)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var pids []int
	r, err := c.Run(ctx, ssh.Command{
		Script: "sleep 1000 & echo $!; sleep 1000 & echo $!; wait",
		OnLine: func(l string) {
			pid, _ := strconv.Atoi(l)
			if pids = append(pids, pid); len(pids) == 2 {
				cancel()
			}
		},
	})
	if !errors.Is(err, context.Canceled) || backends.KindOf(err) != backends.KindInterrupted {
		t.Fatalf("%v (%s)", err, backends.KindOf(err))
	}
	if strings.Count(r.Stdout, "\n") != 2 {
		t.Errorf("what came before is lost: %q", r.Stdout)
	}
	for _, pid := range pids {
		eventually(t, "the child is gone", func() bool { return syscall.Kill(pid, 0) != nil || zombie(pid) })
	}
	if r, err := c.Run(t.Context(), ssh.Command{Script: "echo still here"}); err != nil || r.Stdout != "still here\n" {
		t.Errorf("the connection did not survive: %q %v", r.Stdout, err)
	}
}

func zombie(pid int) bool {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err != nil || strings.Contains(string(b), ") Z ")
}

func TestLimit(t *testing.T) {
	c := dial(t, startServer(t, nil), nil)
	start := time.Now()
	_, err := c.Run(t.Context(), ssh.Command{Argv: []string{"sleep", "1000"}, Limit: 300 * time.Millisecond})
	if !errors.Is(err, ssh.ErrTooSlow) || backends.KindOf(err) != backends.KindTransient {
		t.Fatalf("%v (%s)", err, backends.KindOf(err))
	}
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("it took %s", took)
	}
}

func TestConnectionLost(t *testing.T) {
	s := startServer(t, nil)
	c := dial(t, s, nil)
	_, err := c.Run(t.Context(), ssh.Command{Script: "echo running; sleep 30 >/dev/null 2>&1 & echo; wait", OnLine: func(l string) {
		if l == "running" {
			s.drop()
		}
	}})
	if !errors.Is(err, ssh.ErrConnectionLost) || backends.KindOf(err) != backends.KindUnreachable {
		t.Fatalf("%v (%s)", err, backends.KindOf(err))
	}
	r, err := c.Run(t.Context(), ssh.Command{Script: "echo again"})
	if err != nil || r.Stdout != "again\n" || s.count() != 2 {
		t.Fatalf("%q, %d logins, %v", r.Stdout, s.count(), err)
	}
}

// TestInterruptedWriteLeavesNothing ends the shell that writes a file as the end of its session or of the machine does.
func TestInterruptedWriteLeavesNothing(t *testing.T) {
	tools, dir := t.TempDir(), t.TempDir()
	testclass.OK(t, os.WriteFile(filepath.Join(tools, "cat"), []byte("#!/bin/sh\nkill -HUP $PPID\n"), 0o755))
	s := startServer(t, func(s *server) { s.path = tools + ":" + fakeSudo(t, "nopasswd") + ":" + s.path })
	c := dial(t, s, nil)
	if err := c.Put(t.Context(), filepath.Join(dir, "unit"), []byte("text"), 0o600, ""); err == nil {
		t.Error("it says that it was written")
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestFiles(t *testing.T) {
	own := strconv.Itoa(os.Getuid()) + ":" + strconv.Itoa(os.Getgid())
	s := startServer(t, func(s *server) { s.path = fakeSudo(t, "nopasswd") + ":" + s.path })
	c := dial(t, s, nil)
	dir := filepath.Join(t.TempDir(), "it's a $(dir)")
	testclass.OK(t, os.Mkdir(dir, 0o755))
	name := filepath.Join(dir, "-file with\nnewline")
	content := []byte("line\n\x00\xff'\\$!\nno newline at the end")
	// What a write left that a power cut ended.
	testclass.Write(t, filepath.Join(dir, ".-file with\nnewline.a1B2c3"), "ha")
	testclass.OK(t, c.Put(t.Context(), name, content, 0o600, own))
	back, err := c.ReadFile(t.Context(), name)
	if err != nil || string(back) != string(content) {
		t.Fatalf("%q, %v", back, err)
	}
	if st, err := os.Stat(name); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", st.Mode(), err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 {
		t.Errorf("left behind: %v", left)
	}
	if _, err := c.ReadFile(t.Context(), name+"x"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
	if err := c.Put(t.Context(), filepath.Join(dir, "no", "such", "dir"), nil, 0o600, own); err == nil {
		t.Error("a file was written into a directory that is not there")
	}
	if strings.Contains(s.lines(), "no newline at the end") {
		t.Error("the content of the file is on a command line")
	}
}

// The text of a command is the same each time: only the mark behind it differs, so whoever parses commands can keep what was parsed.
func TestACommandHasOneText(t *testing.T) {
	s := startServer(t, nil)
	c := dial(t, s, nil)
	for range 2 {
		if r, err := c.Run(t.Context(), ssh.Command{Script: "echo $#"}); err != nil || r.Stdout != "0\n" {
			t.Fatalf("%+v, %v", r, err)
		}
	}
	lines := strings.Split(strings.TrimSpace(s.lines()), "\n")
	text := func(line string) (before, mark string) {
		i := strings.LastIndex(line, " ")
		return line[:i], line[i+1:]
	}
	if len(lines) != 2 {
		t.Fatalf("%d commands: %q", len(lines), lines)
	}
	first, mark := text(lines[0])
	if again, other := text(lines[1]); first != again || mark == other || len(mark) != 16 {
		t.Errorf("%q\nand\n%q", lines[0], lines[1])
	}
}
