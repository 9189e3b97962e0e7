package ssh

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/rdma-setup/rdma-setup/backends"
)

// A Command is a program with its arguments, or a script for /bin/sh. It runs in the C locale with the system directories in
// PATH, whatever the login shell is. SSH_CONNECTION contains the addresses of the connection, SSH_MEMLOCK the output of ulimit -l
// for the user (also under sudo, where root's limit may differ).
type Command struct {
	Argv   []string // either this
	Script string   // or this
	What   string   // what it does, for traces; "": the name of its first program

	Stdin     []byte
	Sudo      bool              // as root
	Limit     time.Duration     // time limit; 0: until ctx ends
	MaxOutput int               // maximum size of stdout and of stderr, more on stdout is an error; 0: 1 MiB
	OnLine    func(line string) // called with each line of stdout as it comes; must not block
}

// A Result is the outcome of a command. Stdout and Stderr are raw and untrusted.
type Result struct {
	Stdout, Stderr string
	ExitCode       int    // -1: ended by a signal
	Signal         string // the name of the signal, if the server reports it
}

// ErrConnectionLost is in the error chain of commands whose connection was lost while they ran: their effect is unknown.
var ErrConnectionLost = errors.New("the connection was lost while the command ran; its result is not known")

// ErrTooSlow is in the error chain of commands that exceeded their limit and were ended.
var ErrTooSlow = errors.New("it took too long and was stopped")

// ErrTooMuch is in the error chain of commands that printed more than MaxOutput to stdout. They ran to completion; their
// truncated output is not returned as if it were complete.
var ErrTooMuch = errors.New("it printed more than the limit for one command")

const (
	defaultOutput = 1 << 20
	killTime      = 8 * time.Second
	sudoTime      = 30 * time.Second // PAM delays refusals by seconds, not more
)

func (c Command) script() string {
	if c.Script != "" {
		return c.Script
	}
	return QuoteAll(c.Argv...)
}

// Run runs one command. A command that ran returns no error whatever its exit code, unless it printed too much. Errors come from
// the connection, from sudo (kinds auth and permission), from a ctx that ended or from the limit. If ctx ends, the command and
// all its child processes are ended. The Result of a failed command holds the output so far.
func (c *Conn) Run(ctx context.Context, cmd Command) (Result, error) {
	began := time.Now()
	r, err := c.run(ctx, cmd)
	c.trace(cmd, began, r, err)
	return r, err
}

func (c *Conn) run(ctx context.Context, cmd Command) (Result, error) {
	f := newFrame()
	var password string
	if cmd.Sudo {
		state, err := c.sudoState(ctx)
		if err != nil {
			return Result{}, err
		}
		f.sudo = state.mode != SudoRoot
		f.password = state.mode == SudoPassword
		password = state.password
	}
	r, err := c.exchange(ctx, cmd, f, password)
	if err != nil && cmd.Sudo {
		c.forgetSudo(err)
	}
	return r, err
}

// exchange runs a framed command in a session of its own.
func (c *Conn) exchange(ctx context.Context, cmd Command, f frame, password string) (Result, error) {
	if limit := c.link.pool.config.limitOf(cmd); limit > 0 {
		limited, cancel := context.WithTimeoutCause(ctx, limit, ErrTooSlow)
		defer cancel()
		limited, over := (*backends.Voice)(nil).Waiting(limited, cmp.Or(cmd.What, program(cmd.script())), c.target.String(), limit)
		defer over()
		ctx = limited
	}
	select {
	case c.link.sessions <- struct{}{}:
		defer func() {
			<-c.link.sessions
			c.link.pool.rest(c.link)
		}()
	case <-ctx.Done():
		return Result{}, c.ended(ctx)
	}
	n, session, err := c.session(ctx)
	if err != nil {
		return Result{}, err
	}
	defer session.Close()

	x := newExchange(c, n, session, cmd, f, password)
	if err := x.start(); err != nil {
		return Result{}, err
	}
	waited := make(chan error, 1)
	go func() { waited <- session.Wait() }()
	select {
	case err = <-waited:
	case <-ctx.Done():
		x.kill()
		select {
		case <-waited:
		case <-time.After(time.Second):
		}
		session.Close()
		return x.result(nil), c.ended(ctx)
	}
	return x.judge(ctx, err)
}

