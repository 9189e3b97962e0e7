package journal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/gofrs/flock"

	"github.com/rdma-setup/rdma-setup/backends"
)

// A Holder says who holds the lock of a vCenter.
type Holder struct {
	Run   string    `json:"run"`
	PID   int       `json:"pid"`
	User  string    `json:"user"`
	Since time.Time `json:"since"`
}

func (h Holder) String() string {
	return fmt.Sprintf("run %s (process %d of %s, since %s)", h.Run, h.PID, h.User, h.Since.UTC().Format("2006-01-02 15:04:05 MST"))
}

// A Lock keeps other runs of this state directory away from one vCenter. The system frees it when the process dies.
type Lock struct {
	file *flock.Flock
}

// A probe by Runs holds the lock for microseconds; a run holds it much longer than this.
const lockPatience = 300 * time.Millisecond

// Acquire takes the lock of a vCenter, given by its instance UUID. Where another run holds it, the error (KindRefused)
// names that run.
func Acquire(ctx context.Context, root, vcenter string, h Holder) (*Lock, error) {
	if err := privateDir(root, "locks"); err != nil {
		return nil, err
	}
	path := lockPath(root, vcenter)
	l := flock.New(path, flock.SetFlag(os.O_CREATE|os.O_RDWR|syscall.O_NOFOLLOW), flock.SetPermissions(0o600))
	patient, cancel := context.WithTimeout(ctx, lockPatience)
	defer cancel()
	ok, err := l.TryLockContext(patient, 20*time.Millisecond)
	switch {
	case ok:
	case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
		first := "another run"
		if h, known := holder(path); known {
			first = h.String()
		}
		return nil, backends.Errorf(backends.KindRefused, "", "Wait until it has ended, or stop it with Ctrl-C in its terminal.",
			"%s is changing this vCenter", first)
	default:
		return nil, stateError(root, err)
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

// Release frees the lock.
func (l *Lock) Release() error { return l.file.Unlock() }

// The UUID comes from a server: only its hash becomes a file name.
func lockPath(root, vcenter string) string {
	return filepath.Join(root, "locks", hash(vcenter)[:16]+".lock")
}

func holder(path string) (Holder, bool) {
	var h Holder
	b, err := backends.InputState.ReadFile(path)
	return h, err == nil && json.Unmarshal(b, &h) == nil
}

// running tells whether a live process holds the lock of the vCenter for this run.
func running(root, vcenter, run string) bool {
	path := lockPath(root, vcenter)
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
