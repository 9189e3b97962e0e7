package guest

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rdma-setup/rdma-setup/backends/ssh"
	"github.com/rdma-setup/rdma-setup/backends/testclass"
)

// A place is a directory of this machine where steps run under a real shell. Whoever runs the test owns it; to the scripts
// only root is trustworthy, so a test that does not run as root sees them refuse.
type place struct {
	t    *testing.T
	work string
	path string // PATH, where that is not ours
}

func newPlace(t *testing.T) place {
	dir := t.TempDir()
	testclass.OK(t, os.Mkdir(filepath.Join(dir, "lock"), 0o700))
	return place{t: t, work: filepath.Join(dir, "run")}
}

func (p place) start(s step) *exec.Cmd {
	script := strings.NewReplacer(lockDir+" ", filepath.Join(filepath.Dir(p.work), "lock")+" ", workDir, p.work).Replace(guarded(s))
	cmd := exec.Command("/bin/sh", "-c", script)
	if p.path != "" {
		cmd.Env = []string{"PATH=" + p.path}
	}
	return cmd
}

// heard starts a command and reads what it says up to a line with a text, or to the end; what it says then is still to be read.
func heard(t *testing.T, c *exec.Cmd, text string) io.Reader {
	t.Helper()
	out, err := c.StdoutPipe()
	testclass.OK(t, err)
	testclass.OK(t, c.Start())
	lines := bufio.NewReader(out)
	for said := ""; ; {
		line, err := lines.ReadString('\n')
		said += line
		if strings.Contains(line, text) {
			return lines
		}
		if err != nil {
			if os.Geteuid() == 0 {
				t.Errorf("%q was not said: %q", text, said)
			}
			return lines
		}
	}
}

