package sh

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/interp"
	"mvdan.cc/sh/v3/syntax"

	"github.com/rdma-setup/rdma-setup/backends/lab/shell/vfs"
)

// Shell implements sh, bash and dash: -c COMMAND, -s, a script file, or statements read one by one from standard input. A login
// shell (-l, or a name that begins with "-") reads /etc/profile.
func Shell(ctx context.Context, p *Proc) int {
	a, err := parseArgs(p.Args[1:])
	if err != nil {
		return p.Fail(2, "%v", err)
	}
	if a.command != nil && !a.login && len(a.set) == 0 {
		if args := replacement(*a.command); args != nil {
			child := p.With(args...)
			if status, err := p.Sys.Exec(ctx, child); err == nil {
				return status
			} // else the interpreter reports it
		}
	}
	s := &shell{p: p, name: p.Name(), dash: strings.TrimPrefix(p.Name(), "-") == "sh" && p.Sys.Dash, umask: 0o022}
	if strings.HasPrefix(s.name, "-") {
		a.login, s.name = true, s.name[1:]
	}
	stdin, release, err := pipe(p.Stdin)
	if err != nil {
		return p.Fail(2, "%v", err)
	}
	defer release()
	s.stdin = stdin
	r, err := s.runner(a)
	if err != nil {
		return p.Fail(2, "%v", err)
	}
	if a.login {
		if profile, err := p.Sys.FS.ReadFile(p.User.Cred(), "/etc/profile"); err == nil {
			s.text(ctx, r, string(profile), "/etc/profile", false)
		}
	}
	switch {
	case a.command != nil && *a.command == evalEscaped && len(a.params) > 0:
		return s.parsed(ctx, r, p.Sys.Scripts.escaped(s.lang(), a.params[0]), a.zero, true)
	case a.command != nil:
		return s.text(ctx, r, *a.command, a.zero, true)
	case a.script != "":
		data, err := p.Sys.FS.ReadFile(p.User.Cred(), p.Path(a.script))
		if err != nil {
			return p.Fail(127, "%s: %s", a.script, vfs.Reason(err))
		}
		s.name = a.script
		return s.text(ctx, r, string(data), a.script, false)
	}
	return s.stream(ctx, r)
}

type shellArgs struct {
	command *string
	script  string
	zero    string // $0 of -c
	login   bool
	set     []string // options: -e, -u, -x, -o NAME
	params  []string
}

func parseArgs(args []string) (shellArgs, error) {
	var a shellArgs
	command, stdin := false, false
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
		flag := args[0]
		args = args[1:]
		if flag == "--" {
			break
		}
		if strings.HasPrefix(flag, "--") {
			if flag == "--login" {
				a.login = true
			}
			continue
		}
		for _, c := range flag[1:] {
			switch c {
			case 'c':
				command = true
			case 's':
				stdin = true
			case 'l':
				a.login = true
			case 'i':
			case 'e', 'u', 'x', 'f':
				a.set = append(a.set, "-"+string(c))
			case 'o':
				if len(args) == 0 {
					return a, errors.New("-o: option requires an argument")
				}
				a.set = append(a.set, "-o", args[0])
				args = args[1:]
			default:
				return a, fmt.Errorf("-%c: invalid option", c)
			}
		}
	}
	switch {
	case command && len(args) == 0:
		return a, errors.New("-c: option requires an argument")
	case command:
		a.command = &args[0]
		if len(args) > 1 {
			a.zero, a.params = args[1], args[2:]
		}
	case stdin:
		a.params = args
	case len(args) > 0:
		a.script, a.params = args[0], args[1:]
	}
	return a, nil
}

