package journal

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
)

// A File is the file of a journal; *os.File implements it.
type File interface {
	io.WriteCloser
	Sync() error
	Truncate(size int64) error
}

// A Journal is the journal of one run, open for writing. It is safe for concurrent use.
type Journal struct {
	root, run string
	file      File
	clock     func() time.Time
	own       os.FileInfo // of the file that was opened

	asks chan ask
	done chan struct{} // closed when the writer has ended

	sending sync.RWMutex // held for reading while sending, so that Close waits
	closed  bool

	mu     sync.Mutex
	state  State
	broken error
}

type ask struct {
	recs  []Record
	reply chan error
}

// Append writes records in order and returns when they are on the disk. Records of concurrent callers share one fsync. After a
// failed write the journal accepts no more records and always returns the same error.
func (j *Journal) Append(recs ...Record) error {
	reply := make(chan error, 1)
	j.sending.RLock()
	if j.closed {
		j.sending.RUnlock()
		return errors.New("the journal is closed")
	}
	j.asks <- ask{recs, reply}
	j.sending.RUnlock()
	return <-reply
}

// Close ends the writer and closes the file.
func (j *Journal) Close() error {
	j.sending.Lock()
	if j.closed {
		j.sending.Unlock()
		return nil
	}
	j.closed = true
	close(j.asks)
	j.sending.Unlock()
	<-j.done
	return j.file.Close()
}

// State returns a copy of the journal's current state.
func (j *Journal) State() *State {
	j.mu.Lock()
	defer j.mu.Unlock()
	s := j.state
	s.Records = slices.Clip(s.Records) // appending never writes into the caller's slice
	return &s
}

// Run returns the run's id.
func (j *Journal) Run() string { return j.run }

// Err returns the error of a journal that accepts no more records.
func (j *Journal) Err() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.broken
}

const groupLimit = 256 // requests per fsync

func (j *Journal) start() {
	j.asks = make(chan ask, groupLimit)
	j.done = make(chan struct{})
	go j.write()
}

func (j *Journal) write() {
	defer close(j.done)
	for first := range j.asks {
		group := []ask{first}
	more:
		for len(group) < groupLimit {
			select {
			case a, ok := <-j.asks:
				if !ok {
					break more
				}
				group = append(group, a)
			default:
				break more
			}
		}
		err := j.commit(group)
		for _, a := range group {
			a.reply <- err
		}
	}
}

func (j *Journal) commit(group []ask) error {
	if err := j.Err(); err != nil {
		return err
	}
	var out []byte
	var recs []Record
	next := int64(len(j.state.Records)) // only this goroutine appends
	sum := j.state.sum
	for _, a := range group {
		for _, r := range a.recs {
			next++
			r.Seq = next
			if r.Time.IsZero() {
				r.Time = j.clock().UTC()
			}
			b, own, err := encode(j.run, sum, r)
			if err != nil {
				return j.fail(err)
			}
			sum = own
			out = append(out, b...)
			recs = append(recs, r)
		}
	}
	if err := j.there(); err != nil {
		return j.fail(err)
	}
	if _, err := j.file.Write(out); err != nil {
		// An incomplete write would be dropped when it is read; if it cannot be truncated, nothing changes.
		_ = j.file.Truncate(j.state.size)
		return j.fail(err)
	}
	if err := j.file.Sync(); err != nil {
		return j.fail(err)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.state.size += int64(len(out))
	j.state.sum = sum
	for _, r := range recs {
		if err := j.state.add(r); err != nil {
			return err
		}
	}
	return nil
}

func (j *Journal) fail(err error) error {
	hint := "Make the journal's directory writable, then run rdma-setup resume."
	switch {
	case errors.Is(err, syscall.ENOSPC):
		hint = "Free some space on the disk of the journal, then run rdma-setup resume."
	case errors.Is(err, ErrLost):
		hint = "Restore the state directory, then run rdma-setup resume. Without it the run cannot be rolled back: keep this output."
	}
	err = backends.Permanentf("", hint, "write the journal of run %s: %w", j.run, err)
	j.mu.Lock()
	j.broken = err
	j.mu.Unlock()
	return err
}

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
