package sh

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"
)

// A Signal is the number of a POSIX signal.
type Signal int

// The supported signals.
const (
	SIGHUP  Signal = 1
	SIGINT  Signal = 2
	SIGQUIT Signal = 3
	SIGKILL Signal = 9
	SIGPIPE Signal = 13
	SIGTERM Signal = 15
)

// Signals returns the signals by name, without SIG.
func Signals() map[string]Signal {
	return map[string]Signal{"HUP": SIGHUP, "INT": SIGINT, "QUIT": SIGQUIT, "KILL": SIGKILL, "PIPE": SIGPIPE, "TERM": SIGTERM}
}

// Error implements error, so that a signal can be the cause of a cancelled context.
func (s Signal) Error() string { return "killed by a signal" }

// Status returns the exit status that a shell reports for a process terminated by the signal.
func (s Signal) Status() int { return 128 + int(s) }

// Cause returns the signal with which ctx was cancelled, or SIGTERM if there is none.
func Cause(ctx context.Context) Signal {
	if s, ok := context.Cause(ctx).(Signal); ok {
		return s
	}
	return SIGTERM
}

// A Running describes a running process.
type Running struct {
	PID, PPID int
	Args      []string
	User      User
	Since     time.Time
	kill      context.CancelCauseFunc
	ignore    bool // ignores SIGHUP
}

// A Table is the process table of a machine.
type Table struct {
	mu   sync.Mutex
	next int
	all  map[int]*Running
	idle chan struct{} // closed and replaced when the table becomes empty
}

func (t *Table) start(ctx context.Context, p *Proc, now time.Time) (context.Context, *Running) {
	ctx, kill := context.WithCancelCause(ctx)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.all == nil {
		t.all, t.next = map[int]*Running{}, 1200
	}
	t.next++
	r := &Running{PID: t.next, PPID: p.PID, Args: slices.Clone(p.Args), User: p.User, Since: now, kill: kill}
	t.all[r.PID] = r
	return ctx, r
}

// end removes a process from the table. Its background processes continue.
func (t *Table) end(r *Running, background bool) {
	if !background {
		r.kill(nil)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.all, r.PID)
	if len(t.all) == 0 && t.idle != nil {
		close(t.idle)
		t.idle = nil
	}
}

// List returns the running processes, sorted by PID.
func (t *Table) List() []Running {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := make([]Running, 0, len(t.all))
	for _, r := range slices.SortedFunc(maps.Values(t.all), func(a, b *Running) int { return cmp.Compare(a.PID, b.PID) }) {
		list = append(list, *r)
	}
	return list
}

// Kill sends a signal to a process and reports whether the process exists.
func (t *Table) Kill(pid int, s Signal) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	r, ok := t.all[pid]
	if ok && !(s == SIGHUP && r.ignore) {
		r.kill(s)
	}
	return ok
}

// KillAll kills every process, as a shutdown does, and waits until all have ended or ctx ends.
func (t *Table) KillAll(ctx context.Context) {
	t.mu.Lock()
	for _, r := range t.all {
		r.kill(SIGKILL)
	}
	if len(t.all) == 0 {
		t.mu.Unlock()
		return
	}
	if t.idle == nil {
		t.idle = make(chan struct{})
	}
	idle := t.idle
	t.mu.Unlock()
	select {
	case <-idle:
	case <-ctx.Done():
	}
}
