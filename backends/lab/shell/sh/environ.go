package sh

import (
	"context"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"mvdan.cc/sh/v3/expand"

	"github.com/rdma-setup/rdma-setup/backends/lab/shell/vfs"
	"github.com/rdma-setup/rdma-setup/backends/lab/timing"
)

// An environ is the environment with which a shell starts. A shell has about a dozen variables, so a search from the first is
// faster than the sorted list of the interpreter's package.
type environ []variable

type variable struct {
	name string
	expand.Variable
}

// environOf returns the environment of a shell that p runs. Of several variables with one name the last one is valid.
func environOf(p *Proc) environ {
	list := p.Environ()
	e := make(environ, 0, len(list)+4)
	for _, kv := range list {
		if name, value, ok := strings.Cut(kv, "="); ok && name != "" {
			e = e.with(name, value)
		}
	}
	uid := strconv.Itoa(p.User.UID)
	return e.with("UID", uid).with("EUID", uid).with("GID", strconv.Itoa(p.User.Cred().GID())).with(ownPID, strconv.Itoa(p.PID))
}

// ownPID is the variable that a parsed script has instead of $$, for which the interpreter returns the PID of this program.
const ownPID = "LAB_SHELL_PID"

func (e environ) with(name, value string) environ {
	v := variable{name, expand.Variable{Set: true, Exported: true, Kind: expand.String, Str: value}}
	if i := slices.IndexFunc(e, func(v variable) bool { return v.name == name }); i >= 0 {
		e[i] = v
		return e
	}
	return append(e, v)
}

// Get implements expand.Environ.
func (e environ) Get(name string) expand.Variable {
	for _, v := range e {
		if v.name == name {
			return v.Variable
		}
	}
	return expand.Variable{}
}

// Each implements expand.Environ.
func (e environ) Each(f func(name string, v expand.Variable) bool) {
	for _, v := range e {
		if !f(v.name, v.Variable) {
			return
		}
	}
}

// exported returns the variables that programs of a shell get. The interpreter yields a changed variable again, after the first
// value.
func exported(env expand.Environ) []string {
	list := []string{}
	for name, v := range env.Each {
		i := slices.IndexFunc(list, func(kv string) bool { return strings.HasPrefix(kv, name) && kv[len(name)] == '=' })
		switch {
		case name == "UID" || name == "EUID" || name == "GID" || name == ownPID:
		case v.Exported && v.Kind == expand.String && i < 0:
			list = append(list, name+"="+v.Str)
		case v.Exported && v.Kind == expand.String:
			list[i] = name + "=" + v.Str
		case i >= 0:
			list = slices.Delete(list, i, i+1)
		}
	}
	return list
}

// Locks are the advisory locks of one machine, as set by flock(2) on files and directories. The zero value is ready to use.
type Locks struct {
	mu   sync.Mutex
	held map[string]chan struct{} // by path; closed when the lock is released
}

// Take locks a file. It waits until the lock is free or ctx ends. The lock is held until release is called.
func (l *Locks) Take(ctx context.Context, file string) (release func(), ok bool) {
	for {
		l.mu.Lock()
		other := l.held[file]
		if other == nil {
			if l.held == nil {
				l.held = map[string]chan struct{}{}
			}
			mine := make(chan struct{})
			l.held[file] = mine
			l.mu.Unlock()
			return func() {
				l.mu.Lock()
				defer l.mu.Unlock()
				delete(l.held, file)
				close(mine)
			}, true
		}
		l.mu.Unlock()
		select {
		case <-other:
		case <-ctx.Done():
			return nil, false
		}
	}
}

// Input opens an operand for reading; "-" and /dev/stdin are standard input.
func (p *Proc) Input(name string) (io.Reader, error) {
	if name == "-" || name == "/dev/stdin" {
		return p.Stdin, nil
	}
	f, err := p.Sys.FS.Open(p.User.Cred(), p.Path(name), os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	if i, err := f.Stat(); err != nil || i.IsDir() {
		return nil, syscall.EISDIR
	}
	return f, nil
}

// EachInput calls do for each operand, or for standard input if there are no operands. It prints an error for each file that
// cannot be read, and returns the largest exit status.
func (p *Proc) EachInput(names []string, do func(name string, r io.Reader) int) int {
	if len(names) == 0 {
		names = []string{"-"}
	}
	status := 0
	for _, name := range names {
		r, err := p.Input(name)
		if err != nil {
			status = max(status, p.Errorf("%s: %s", name, vfs.Reason(err)))
			continue
		}
		status = max(status, do(name, r))
	}
	return status
}

// steps counts the points of a process at which it can be interrupted. The points also exist if commands take no time.
type steps struct {
	passed atomic.Int32
	stop   int32 // point at which act is called; 0: none
	act    func()
}

// AtStep calls act when the process reaches its nth point, counted from 1. A program without steps has two points: before and
// after its work. AtStep must be called before the program runs.
func (p *Proc) AtStep(n int, act func()) { p.steps.stop, p.steps.act = int32(n), act }

// Kill sends the process a signal.
func (p *Proc) Kill(s Signal) { p.Sys.Procs.Kill(p.PID, s) }

// Spend waits for the duration in a row of the clock's table and reports whether the process is still alive.
func (p *Proc) Spend(ctx context.Context, row string) bool {
	return p.step(ctx, func() bool { return timing.Sleep(ctx, p.Sys.Clock.Of(row)) })
}

// step waits and then advances to the next point.
func (p *Proc) step(ctx context.Context, wait func() bool) bool {
	if !wait() {
		return false
	}
	if s := p.steps; s != nil && s.passed.Add(1) == s.stop {
		s.act()
	}
	return ctx.Err() == nil
}

// timed runs a program that takes time. The work happens in the middle: a process killed in the first half has done nothing,
// and one killed in the second half has done everything. A program with more than one step calls Spend itself.
func (s *System) timed(ctx context.Context, p *Proc, program Program) int {
	half, itself := s.Clock.Command(p.Args)
	if itself {
		return program(ctx, p)
	}
	wait := func() bool { return timing.Sleep(ctx, half/2) }
	if !p.step(ctx, wait) {
		return 1
	}
	status := program(ctx, p)
	if status == 0 {
		p.step(ctx, wait)
	}
	return status
}
