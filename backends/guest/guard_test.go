package guest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rdma-setup/rdma-setup/backends/ssh"
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
	if err := os.Mkdir(filepath.Join(dir, "lock"), 0o700); err != nil {
		t.Fatal(err)
	}
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
		return step{what: "a test", keep: true, Command: ssh.Command{Script: script, Limit: 20 * time.Second}}
	}
	want, says := 7, "hello"
	if !root {
		want, says = exitUntrusted, "is not a directory of root"
	}
	// A PATH without flock and setsid: the note is the lock.
	bare := t.TempDir()
	for _, tool := range []string{"sh", "stat", "mkdir", "chmod", "rm", "rmdir", "mktemp", "sha256sum", "date", "mv", "cat", "sleep", "timeout"} {
		at, err := exec.LookPath(tool)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(at, filepath.Join(bare, tool)); err != nil {
			t.Fatal(err)
		}
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
			// Two at once: the second waits for the first, and says so.
			mark := filepath.Join(filepath.Dir(p.work), "mark")
			first := p.start(body("echo begun >" + mark + "; sleep 1; echo ended >>" + mark))
			if err := first.Start(); err != nil {
				t.Fatal(err)
			}
			for end := time.Now().Add(10 * time.Second); root && time.Now().Before(end); {
				if _, err := os.Stat(mark); err == nil {
					break
				}
			}
			out, _ = do(p, body("cat "+mark))
			if root && (!strings.Contains(out, "#waiting ") || !strings.HasSuffix(out, "begun\nended\n")) {
				t.Errorf("the second said %q", out)
			}
			_ = first.Wait()
		})
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
			if err := prepare(p); err != nil {
				t.Fatal(err)
			}
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
	if out, err := cmd.CombinedOutput(); err == nil || root && !strings.Contains(string(out), "did not arrive whole") || strings.Contains(string(out), "hell\n") {
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
		out, err := p.start(step{what: "a test", keep: true, Command: ssh.Command{Script: "echo hello", Limit: 20 * time.Second}}).CombinedOutput()
		close(ended)
		<-removed
		if os.Geteuid() == 0 && (err != nil || !strings.HasSuffix(string(out), "hello\n")) {
			t.Fatalf("%v: %s", err, out)
		}
	}
}
