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

// A Holder identifies the holder of a lock, and its targets in a vCenter ("host/esx-01"); no targets means all.
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

// common returns the targets that two holders share, "everything" if one of them locks all.
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

// A Lock excludes other runs with this state directory from the targets of a run. The system releases it when the process ends.
type Lock struct {
	file *flock.Flock
}

// A probe by Runs holds the lock for microseconds; a run holds it much longer than this.
const lockPatience = 300 * time.Millisecond

// Acquire takes the lock for the holder's targets in a vCenter, identified by its instance UUID. If another run has locked one of
// them, the error (KindRefused) names that run. Runs without a common target do not exclude each other.
func Acquire(ctx context.Context, root, vcenter string, h Holder) (*Lock, error) {
	if err := privateDir(root, "locks"); err != nil {
		return nil, err
	}
	// Only one process at a time checks the locks of the others and adds its own.
	gate := lockFile(filepath.Join(root, "locks", hash(vcenter)[:16]+".lock"))
	if ok, err := lockRetrying(ctx, gate); !ok {
		return nil, stateError(root, cmp.Or(err, errors.New("another process holds its lock")))
	}
	defer func() { _ = gate.Unlock() }() // closing the file releases it too
	if err := othersOf(ctx, root, vcenter, h); err != nil {
		return nil, err
	}
	path := lockPath(root, vcenter, h.Run)
	l := lockFile(path)
	ok, err := lockRetrying(ctx, l)
	switch {
	case err != nil:
		return nil, stateError(root, err)
	case !ok: // the same run, in another process
		first, _ := holder(path)
		return nil, taken(first, "everything")
	}
	b, err := json.Marshal(h)
	if err == nil {
		// Written in place: another inode would be another lock.
		err = os.WriteFile(path, append(b, '\n'), 0o600)
	}
	if err != nil {
		return nil, errors.Join(stateError(root, err), l.Unlock())
	}
	return &Lock{file: l}, nil
}

// othersOf fails if a live run has locked a common target. Files of ended runs are removed.
func othersOf(ctx context.Context, root, vcenter string, h Holder) error {
	// Not a pattern: the path of a state directory may contain special characters.
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
		free, err := lockRetrying(ctx, l)
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
	return backends.Refusedf("", "Wait until it has ended, or stop it with Ctrl-C in its terminal.",
		"%s is changing this vCenter; both runs change %s", first, what)
}

func lockFile(path string) *flock.Flock {
	return flock.New(path, flock.SetFlag(os.O_CREATE|os.O_RDWR|syscall.O_NOFOLLOW), flock.SetPermissions(0o600))
}

// lockRetrying takes a lock; false if it is held for longer than a probe holds it.
func lockRetrying(ctx context.Context, l *flock.Flock) (bool, error) {
	limited, cancel := context.WithTimeout(ctx, lockPatience)
	defer cancel()
	ok, err := l.TryLockContext(limited, 20*time.Millisecond)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return false, nil
	}
	return ok, err
}

// Release releases the lock.
func (l *Lock) Release() error { return l.file.Unlock() }

// The UUID comes from a server, so only its hash is used in a file name.
func lockPath(root, vcenter, run string) string {
	return filepath.Join(root, "locks", hash(vcenter)[:16]+"-"+run+".lock")
}

// Process returns the id of the process that holds the lock of a run, or was the last to hold it; 0 if there is none.
func Process(root, vcenter, run string) int {
	h, _ := holder(lockPath(root, vcenter, run))
	return h.PID
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
		_ = l.Unlock() // a probe; the file is closed anyway
	}
	return err == nil && !free
}