// pipe returns an *os.File for in, which the interpreter requires to share its input with programs. release ends the copying.
func pipe(in io.Reader) (f *os.File, release func(), err error) {
	switch in := in.(type) {
	case nil:
		return nil, func() {}, nil
	case *os.File:
		return in, func() {}, nil
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	go func() {
		_, _ = Copy(w, in) // ends with an error of the reader when the shell has ended
		_ = w.Close()
	}()
	return r, func() { _ = r.Close() }, nil
}

// Copy is like io.Copy with a small buffer. io.Copy allocates 32 KB for each copy, although most data is a few lines and
// hundreds of guests copy constantly.
func Copy(to io.Writer, from io.Reader) (int64, error) {
	room := rooms.Get().(*[4096]byte)
	defer rooms.Put(room)
	return io.CopyBuffer(struct{ io.Writer }{to}, struct{ io.Reader }{from}, room[:])
}

var rooms = sync.Pool{New: func() any { return new([4096]byte) }}

type shell struct {
	p     *Proc
	name  string // prefix of messages
	dash  bool
	umask os.FileMode
	stdin *os.File
}

func (s *shell) runner(a shellArgs) (*interp.Runner, error) {
	var in io.Reader
	if s.stdin != nil {
		in = s.stdin
	}
	dir := s.p.Dir
	if dir == "" {
		dir = "/"
	}
	options := []interp.RunnerOption{
		interp.Env(environOf(s.p)),
		interp.StdIO(in, s.p.Stdout, s.p.Stderr),
		interp.Params(append(append(a.set, "--"), a.params...)...),
		interp.CallHandler(s.call),
		interp.ExecHandlers(func(interp.ExecHandlerFunc) interp.ExecHandlerFunc { return s.exec }),
		interp.OpenHandler(s.open),
		interp.StatHandler(s.stat),
		interp.AccessHandler(s.access),
		interp.ReadDirHandler2(s.readDir),
		// interp.Dir would check the directory on the real disk.
		func(r *interp.Runner) error { r.Dir = dir; return nil },
	}
	return interp.New(options...)
}

func (s *shell) lang() syntax.LangVariant {
	if s.dash {
		return syntax.LangPOSIX
	}
	return syntax.LangBash
}

// text runs a complete script. name is $0; command is true for -c.
func (s *shell) text(ctx context.Context, r *interp.Runner, text, name string, command bool) int {
	return s.parsed(ctx, r, s.p.Sys.Scripts.parse(s.lang(), text), name, command)
}

func (s *shell) parsed(ctx context.Context, r *interp.Runner, parsed *script, name string, command bool) int {
	if name == "" {
		name = s.name
	}
	if parsed.err != nil {
		return s.syntaxError(parsed.err, command)
	}
	if parsed.detaches {
		s.p.Session.detach()
	}
	return s.status(r.Run(ctx, &syntax.File{Name: name, Stmts: parsed.stmts}))
}

func (s *shell) stream(ctx context.Context, r *interp.Runner) int {
	if s.stdin == nil {
		return 0
	}
	status := 0
	for stmt, err := range syntax.NewParser(syntax.Variant(s.lang())).StmtsSeq(s.stdin) {
		detaches := false
		if err == nil {
			if err = jumpsEndLists([]*syntax.Stmt{stmt}); err == nil {
				detaches, err = s.p.Sys.Scripts.prepare([]*syntax.Stmt{stmt})
			}
		}
		if err != nil {
			return s.syntaxError(err, false)
		}
		if detaches {
			s.p.Session.detach()
		}
		status = s.status(r.Run(ctx, stmt))
		if r.Exited() || ctx.Err() != nil {
			return status
		}
	}
	_ = r.Run(ctx, &syntax.File{}) // runs the exit trap
	return status
}

// replacement returns the program and the arguments of "exec /PROGRAM ARGUMENT...", if the words are plain or in single quotes:
// such a command needs no interpreter, which would read a long argument rune by rune. It returns nil for any other command.
func replacement(command string) []string {
	rest, is := strings.CutPrefix(command, "exec ")
	if !is || !strings.HasPrefix(rest, "/") {
		return nil
	}
	args := make([]string, 0, 8)
	for ; rest != ""; rest = strings.TrimLeft(rest, " ") {
		if quoted, is := strings.CutPrefix(rest, "'"); is {
			end := strings.IndexByte(quoted, '\'')
			if end < 0 || end+1 < len(quoted) && quoted[end+1] != ' ' {
				return nil
			}
			args, rest = append(args, quoted[:end]), quoted[end+1:]
			continue
		}
		end := strings.IndexFunc(rest, func(r rune) bool {
			return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-./:,+@", r))
		})
		switch {
		case end < 0:
			end = len(rest)
		case rest[end] != ' ':
			return nil
		}
		args, rest = append(args, rest[:end]), rest[end:]
	}
	return args
}

// evalEscaped is a command that runs its first argument, in which characters are escaped as for %b of printf. Its text is cached
// as one script, because decoding and parsing it would take longer than running it.
const evalEscaped = `eval "$(printf %b "$1")"`

// declares converts calls of "export" and "readonly" to declarations. The parser recognises them only in bash, and the
// interpreter does not implement them as builtins. In dash they are special builtins (POSIX.1-2024, Shell Command Language,
// 2.15).
func declares(s *syntax.Stmt) {
	call, is := s.Cmd.(*syntax.CallExpr)
	if !is || len(call.Args) == 0 || len(call.Assigns) > 0 {
		return
	}
	name := call.Args[0].Lit()
	if name != "export" && name != "readonly" {
		return
	}
	d := &syntax.DeclClause{Variant: call.Args[0].Parts[0].(*syntax.Lit)}
	for _, w := range call.Args[1:] {
		lit, is := w.Parts[0].(*syntax.Lit)
		if !is {
			return
		}
		name, rest, valued := strings.Cut(lit.Value, "=")
		if !syntax.ValidName(name) {
			return
		}
		a := &syntax.Assign{Name: &syntax.Lit{ValuePos: lit.ValuePos, Value: name}, Naked: !valued}
		if valued {
			a.Value = &syntax.Word{Parts: append([]syntax.WordPart{&syntax.Lit{ValuePos: lit.ValuePos, Value: rest}}, w.Parts[1:]...)}
		}
		d.Args = append(d.Args, a)
	}
	s.Cmd = d
}

// closesNothing reports whether a redirection closes a descriptor above the standard ones (3>&-). These shells do not support
// such descriptors, and closing a descriptor that is not open is not an error (POSIX.1-2024, Shell Command Language, 2.7.6).
func closesNothing(r *syntax.Redirect) bool {
	return r.N != nil && len(r.N.Value) == 1 && r.N.Value > "2" && r.Op == syntax.DplOut && r.Word != nil && r.Word.Lit() == "-"
}

func (s *shell) syntaxError(err error, command bool) int {
	line := uint(1)
	text := err.Error()
	var pe syntax.ParseError
	if errors.As(err, &pe) {
		line, text = pe.Pos.Line(), pe.Text
	}
	switch {
	case s.dash:
		fmt.Fprintf(s.p.Stderr, "%s: %d: Syntax error: %s\n", s.name, line, text)
	case command:
		fmt.Fprintf(s.p.Stderr, "%s: -c: line %d: syntax error: %s\n", s.name, line, text)
	default:
		fmt.Fprintf(s.p.Stderr, "%s: line %d: syntax error: %s\n", s.name, line, text)
	}
	return 2
}

func (s *shell) status(err error) int {
	var code interp.ExitStatus
	switch {
	case err == nil:
		return 0
	case errors.As(err, &code):
		return int(code)
	}
	fmt.Fprintf(s.p.Stderr, "%s: %v\n", s.name, err)
	return 2
}
