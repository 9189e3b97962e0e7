package journal

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/gofrs/flock"

	"github.com/rdma-setup/rdma-setup/backends"
)

// A Holder says who holds a lock, and on which targets of a vCenter ("host/esx-01"); without targets on all.
type Holder struct {
	Run     string    `json:"run"`
	PID     int       `json:"pid"`
	User    string    `json:"user"`
	Since   time.Time `json:"since"`
	Targets []string  `json:"targets,omitempty"`
}

func (h Holder) String() string {
	return fmt.Sprintf("run %s (process %d of %s, since %s)", h.Run, h.PID, h.User, h.Since.UTC().Format("2006-01-02 15:04:05 MST"))
}

// common names what two holders both want, "everything" where one of them wants all.
func (h Holder) common(other Holder) (string, bool) {
	if len(h.Targets) == 0 || len(other.Targets) == 0 {
		return "everything", true
	}
	for _, t := range h.Targets {
		if slices.Contains(other.Targets, t) {
			return t, true
		}
	}
	return "", false
}

// A Lock excludes other runs of this state directory from the targets of a run. The system frees it when the process
// dies.
type Lock struct {
	file *flock.Flock
}

// A probe by Runs holds the lock for microseconds; a run holds it much longer than this.
const lockPatience = 300 * time.Millisecond

// Acquire takes the lock of the holder's targets in a vCenter, given by its instance UUID. Where another run holds one of
// them, the error (KindRefused) names that run. Runs without a common target do not keep each other away.
func Acquire(ctx context.Context, root, vcenter string, h Holder) (*Lock, error) {
	if err := privateDir(root, "locks"); err != nil {
		return nil, err
	}
	// One at a time looks at the locks of the others and adds its own.
	gate := lockFile(gatePath(root, vcenter))
	if ok, err := patiently(ctx, gate); !ok {
		return nil, stateError(root, cmp.Or(err, errors.New("another process holds its lock")))
	}
	defer func() { _ = gate.Unlock() }() // closing the file frees it as well
	if err := othersOf(ctx, root, vcenter, h); err != nil {
		return nil, err
	}
	path := lockPath(root, vcenter, h.Run)
	l := lockFile(path)
	ok, err := patiently(ctx, l)
	switch {
	case err != nil:
		return nil, stateError(root, err)
	case !ok: // the same run, in another process
		first, _ := holder(path)
		return nil, taken(first, "everything")
	}
	b, err := json.Marshal(h)
	if err == nil {
		// In place: another inode would be another lock.
		err = os.WriteFile(path, append(b, '\n'), 0o600)
	}
	if err != nil {
		return nil, errors.Join(stateError(root, err), l.Unlock())
	}
	return &Lock{file: l}, nil
}

// othersOf refuses where a live run holds a common target. Files of runs that have ended are removed.
func othersOf(ctx context.Context, root, vcenter string, h Holder) error {
	// Not a pattern: the path of a state directory may hold its characters.
	entries, err := os.ReadDir(filepath.Join(root, "locks"))
	if err != nil {
		return stateError(root, err)
	}
	prefix := strings.TrimSuffix(filepath.Base(lockPath(root, vcenter, "")), ".lock")
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), prefix) {
			continue
		}
		path := filepath.Join(root, "locks", e.Name())
		other, known := holder(path)
		what, both := h.common(other)
		if known && (other.Run == h.Run || !both) {
			continue
		}
		l := lockFile(path)
		free, err := patiently(ctx, l)
		switch {
		case err != nil:
			return stateError(root, err)
		case !free:
			return taken(other, what)
		}
		if err := errors.Join(os.Remove(path), l.Unlock()); err != nil {
			return stateError(root, err)
		}
	}
	return nil
}

func taken(first Holder, what string) error {
	return backends.Errorf(backends.KindRefused, "", "Wait until it has ended, or stop it with Ctrl-C in its terminal.",
		"%s is changing this vCenter; both touch %s", first, what)
}

func lockFile(path string) *flock.Flock {
	return flock.New(path, flock.SetFlag(os.O_CREATE|os.O_RDWR|syscall.O_NOFOLLOW), flock.SetPermissions(0o600))
}

// patiently takes a lock, false if somebody else holds it for longer than a probe does.
func patiently(ctx context.Context, l *flock.Flock) (bool, error) {
	limited, cancel := context.WithTimeout(ctx, lockPatience)
	defer cancel()
	ok, err := l.TryLockContext(limited, 20*time.Millisecond)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return false, nil
	}
	return ok, err
}

// Release frees the lock.
func (l *Lock) Release() error { return l.file.Unlock() }

// The UUID comes from a server: only its hash becomes a file name.
func gatePath(root, vcenter string) string {
	return filepath.Join(root, "locks", hash(vcenter)[:16]+".lock")
}

func lockPath(root, vcenter, run string) string {
	return filepath.Join(root, "locks", hash(vcenter)[:16]+"-"+run+".lock")
}

func holder(path string) (Holder, bool) {
	var h Holder
	b, err := backends.InputState.ReadFile(path)
	return h, err == nil && json.Unmarshal(b, &h) == nil
}

// Running reports whether a live process of this machine holds the lock of the vCenter (by its instance UUID) for a run.
func Running(root, vcenter, run string) bool {
	path := lockPath(root, vcenter, run)
	h, known := holder(path)
	if !known || h.Run != run {
		return false
	}
	l := flock.New(path, flock.SetFlag(os.O_RDONLY|syscall.O_NOFOLLOW))
	free, err := l.TryRLock()
	if free {
		_ = l.Unlock() // a probe; the file is closed either way
	}
	return err == nil && !free
}
