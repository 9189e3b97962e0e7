package ssh

import (
	"context"
	"errors"
	"io"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/rdma-setup/rdma-setup/backends"
)

// A Command is a program with its arguments, or a script for /bin/sh. It runs in the C locale with the system
// directories in PATH, whatever the login shell is. In SSH_CONNECTION it finds the addresses of the connection, in
// SSH_MEMLOCK what ulimit -l says to the user (also under sudo, where root's limit may be another).
type Command struct {
	Argv   []string // either this
	Script string   // or this
	What   string   // what it does, for traces; "": its first program is named

	Stdin     []byte
	Sudo      bool              // as root
	Limit     time.Duration     // how long it may take; 0: as long as ctx
	MaxOutput int               // bytes kept of each of stdout and stderr, more on stdout is an error; 0: 1 MiB
	OnLine    func(line string) // called with each line of stdout as it comes; must not block
}

// A Result is what a command left. Stdout and Stderr are raw: they may hold anything.
type Result struct {
	Stdout, Stderr string
	ExitCode       int    // -1: ended by a signal
	Signal         string // the name of that signal, where the server tells it
}

// ErrConnectionLost is in the chain of errors of commands whose connection ended while they ran: what they did is
// unknown.
var ErrConnectionLost = errors.New("the connection was lost while the command ran; its result is not known")

// ErrTooSlow is in the chain of errors of commands that took longer than their limit; they were ended.
var ErrTooSlow = errors.New("it took too long and was stopped")

// ErrTooMuch is in the chain of errors of commands that printed more than MaxOutput on stdout. They ran to their end;
// half of what they said is not taken for all of it.
var ErrTooMuch = errors.New("it printed more than the limit for one command")

const (
	defaultOutput = 1 << 20
	killTime      = 8 * time.Second
	sudoTime      = 30 * time.Second // PAM delays refusals by seconds, not by more
)

func (c Command) script() string {
	if c.Script != "" {
		return c.Script
	}
	return QuoteAll(c.Argv...)
}

// Run runs one command. A command that ran gives no error whatever its exit code, unless it printed too much; errors are
// those of the connection, of sudo (kinds auth and permission), of a ctx that ended or of the limit. When ctx ends the command is ended with
// everything it started. The Result of a failed command holds what came until then.
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
		ctx = limited
	}
	select {
	case c.link.sessions <- struct{}{}:
		defer func() { <-c.link.sessions }()
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

// session opens a session, on a new connection where the old one turns out to be dead: nothing was sent yet.
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
			return nil, nil, backends.Errorf(backends.KindUnreachable, c.target.String(), "", "open a session: %s", Excerpt(o.err.Error()))
		}
		n.close()
		<-n.dead
	}
}

func (c *Conn) ended(ctx context.Context) error {
	if cause := context.Cause(ctx); errors.Is(cause, ErrTooSlow) {
		return backends.Errorf(backends.KindTransient, c.target.String(), "", "a command was run: %w", cause)
	}
	return interrupted(ctx, c.target, "run a command")
}
