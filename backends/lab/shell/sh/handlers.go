package sh

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"mvdan.cc/sh/v3/interp"

	"github.com/rdma-setup/rdma-setup/backends/lab/shell/vfs"
)

// own is the prefix for builtins that the interpreter does not implement, or whose implementation would access the real system.
const own = "\x00"

// ownBuiltin reports whether exec handles a builtin. The interpreter handles the others.
func ownBuiltin(args []string) bool {
	switch args[0] {
	case "kill", "ulimit", "umask", "type", "hash", "times", "jobs", "fc", "newgrp", "history", "logout":
		return true
	case "command":
		return len(args) > 1 && (args[1] == "-v" || args[1] == "-V")
	}
	return false
}

func (s *shell) call(_ context.Context, args []string) ([]string, error) {
	if ownBuiltin(args) {
		args = slices.Clone(args)
		args[0] = own + args[0]
	}
	if len(args) > 2 && args[0] == "printf" && (args[1] == "%b" || args[1] == `%b\n`) {
		args = slices.Clone(args)
		for i := range args[2:] {
			args[2+i] = octals(args[2+i])
		}
	}
	return args, nil
}

// octals replaces \0047, where up to three digits follow the 0 (POSIX printf, %b; also in bash, dash and busybox), with \047,
// which the interpreter supports. An escaped backslash does not start such an escape.
func octals(text string) string {
	var b strings.Builder
	b.Grow(len(text))
	for {
		i := strings.IndexByte(text, '\\')
		if i < 0 || i+1 == len(text) {
			b.WriteString(text)
			return b.String()
		}
		n := i + 2
		if text[i+1] == '0' {
			for n < len(text) && n < i+5 && '0' <= text[n] && text[n] <= '7' {
				n++
			}
		}
		if n == i+5 && text[i+2] <= '3' {
			b.WriteString(text[:i+1])
			b.WriteString(text[i+2 : n])
		} else {
			b.WriteString(text[:n])
		}
		text = text[n:]
	}
}

func (s *shell) exec(ctx context.Context, args []string) error {
	hc := interp.HandlerCtx(ctx)
	child := *s.p
	p := &child
	p.Args, p.Dir, p.Stdout, p.Stderr, p.Env, p.shell = args, hc.Dir, hc.Stdout, hc.Stderr, nil, hc.Env
	if f, ok := hc.Stdin.(*os.File); ok && f != nil {
		p.Stdin = f
	} else {
		p.Stdin = strings.NewReader("")
	}
	var status int
	if name, ok := strings.CutPrefix(args[0], own); ok {
		p.Args[0] = name
		status = s.builtin(ctx, p)
	} else {
		var err error
		if status, err = s.p.Sys.Exec(ctx, p); err != nil {
			status = s.notRun(hc, args[0], err)
		}
	}
	if status != 0 {
		return interp.ExitStatus(uint8(status))
	}
	return nil
}

// where returns the prefix of a message about line n of the script.
func (s *shell) where(line uint) string {
	if s.dash {
		return fmt.Sprintf("%s: %d:", s.name, max(line, 1))
	}
	return fmt.Sprintf("%s: line %d:", s.name, max(line, 1))
}

func (s *shell) notRun(hc interp.HandlerContext, name string, err error) int {
	status, text := 126, vfs.Reason(err)
	var bad ErrInterpreter
	switch {
	case errors.As(err, &bad):
		text = bad.Error()
	case errors.Is(err, syscall.ENOENT) && !strings.Contains(name, "/"):
		status, text = 127, "command not found"
		if s.dash {
			text = "not found"
		}
	case errors.Is(err, syscall.ENOENT), errors.Is(err, syscall.ENOTDIR):
		status = 127
		if s.dash && errors.Is(err, syscall.ENOENT) {
			text = "not found"
		}
	}
	fmt.Fprintf(hc.Stderr, "%s %s: %s\n", s.where(hc.Pos.Line()), name, text)
	return status
}

func (s *shell) open(ctx context.Context, name string, flag int, perm os.FileMode) (io.ReadWriteCloser, error) {
	hc := interp.HandlerCtx(ctx)
	if to, is := strings.CutPrefix(name, "/dev/tcp/"); is && s.p.Sys.Dial != nil {
		host, port, _ := strings.Cut(to, "/")
		if err := s.p.Sys.Dial(host, port); err != nil {
			return nil, &fs.PathError{Op: s.where(hc.Pos.Line()), Path: name, Err: err}
		}
		return os.Open(os.DevNull) // nothing is exchanged
	}
	f, err := s.p.Sys.FS.Open(s.p.User.Cred(), vfs.Join(hc.Dir, name), flag, (perm|0o666)&^s.umask&0o666)
	if err != nil {
		return nil, &fs.PathError{Op: s.where(hc.Pos.Line()), Path: name, Err: errors.New(vfs.Reason(err))}
	}
	if info, _ := f.Stat(); info != nil && info.IsDir() {
		return nil, &fs.PathError{Op: s.where(hc.Pos.Line()), Path: name, Err: errors.New(vfs.Reason(syscall.EISDIR))}
	}
	if flag&(os.O_WRONLY|os.O_RDWR) == 0 {
		return input(f)
	}
	return redirected{f, s}, nil
}

