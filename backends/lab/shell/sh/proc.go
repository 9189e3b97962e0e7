// Package sh runs command lines on the lab's machines. It implements a POSIX shell with a file system in memory, in which
// programs are Go functions. Command lines never access the machine on which the lab runs.
package sh

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"mvdan.cc/sh/v3/expand"

	"github.com/rdma-setup/rdma-setup/backends/lab/shell/vfs"
)

// A User is the user who runs a process.
type User struct {
	Name  string
	UID   int
	GIDs  []int // the first is the primary group
	Home  string
	Shell string // /bin/bash
}

// Cred returns the user's credential for the file system.
func (u User) Cred() vfs.Cred { return vfs.Cred{UID: u.UID, GIDs: u.GIDs} }

// A Program implements an executable file. It returns the exit status. It must return soon after ctx is cancelled; its result
// is then replaced by the status for the signal.
type Program func(ctx context.Context, p *Proc) int

// A Proc is one process: the environment in which a program runs.
type Proc struct {
	Args           []string // Args[0] is the name of the command
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Env            []string // KEY=VALUE; nil: the environment of the shell that runs the process, see Environ
	Dir            string
	User           User
	Session        *Session
	PID            int
	Sys            *System

	shell expand.Environ // variables of the shell that runs the process, used if Env is nil
	steps *steps
}

// A Session is the state shared by the processes of one login.
type Session struct {
	Memlock int64 // KiB; -1 is unlimited
	TTY     bool
	Peer    string // client address, "" on the console
	Drop    func() // closes the connection; nil on the console
	Release func() // called when the last background process has ended; nil: not called

	detached atomic.Bool
	running  atomic.Int32 // processes
	started  atomic.Int64 // processes so far
}

// lull is how long a session has no process before its background commands count as ended: between two programs of a background
// command there is none.
const lull = 5 * time.Second

// ended is called when a process of the session has ended.
func (s *Session) ended() {
	started := s.started.Load()
	if s.running.Add(-1) == 0 && s.Detached() && s.Release != nil {
		time.AfterFunc(lull, func() {
			if s.running.Load() == 0 && s.started.Load() == started {
				s.Release()
			}
		})
	}
}

// Errorf prints "NAME: message" to standard error and returns 1.
func (p *Proc) Errorf(format string, args ...any) int {
	return p.Fail(1, format, args...)
}

// Fail is like Errorf, but returns status.
func (p *Proc) Fail(status int, format string, args ...any) int {
	fmt.Fprintf(p.Stderr, "%s: %s\n", p.Name(), fmt.Sprintf(format, args...))
	return status
}

// Printf prints to standard output.
func (p *Proc) Printf(format string, args ...any) { fmt.Fprintf(p.Stdout, format, args...) }

// Name returns the base name of the command.
func (p *Proc) Name() string { return p.Args[0][strings.LastIndex(p.Args[0], "/")+1:] }

// Path returns the absolute path of name, relative to the working directory.
func (p *Proc) Path(name string) string { return vfs.Join(p.Dir, name) }

// Root reports whether the process runs as root.
func (p *Proc) Root() bool { return p.User.UID == 0 }

// Environ returns the environment as KEY=VALUE.
func (p *Proc) Environ() []string {
	if p.Env == nil && p.shell != nil {
		return exported(p.shell)
	}
	return p.Env
}

// Getenv returns an environment variable, or "" if it is not set.
func (p *Proc) Getenv(key string) string {
	if p.Env == nil && p.shell != nil {
		if v := p.shell.Get(key); v.Exported && v.Kind == expand.String {
			return v.Str
		}
		return ""
	}
	for _, kv := range slices.Backward(p.Env) {
		if v, ok := strings.CutPrefix(kv, key+"="); ok {
			return v
		}
	}
	return ""
}

// With returns a copy of the process that runs args.
func (p *Proc) With(args ...string) *Proc {
	child := *p
	child.Args, child.PID = args, 0
	child.Env = slices.Clone(p.Env)
	return &child
}

// Setenv sets an environment variable of the process.
func (p *Proc) Setenv(key, value string) {
	p.Env = slices.DeleteFunc(slices.Clone(p.Environ()), func(kv string) bool { return strings.HasPrefix(kv, key+"=") })
	p.Env = append(p.Env, key+"="+value)
}

// detach records that a background process continues after the session's command has ended.
func (s *Session) detach() { s.detached.Store(true) }

// Detached reports whether a command was started in the background.
func (s *Session) Detached() bool { return s.detached.Load() }
