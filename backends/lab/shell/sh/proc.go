// Package sh runs command lines for the lab's machines: a POSIX shell over a file system in memory, with programs
// that are Go functions. No command line reaches the machine that the lab runs on.
package sh

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/rdma-setup/rdma-setup/backends/lab/shell/vfs"
)

// A User is who runs a process.
type User struct {
	Name  string
	UID   int
	GIDs  []int // the first is the primary group
	Home  string
	Shell string // /bin/bash
}

// Cred returns the user's credential for the file system.
func (u User) Cred() vfs.Cred { return vfs.Cred{UID: u.UID, GIDs: u.GIDs} }

// A Program is what runs when its file is executed. It returns the exit status. It must end soon after ctx does;
// what it returns then is replaced by the signal's status.
type Program func(ctx context.Context, p *Proc) int

// A Proc is one process: the environment that a program sees.
type Proc struct {
	Args           []string // Args[0] is the name it was called by
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Env            []string // KEY=VALUE
	Dir            string
	User           User
	Session        *Session
	PID            int
	Sys            *System

	steps *steps
}

// A Session is shared by the processes of one login.
type Session struct {
	Memlock int64 // KiB; -1 is unlimited
	TTY     bool
	Peer    string // address of the client, "" on the console
	Drop    func() // cuts the connection; nil on the console

	detached atomic.Bool
}

// Errorf writes "NAME: message" to standard error and returns 1.
func (p *Proc) Errorf(format string, args ...any) int {
	return p.Fail(1, format, args...)
}

// Fail is Errorf with another exit status.
func (p *Proc) Fail(status int, format string, args ...any) int {
	fmt.Fprintf(p.Stderr, "%s: %s\n", p.Name(), fmt.Sprintf(format, args...))
	return status
}

// Printf writes to standard output.
func (p *Proc) Printf(format string, args ...any) { fmt.Fprintf(p.Stdout, format, args...) }

// Name returns the base name that the process was called by.
func (p *Proc) Name() string { return p.Args[0][strings.LastIndex(p.Args[0], "/")+1:] }

// Path makes name absolute, seen from the working directory.
func (p *Proc) Path(name string) string { return vfs.Join(p.Dir, name) }

// Root reports whether the process runs as root.
func (p *Proc) Root() bool { return p.User.UID == 0 }

// Getenv returns a variable of the environment, "" when it is not set.
func (p *Proc) Getenv(key string) string {
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

// Setenv sets a variable of the process's own environment.
func (p *Proc) Setenv(key, value string) {
	p.Env = slices.DeleteFunc(p.Env, func(kv string) bool { return strings.HasPrefix(kv, key+"=") })
	p.Env = append(p.Env, key+"="+value)
}

// detach records that something continues after the login's command has ended.
func (s *Session) detach() { s.detached.Store(true) }

// Detached reports whether a command was put in the background.
func (s *Session) Detached() bool { return s.detached.Load() }