// pipeHolds is the number of bytes that can be written to any new pipe without a reader: one page (pipe(7), "Pipe capacity").
const pipeHolds = 4096

// input converts a file to an *os.File. For any other reader the interpreter creates a pipe of its own and never closes its
// read end.
func input(f *vfs.File) (io.ReadWriteCloser, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	copied := func() {
		_, _ = Copy(w, f) // ends when the reader has closed its end
		_ = w.Close()
		_ = f.Close()
	}
	if i, err := f.Stat(); err == nil && i.Size() <= pipeHolds {
		copied()
	} else {
		go copied()
	}
	return r, nil
}

// redirected is a file opened by a redirection. It prints the error of a write to a computed file, as the writing program
// would.
type redirected struct {
	*vfs.File
	s *shell
}

func (r redirected) Close() error {
	err := r.File.Close()
	if err != nil {
		fmt.Fprintf(r.s.p.Stderr, "%s write error: %s\n", r.s.where(1), vfs.Reason(err))
	}
	return err
}

func (s *shell) stat(_ context.Context, name string, follow bool) (fs.FileInfo, error) {
	if follow {
		return asInfo(s.p.Sys.FS.Stat(s.p.User.Cred(), name))
	}
	return asInfo(s.p.Sys.FS.Lstat(s.p.User.Cred(), name))
}

func asInfo(i vfs.Info, err error) (fs.FileInfo, error) {
	if err != nil {
		return nil, err
	}
	return i, nil
}

func (s *shell) access(_ context.Context, name string, mode interp.AccessMode) error {
	return s.p.Sys.FS.Access(s.p.User.Cred(), name, fs.FileMode(mode))
}

func (s *shell) readDir(_ context.Context, name string) ([]fs.DirEntry, error) {
	list, err := s.p.Sys.FS.ReadDir(s.p.User.Cred(), name)
	entries := make([]fs.DirEntry, len(list))
	for i := range list {
		entries[i] = &list[i]
	}
	return entries, err
}

func (s *shell) builtin(ctx context.Context, p *Proc) int {
	switch p.Args[0] {
	case "command", "type":
		return s.which(p)
	case "umask":
		return s.setUmask(p)
	case "ulimit":
		return ulimit(p)
	case "kill":
		status, err := p.Sys.Exec(ctx, p)
		if err != nil {
			return p.Fail(127, "%s", vfs.Reason(err))
		}
		return status
	}
	return 0
}

func (s *shell) which(p *Proc) int {
	status := 0
	for _, name := range p.Args[1:] {
		if strings.HasPrefix(name, "-") {
			continue
		}
		file, err := p.Sys.LookPath(p, name)
		switch {
		case interp.IsBuiltin(name) && p.Args[0] == "type":
			p.Printf("%s is a shell builtin\n", name)
		case interp.IsBuiltin(name):
			p.Printf("%s\n", name)
		case err == nil && p.Args[0] == "type":
			p.Printf("%s is %s\n", name, file)
		case err == nil:
			p.Printf("%s\n", file)
		default:
			if p.Args[0] == "type" {
				fmt.Fprintf(p.Stderr, "%s type: %s: not found\n", s.where(1), name)
			}
			status = 1
		}
	}
	return status
}

func (s *shell) setUmask(p *Proc) int {
	if len(p.Args) == 1 {
		p.Printf("%04o\n", s.umask)
		return 0
	}
	n, err := strconv.ParseUint(p.Args[1], 8, 12)
	if err != nil {
		return p.Errorf("%s: octal number out of range", p.Args[1])
	}
	s.umask = os.FileMode(n)
	return 0
}

func ulimit(p *Proc) int {
	value := func(kb int64) string {
		if kb < 0 {
			return "unlimited"
		}
		return strconv.FormatInt(kb, 10)
	}
	what, args := "-f", p.Args[1:]
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		if f := strings.Trim(args[0], "-HS"); f != "" {
			what = "-" + f
		}
		args = args[1:]
	}
	switch {
	case what == "-l" && len(args) == 0:
		p.Printf("%s\n", value(p.Session.Memlock))
	case what == "-l":
		kb := int64(-1)
		if args[0] != "unlimited" {
			n, err := strconv.ParseInt(args[0], 10, 64)
			if err != nil {
				return p.Errorf("%s: invalid number", args[0])
			}
			kb = n
		}
		if have := p.Session.Memlock; !p.Root() && have >= 0 && (kb < 0 || kb > have) {
			return p.Errorf("max locked memory: cannot modify limit: Operation not permitted")
		}
		p.Session.Memlock = kb
	case what == "-n":
		p.Printf("1024\n")
	default:
		p.Printf("unlimited\n")
	}
	return 0
}