// session opens a session, on a new connection if the old one is broken: nothing was sent yet.
func (c *Conn) session(ctx context.Context) (*line, *ssh.Session, error) {
	for try := 1; ; try++ {
		n, err := c.link.connect(ctx, c.target)
		if err != nil {
			return nil, nil, err
		}
		type opened struct {
			s   *ssh.Session
			err error
		}
		ch := make(chan opened, 1)
		go func() {
			s, err := n.client.NewSession()
			ch <- opened{s, err}
		}()
		var o opened
		select {
		case o = <-ch:
		case <-ctx.Done():
			go func() {
				if o := <-ch; o.s != nil {
					o.s.Close()
				}
			}()
			return nil, nil, c.ended(ctx)
		case <-n.dead:
			o.err = io.EOF
		}
		if o.err == nil {
			return n, o.s, nil
		}
		var refused *ssh.OpenChannelError
		if try >= 2 || errors.As(o.err, &refused) {
			return nil, nil, backends.Unreachablef(c.target.String(), "", "open a session: %s", Excerpt(o.err.Error()))
		}
		n.close()
		<-n.dead
	}
}

func (c *Conn) ended(ctx context.Context) error {
	if cause := context.Cause(ctx); errors.Is(cause, ErrTooSlow) {
		return backends.Transientf(c.target.String(), "", "a command was run: %w", cause)
	}
	return interrupted(ctx, c.target, "run a command")
}

// trace reports an attempt to connect and log in, without what was entered. Jump hosts have attempts of their own.
func (l *login) trace(began time.Time, err error) {
	p := l.pool
	if p.config.Trace == nil {
		return
	}
	p.config.Trace(backends.Call{
		ID: fmt.Sprintf("ssh-%d", p.calls.Add(1)), Method: "ssh connect", Target: fmt.Sprintf("%s (%s)", l.target, l.endpoint.address()),
		Started: began,
		Took:    l.clock.worked(began), Outcome: l.outcome(err), Payload: "user=" + l.endpoint.user,
	})
}

func (l *login) outcome(err error) string {
	switch {
	case err == nil:
		return "ok"
	case errors.Is(err, ErrLogin):
		return "refused: " + cmp.Or(strings.Join(l.tried, ", "), "nothing to try")
	case errors.Is(err, errLate):
		return errLate.Error()
	case backends.KindOf(err) == backends.KindInterrupted:
		return "canceled"
	}
	text := strings.TrimPrefix(err.Error(), l.target.String()+": ")
	return Excerpt(strings.TrimPrefix(text, "connect to "+l.endpoint.address()+": ")) // the target of the line has the address
}

// trace reports a finished command, with the length of its standard input but not its content.
func (c *Conn) trace(cmd Command, began time.Time, r Result, err error) {
	p := c.link.pool
	if p.config.Trace == nil {
		return
	}
	script := cmd.script()
	call := backends.Call{
		ID: fmt.Sprintf("ssh-%d", p.calls.Add(1)), Method: "ssh " + cmp.Or(cmd.What, program(script)), Target: c.target.String(), Started: began,
		Took: time.Since(began),
		Sent: int64(len(script) + len(cmd.Stdin)), Received: int64(len(r.Stdout) + len(r.Stderr)), Payload: Excerpt(script),
	}
	if cmd.Sudo {
		call.Payload = "as root: " + call.Payload
	}
	switch {
	case errors.Is(err, ErrTooSlow):
		call.Outcome = "too slow"
	case errors.Is(err, ErrConnectionLost):
		call.Outcome = "connection lost"
	case errors.Is(err, ErrTooMuch):
		call.Outcome = "too much output"
	case err != nil:
		call.Outcome = string(backends.KindOf(err))
	case r.Signal != "":
		call.Outcome = "signal " + r.Signal
	case r.ExitCode != 0:
		call.Outcome = fmt.Sprintf("exit %d", r.ExitCode)
	default:
		call.Outcome = "ok"
	}
	p.config.Trace(call)
}

// program returns the name of the first program in a script; "sh" if the script begins with a shell builtin or keyword.
func program(script string) string {
	for line := range strings.Lines(script) {
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		name := path.Base(words[0])
		if strings.IndexFunc(name, needsQuotes) >= 0 || slices.Contains(builtin, name) {
			return "sh"
		}
		return name
	}
	return "sh"
}

var builtin = []string{".", ":", "cd", "command", "echo", "eval", "exec", "export", "for", "if", "case", "printf", "read", "set", "test",
	"trap", "unset", "until", "while"}
