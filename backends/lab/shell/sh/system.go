package sh

import (
	"context"
	"errors"
	"io"
	"os"
	"path"
	"strings"
	"syscall"
	"time"

	"github.com/rdma-setup/rdma-setup/backends/lab/shell/vfs"
	"github.com/rdma-setup/rdma-setup/backends/lab/timing"
)

// elf marks the file of a lab program; the name of the program follows.
const elf = "\x7fELF\x02\x01\x01\x00lab:"

// A System runs the programs of one machine. Set its fields before the first process starts.
type System struct {
	FS       *vfs.FS
	Programs map[string]Program // by the name in the program file
	Procs    Table
	Locks    Locks
	Now      func() time.Time
	Dash     bool // /bin/sh is dash, with the error messages of dash; otherwise it is bash
	Clock    timing.Clock
	Scripts  *Scripts // cache shared with other machines; nil: every script is parsed again

	// Dial, if not nil, connects to a TCP port: bash opens /dev/tcp/HOST/PORT in a redirection (bash(1), REDIRECTION).
	Dial func(host, port string) error

	// Wrap, if not nil, is called for every program. It calls run, or applies a fault rule instead.
	Wrap func(ctx context.Context, p *Proc, run func() int) int
}

// Binary returns the content of a program file.
func Binary(program string) []byte { return []byte(elf + program + "\n") }

// Install writes the file of a program to each path, as a package does.
func (s *System) Install(program string, paths ...string) error {
	for _, p := range paths {
		if err := s.FS.MkdirAll(vfs.Root(), path.Dir(p), 0o755); err != nil {
			return err
		}
		if err := s.FS.WriteFile(vfs.Root(), p, Binary(program), 0o755); err != nil {
			return err
		}
	}
	return nil
}

// LookPath returns the file that p executes for a command name.
func (s *System) LookPath(p *Proc, name string) (string, error) {
	if strings.Contains(name, "/") {
		return p.Path(name), s.runnable(p, p.Path(name))
	}
	found := error(syscall.ENOENT)
	for dir := range strings.SplitSeq(p.Getenv("PATH"), ":") {
		file := dir + "/" + name
		if !path.IsAbs(dir) {
			file = vfs.Join(p.Dir, path.Join(dir, name))
		}
		err := s.runnable(p, file)
		if err == nil {
			return file, nil
		}
		if errors.Is(err, syscall.EACCES) {
			found = err
		}
	}
	return "", found
}

func (s *System) runnable(p *Proc, file string) error {
	return s.FS.Runnable(p.User.Cred(), file)
}

// Exec runs p.Args and returns its exit status, or 128+n if signal n terminated it. If the command cannot be executed, it
// returns the error of execvp.
func (s *System) Exec(ctx context.Context, p *Proc) (int, error) {
	file, err := s.LookPath(p, p.Args[0])
	if err != nil {
		return 127, err
	}
	return s.exec(ctx, p, file, 0)
}

func (s *System) exec(ctx context.Context, p *Proc, file string, depth int) (int, error) {
	data, err := s.FS.ReadFile(vfs.Root(), file)
	if err != nil {
		return 126, err
	}
	text := string(data)
	if name, ok := strings.CutPrefix(text, elf); ok {
		name, _, _ = strings.Cut(name, "\n")
		program, ok := s.Programs[name]
		if !ok {
			return 126, syscall.ENOEXEC
		}
		return s.run(ctx, p, program), nil
	}
	if line, ok := strings.CutPrefix(text, "#!"); ok && depth < 4 {
		line, _, _ = strings.Cut(line, "\n")
		words := strings.Fields(line)
		if len(words) == 0 || s.runnable(p, words[0]) != nil {
			return 126, ErrInterpreter{Script: file, Interpreter: strings.Join(words, " ")}
		}
		child := *p
		child.Args = append(append(words, file), p.Args[1:]...)
		return s.exec(ctx, &child, words[0], depth+1)
	}
	// Like execvp with ENOEXEC: /bin/sh runs a script without an interpreter line.
	child := *p
	child.Args = append([]string{"sh", file}, p.Args[1:]...)
	return s.run(ctx, &child, Shell), nil
}

func (s *System) run(ctx context.Context, p *Proc, program Program) int {
	p.Session.started.Add(1)
	p.Session.running.Add(1)
	defer p.Session.ended()
	ctx, entry := s.Procs.start(ctx, p, s.Now())
	defer func() { s.Procs.end(entry, p.Session.Detached()) }()
	child := *p
	child.PID, child.Sys, child.steps = entry.PID, s, &steps{}
	if f, ok := p.Stdin.(*os.File); ok {
		// A signal must also terminate a program that waits for input.
		stop := context.AfterFunc(ctx, func() { _ = f.SetReadDeadline(time.Unix(1, 0)) })
		defer func() {
			if !stop() {
				_ = f.SetReadDeadline(time.Time{})
			}
		}()
	}
	child.Stdout, child.Stderr = writer(p.Stdout, entry), writer(p.Stderr, entry)
	var status int
	if s.Wrap != nil {
		status = s.Wrap(ctx, &child, func() int { return s.timed(ctx, &child, program) })
	} else {
		status = s.timed(ctx, &child, program)
	}
	if ctx.Err() != nil {
		return Cause(ctx).Status()
	}
	return status
}

// ErrInterpreter reports that the interpreter line of a script contains a program that does not exist.
type ErrInterpreter struct{ Script, Interpreter string }

func (e ErrInterpreter) Error() string {
	return e.Interpreter + ": bad interpreter: No such file or directory"
}

// IgnoreHangup makes a process ignore SIGHUP, as nohup does.
func (s *System) IgnoreHangup(pid int) {
	s.Procs.mu.Lock()
	defer s.Procs.mu.Unlock()
	if r := s.Procs.all[pid]; r != nil {
		r.ignore = true
	}
}

// pipeWriter kills the process that writes to a pipe without readers.
type pipeWriter struct {
	io.Writer
	entry *Running
}

// writer returns a process's own handle of its parent's output, so that SIGPIPE kills only the writing process and not its
// parents.
func writer(w io.Writer, entry *Running) io.Writer {
	if parent, is := w.(pipeWriter); is {
		w = parent.Writer
	}
	return pipeWriter{w, entry}
}

func (w pipeWriter) Write(b []byte) (int, error) {
	n, err := w.Writer.Write(b)
	if errors.Is(err, syscall.EPIPE) || errors.Is(err, io.ErrClosedPipe) {
		w.entry.kill(SIGPIPE)
	}
	return n, err
}
