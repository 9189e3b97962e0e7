package journal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// ErrLost means that the file of a journal is no longer the run's journal: the state directory was deleted, replaced or made
// read-only. Records written since would be lost.
var ErrLost = errors.New("the state directory was changed during the run")

// there reports whether the journal's file still exists at its path and is writable. It is called before each write: writing to a
// deleted file succeeds, and only its path shows that it is gone.
func (j *Journal) there() error {
	dir := Dir(j.root, j.run)
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
