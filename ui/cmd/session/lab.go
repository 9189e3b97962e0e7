package session

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/gofrs/flock"
	"github.com/google/renameio/v2"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/ui/cmd/console"
)

// A Lab is the lab in a separate process, so that a panic in the simulator cannot end the run, and so that it outlives the
// screen: it is kept until the run is finished. Concurrent commands share it.
type Lab struct {
	Dir  string `json:"dir"`
	PID  int    `json:"pid"`
	Keep bool   `json:"keep,omitempty"` // a run on it is unfinished

	state string       // file with its address for the next command
	users *flock.Flock // shared by every command that uses it
	owner *flock.Flock // held by the one command that changes it; nil for others
}

// startLab finds the lab that another command uses or an unfinished run left, or starts one. A command that changes its lab
// (console.Settings.OwnLab) does not share it with another such command; a continued run finds the lab it began on (LabOf).
func startLab(ctx context.Context, e *console.Env, set *console.Settings) (*Lab, error) {
	if err := os.MkdirAll(set.StateDir, 0o700); err != nil {
		return nil, noLabDir(err)
	}
	if set.LabOf != "" {
		return joinLab(ctx, e, set, stateOf(set, set.LabOf))
	}
	if !set.OwnLab {
		return joinLab(ctx, e, set, firstRunning(set))
	}
	for _, state := range labStates(set) {
		owner := lockOf(state + ".owner")
		mine, err := owner.TryLock()
		if err != nil {
			return nil, noLabDir(err)
		}
		if !mine {
			continue // another command owns it
		}
		lab, err := joinLab(ctx, e, set, state)
		if err != nil {
			return nil, errors.Join(err, owner.Unlock())
		}
		lab.owner = owner
		return lab, nil
	}
	return nil, backends.Refusedf("", "stop one of them, or set another --state-dir for this command",
		"%d commands already have a private lab here", maxLabs)
}

func noLabDir(err error) error {
	return backends.Permanentf("", "choose another place with --state-dir", "the lab needs a directory: %w", err)
}

// joinLab uses the lab that a state file names, or starts one for it.
func joinLab(ctx context.Context, e *console.Env, set *console.Settings, state string) (*Lab, error) {
	for end := e.Now().Add(time.Minute); ; {
		users := labUsers(state)
		if _, err := users.TryRLockContext(ctx, 20*time.Millisecond); err != nil {
			return nil, noLabDir(err)
		}
		if lab := runningLab(state); lab != nil {
			lab.users = users
			return lab, nil
		}
		if err := users.Unlock(); err != nil {
			return nil, noLabDir(err)
		}
		alone := labUsers(state)
		switch first, err := alone.TryLock(); {
		case err != nil:
			return nil, noLabDir(err)
		case first:
		case e.Now().After(end):
			return nil, backends.Refusedf("", "stop that command, or set another --state-dir for this one",
				"another command still uses a lab that has ended")
		case backends.Sleep(ctx, 50*time.Millisecond):
			continue // another command is starting one
		default:
			return nil, ctx.Err()
		}
		err := launchLab(ctx, e, set, state)
		if err = errors.Join(err, alone.Unlock()); err != nil {
			return nil, err
		}
	}
}

// labUsers is the lock on the users of the lab: shared by its users, exclusive for starting or ending it.
func labUsers(state string) *flock.Flock { return lockOf(state + ".lock") }

func lockOf(path string) *flock.Flock {
	return flock.New(path, flock.SetFlag(os.O_CREATE|os.O_RDWR|syscall.O_NOFOLLOW), flock.SetPermissions(0o600))
}

