package engine_test

import (
	"errors"
	"sync"

	"github.com/rdma-setup/rdma-setup/wizard/engine/journal"
)

// ErrDead is the error of every call after the crash.
var ErrDead = errors.New("the process is dead")

// A Crash kills the process at one of its points: before and after every write and every sync of the journal, and before and
// after every operation. Nothing has an effect afterwards. With Torn the write at the point is truncated.
type Crash struct {
	At   int // the point, from 1; 0: never
	Torn bool

	mu     sync.Mutex
	n      int
	dead   bool
	writes map[int]bool
}

// Writes reports whether the point is directly before a write of the journal, where Torn makes a difference.
func (c *Crash) Writes(at int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.writes[at]
}

// Points returns the number of points passed.
func (c *Crash) Points() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n
}

// Kill kills the process now.
func (c *Crash) Kill() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dead = true
}

// Dead reports whether the process was killed.
func (c *Crash) Dead() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dead
}

// step passes a point; it may kill the process if counts is set.
func (c *Crash) step(counts bool) error {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if counts && !c.dead {
		c.n++
		c.dead = c.n == c.At
	}
	if c.dead {
		return ErrDead
	}
	return nil
}

// File is a journal option that inserts the crash between the journal and its file. The file is not synced to the disk: what the
// process wrote survives.
func (c *Crash) File() journal.Option {
	return journal.WithFile(func(f journal.File) journal.File { return &file{f, c} })
}

type file struct {
	journal.File
	crash *Crash
}

func (f *file) Write(b []byte) (int, error) {
	alive := f.crash.writing()
	if err := f.crash.step(true); err != nil {
		if f.crash.Torn && alive {
			n, _ := f.File.Write(b[:len(b)/2])
			return n, err
		}
		return 0, err
	}
	n, err := f.File.Write(b)
	if dead := f.crash.step(true); dead != nil {
		return n, dead
	}
	return n, err
}

// writing records that the next point is before a write, and reports whether the process is alive.
func (c *Crash) writing() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.writes == nil {
		c.writes = map[int]bool{}
	}
	c.writes[c.n+1] = true
	return !c.dead
}

func (f *file) Sync() error { return f.crash.step(true) }

func (f *file) Truncate(size int64) error {
	if f.crash.Dead() {
		return ErrDead
	}
	return f.File.Truncate(size)
}
