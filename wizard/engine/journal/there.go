package journal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// ErrLost says that the file that a journal is written to is not the run's journal any more: the state directory was
// deleted, replaced or closed to writing. What was written since would be found by nobody.
var ErrLost = errors.New("the state directory was changed during the run")

// there reports whether the journal's file still stands in its place and may be written. It is asked before each write: writing
// to a deleted file succeeds, and only its path shows that it is gone.
func (j *Journal) there() error {
	dir := runDir(j.root, j.run)
	path := filepath.Join(dir, "journal.jsonl")
	now, err := os.Lstat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("%w: %s is gone", ErrLost, path)
	case err != nil:
		return fmt.Errorf("%w: %w", ErrLost, err)
	case !os.SameFile(j.own, now):
		return fmt.Errorf("%w: %s was replaced by another file", ErrLost, path)
	}
	for _, p := range []string{path, dir, j.root} {
		info, err := os.Stat(p)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrLost, err)
		}
		if owner, known := info.Sys().(*syscall.Stat_t); known && int(owner.Uid) != os.Geteuid() && p != j.root {
			return fmt.Errorf("%w: %s now belongs to another user (uid %d)", ErrLost, p, owner.Uid)
		}
		if info.Mode().Perm()&0o200 == 0 {
			return fmt.Errorf("%w: %s is now read-only", ErrLost, p)
		}
	}
	return nil
}