// launchLab starts a lab and writes the file that names it.
func launchLab(ctx context.Context, e *console.Env, set *console.Settings, state string) error {
	if runningLab(state) != nil {
		return nil // another command was faster
	}
	dir, err := os.MkdirTemp(set.StateDir, "lab-")
	if err != nil {
		return backends.Permanentf("", "choose another place with --state-dir", "the lab needs a directory: %w", err)
	}
	self, err := e.Executable()
	if err != nil {
		return err
	}
	args := append([]string{"lab", "--dir", dir, "--idle-exit", "30m"}, set.LabArgs...)
	lab := &Lab{Dir: dir, state: state}
	err = lab.start(ctx, self, args)
	if err == nil {
		err = lab.save()
	}
	if err != nil {
		lab.kill()
		return errors.Join(err, os.RemoveAll(dir))
	}
	return nil
}

func (l *Lab) save() error {
	b, err := json.Marshal(l)
	if err == nil {
		err = renameio.WriteFile(l.state, b, 0o600)
	}
	return err
}

// need records whether a run on the lab is unfinished, for later commands too.
func (l *Lab) need(keep bool) error {
	l.Keep = keep
	return l.save()
}

// labStart is how long a private lab may take to start.
const labStart = time.Minute

// start runs the child in its own session, away from the terminal's signals, and waits for its "ready".
func (l *Lab) start(ctx context.Context, self string, args []string) error {
	cmd := exec.Command(self, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Env = backends.Environ()
	log, err := os.OpenFile(filepath.Join(l.Dir, "lab.log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd.Stderr = log
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start the lab: %w", err)
	}
	l.PID = cmd.Process.Pid
	ready := make(chan bool, 1)
	go func() {
		lines := bufio.NewScanner(out)
		ready <- lines.Scan() && strings.TrimSpace(lines.Text()) == "ready"
		_ = cmd.Wait()
	}()
	select {
	case ok := <-ready:
		if ok {
			return nil
		}
		why, _ := os.ReadFile(filepath.Join(l.Dir, "lab.log"))
		return fmt.Errorf("the lab did not start: %s", strings.TrimSpace(string(why)))
	case <-time.After(labStart):
		l.kill()
		return errors.New("the lab did not start within a minute")
	case <-ctx.Done():
		l.kill()
		return ctx.Err()
	}
}

// LabRuns reports whether a lab for this vCenter is used by another command or was left by an unfinished run.
func LabRuns(set *console.Settings, address string) bool {
	lab := runningLab(stateOf(set, address))
	return lab != nil && lab.serves(address)
}

// maxLabs is the maximum number of private labs per state directory; each uses memory of the jump host.
const maxLabs = 16

// labStates are the files for the private labs of a state directory, existing or not.
func labStates(set *console.Settings) []string {
	states := []string{filepath.Join(set.StateDir, "lab.json")}
	for n := 2; n <= maxLabs; n++ {
		states = append(states, filepath.Join(set.StateDir, fmt.Sprintf("lab-%d.json", n)))
	}
	return states
}

// firstRunning returns the state file of the first existing lab, or of the first that can be started.
func firstRunning(set *console.Settings) string {
	states := labStates(set)
	for _, state := range states {
		if runningLab(state) != nil {
			return state
		}
	}
	return states[0]
}

// stateOf returns the state file of the lab with a vCenter address; without such a lab it is that of firstRunning.
func stateOf(set *console.Settings, address string) string {
	for _, state := range labStates(set) {
		if lab := runningLab(state); lab != nil && lab.serves(address) {
			return state
		}
	}
	return firstRunning(set)
}

func (l *Lab) serves(address string) bool {
	var its console.Settings
	l.into(&its)
	was, err := url.Parse(address)
	is, bad := url.Parse(its.URL)
	return err == nil && bad == nil && is.Host == was.Host
}

// runningLab returns the lab that the state file names, as long as its process lives.
func runningLab(state string) *Lab {
	b, err := backends.InputState.ReadFile(state)
	if err != nil {
		return nil
	}
	l := &Lab{state: state}
	if json.Unmarshal(b, l) != nil || l.PID <= 1 || syscall.Kill(l.PID, 0) != nil {
		return nil
	}
	// The system may reuse the process id of a lab that has ended.
	if line, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(l.PID), "cmdline")); err == nil && !strings.Contains(string(line), l.Dir) {
		return nil
	}
	if _, err := os.Stat(filepath.Join(l.Dir, "env")); err != nil {
		return nil
	}
	return l
}