func TestGuardInARealShell(t *testing.T) {
	root := os.Geteuid() == 0
	do := func(p place, s step) (string, int) {
		cmd := p.start(s)
		out, err := cmd.CombinedOutput()
		if err != nil && cmd.ProcessState == nil {
			t.Fatal(err)
		}
		return string(out), cmd.ProcessState.ExitCode()
	}
	body := func(script string) step {
		return step{what: "a test", keep: true, Command: ssh.Command{Script: script, Limit: 10 * time.Minute}}
	}
	want, says := 7, "hello"
	if !root {
		want, says = exitUntrusted, "is not a directory of root"
	}
	// A PATH without flock and setsid: the note is the lock.
	bare := t.TempDir()
	for _, tool := range []string{"sh", "stat", "mkdir", "chmod", "rm", "rmdir", "mktemp", "sha256sum", "date", "mv", "cat", "sleep",
		"timeout"} {
		at, err := exec.LookPath(tool)
		testclass.OK(t, err)
		testclass.OK(t, os.Symlink(at, filepath.Join(bare, tool)))
	}
	for name, path := range map[string]string{"with flock": "", "without": bare} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			p.path = path
			out, rc := do(p, body("echo hello; exit 7"))
			if rc != want || !strings.Contains(out, says) {
				t.Errorf("exit code %d: %s", rc, out)
			}
			if left, err := os.ReadDir(p.work); root && !os.IsNotExist(err) {
				t.Errorf("left: %v, %v", left, err)
			}
			// Two at once: the second waits for the first, which goes on once the second has said so.
			mark, on := filepath.Join(filepath.Dir(p.work), "mark"), filepath.Join(filepath.Dir(p.work), "on")
			first := p.start(body("echo begun >" + mark + "; until [ -e " + on + " ]; do sleep 0.1; done; echo ended >>" + mark))
			heard(t, first, "#begins") // what the step itself prints comes when it has ended
			second := p.start(body("cat " + mark))
			rest := heard(t, second, "#waiting ")
			testclass.OK(t, os.WriteFile(on, nil, 0o600))
			read, _ := io.ReadAll(rest)
			if root && !strings.HasSuffix(string(read), "begun\nended\n") {
				t.Errorf("the second said %q", read)
			}
			_ = second.Wait()
			_ = first.Wait()
		})
	}

	// A step whose daemon stays is over when the script is: the next one does not wait.
	if root {
		p := newPlace(t)
		pid := filepath.Join(filepath.Dir(p.work), "pid")
		if out, rc := do(p, body("sleep 300 </dev/null >/dev/null 2>&1 & echo $! >"+pid)); rc != 0 {
			t.Fatalf("exit code %d: %s", rc, out)
		}
		t.Cleanup(func() {
			b, _ := os.ReadFile(pid)
			if n, err := strconv.Atoi(strings.TrimSpace(string(b))); err == nil {
				_ = syscall.Kill(n, syscall.SIGKILL)
			}
		})
		if out, rc := do(p, body("echo next")); rc != 0 || strings.Contains(out, "#waiting ") {
			t.Errorf("after a step that left a daemon: exit code %d: %s", rc, out)
		}
	}

	// Another user has been there first.
	for name, prepare := range map[string]func(p place) error{
		"a directory": func(p place) error {
			if err := os.Mkdir(p.work, 0o777); err != nil {
				return err
			}
			if root {
				return os.Chown(p.work, 65534, 65534)
			}
			return nil
		},
		"a link": func(p place) error {
			other := filepath.Join(filepath.Dir(p.work), "other")
			if err := os.Mkdir(other, 0o777); err != nil {
				return err
			}
			return os.Symlink(other, p.work)
		},
		"a dangling link": func(p place) error { return os.Symlink("/nowhere/at/all", p.work) },
		"a file":          func(p place) error { return os.WriteFile(p.work, []byte("1 2 3"), 0o666) },
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			testclass.OK(t, prepare(p))
			mark := filepath.Join(filepath.Dir(p.work), "mark")
			out, rc := do(p, body("touch "+mark))
			if rc != exitUntrusted || !strings.Contains(out, "is not a directory of root") {
				t.Errorf("exit code %d: %s", rc, out)
			}
			if _, err := os.Stat(mark); err == nil {
				t.Error("the step ran")
			}
			if left, _ := os.ReadDir(filepath.Join(filepath.Dir(p.work), "other")); len(left) > 0 {
				t.Errorf("root worked in it: %v", left)
			}
		})
	}

	// A script that did not arrive whole is not run.
	p := newPlace(t)
	s := body("echo hello")
	cmd := p.start(s)
	cmd.Args[2] = strings.Replace(cmd.Args[2], "echo hello", "echo hell", 1)
	if out, err := cmd.CombinedOutput(); err == nil || root && !strings.Contains(string(out), "did not arrive whole") ||
		strings.Contains(string(out), "hell\n") {
		t.Errorf("%v: %s", err, out)
	}

	// A process of another user cannot take the lock: it cannot open the directory.
	if flock, err := exec.LookPath("flock"); root && err == nil {
		p := newPlace(t)
		hold := exec.Command(flock, "-n", filepath.Join(filepath.Dir(p.work), "lock"), "true")
		hold.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		if out, err := hold.CombinedOutput(); err == nil {
			t.Errorf("nobody took the lock: %s", out)
		}
	}
}

// The watcher of an address holds no lock and removes the directory when it is empty, also while a step prepares.
func TestStepWhoseDirectoryIsRemoved(t *testing.T) {
	p := newPlace(t)
	for range 5 {
		ended, removed := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(removed)
			for n := 0; n < 2; { // as many watchers
				select {
				case <-ended:
					return
				default:
					if syscall.Rmdir(p.work) == nil {
						n++
					}
				}
			}
		}()
		out, err := p.start(step{what: "a test", keep: true, Command: ssh.Command{Script: "echo hello", Limit: 20 * time.Second}}).
			CombinedOutput()
		close(ended)
		<-removed
		if os.Geteuid() == 0 && (err != nil || !strings.HasSuffix(string(out), "hello\n")) {
			t.Fatalf("%v: %s", err, out)
		}
	}
}