// into points the settings to the lab; flags and environment about a real vCenter are ignored.
func (l *Lab) into(set *console.Settings) {
	b, err := backends.InputState.ReadFile(filepath.Join(l.Dir, "env"))
	if err != nil {
		return
	}
	set.Password, set.ESXiPassword, set.GuestPassword, set.SudoPassword = console.Secret{}, console.Secret{}, console.Secret{},
		console.Secret{}
	targets := map[string]*string{
		"GOVC_URL": &set.URL, "GOVC_USERNAME": &set.Username, "GOVC_PASSWORD": &set.Password.Text, "GOVC_TLS_CA_CERTS": &set.CACerts,
		"RDMA_SETUP_KNOWN_HOSTS": &set.KnownHosts, "RDMA_SETUP_SSH_KEY": &set.SSHKey, "RDMA_SETUP_ESXI_PASSWORD": &set.ESXiPassword.Text,
		"RDMA_SETUP_GUEST_PASSWORD": &set.GuestPassword.Text, "RDMA_SETUP_SUDO_PASSWORD": &set.SudoPassword.Text,
	}
	for line := range strings.Lines(string(b)) {
		key, value, ok := strings.Cut(strings.TrimSpace(line), "=")
		if into := targets[key]; ok && into != nil {
			*into = strings.Trim(value, `'"`)
		}
	}
	set.Thumbprint, set.Insecure, set.WeakSSH, set.Jump = "", false, false, ""
}

// answersFile is the lab's own answers for a mode.
func (l *Lab) answersFile(mode string) string {
	return filepath.Join(l.Dir, "answers-"+mode+".yaml")
}

// release ends the lab unless an unfinished run needs it again or another command still uses it.
func (l *Lab) release() {
	for _, lock := range []*flock.Flock{l.users, l.owner} {
		if lock != nil {
			_ = lock.Unlock()
		}
	}
	alone := labUsers(l.state)
	if free, err := alone.TryLock(); err != nil || !free {
		return
	}
	defer func() { _ = alone.Unlock() }()
	now := runningLab(l.state)
	if now == nil || now.PID != l.PID || now.Keep {
		return
	}
	now.kill()
	_ = os.Remove(now.state)
	_ = os.RemoveAll(now.Dir)
}

func (l *Lab) kill() {
	if l.PID > 1 {
		_ = syscall.Kill(l.PID, syscall.SIGTERM)
	}
}

// KeepLab keeps the private lab while a run on it is not finished.
func (s *Session) KeepLab(code int) {
	if s.Lab == nil {
		return
	}
	if err := s.Lab.need(unfinished(code)); err != nil {
		fmt.Fprintf(s.Env.Stderr, "the lab may end before the run does: %v\n", err)
	}
}

// unfinished reports whether a run that ended with an exit code can be resumed.
func unfinished(code int) bool {
	return code == console.ExitPartial || code == console.ExitInterrupted || code == console.ExitFailed
}

// Undo returns how to undo a run that ended with an exit code. A private lab ends with a finished run.
func (s *Session) Undo(run string, code int) string {
	if s.Lab != nil && !unfinished(code) {
		return "not possible: the private lab ends with this command; rdma-setup lab --dir DIR starts one that stays"
	}
	return "rdma-setup rollback " + run
}

// EndLab ends the private lab with a vCenter address, unless another command uses it: that of a finished run which was killed
// while it measured.
func EndLab(set *console.Settings, address string) {
	lab := runningLab(stateOf(set, address))
	if lab != nil && lab.serves(address) && lab.need(false) == nil {
		lab.release()
	}
}
