package ssh

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
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

	Stdin     []byte
	Sudo      bool              // as root
	Limit     time.Duration     // how long it may take; 0: as long as ctx
	MaxOutput int               // bytes kept of each of stdout and stderr; 0: 1 MiB
	OnLine    func(line string) // called with each line of stdout as it comes; must not block
}

// A Result is what a command left. Stdout and Stderr are raw: they may hold anything.
type Result struct {
	Stdout, Stderr string
	ExitCode       int    // -1: ended by a signal
	Signal         string // the name of that signal, where the server tells it
	Truncated      bool   // there was more output than MaxOutput
}

// ErrConnectionLost is in the chain of errors of commands whose connection ended while they ran: what they did is
// unknown.
var ErrConnectionLost = errors.New("the connection was lost while the command ran, what it did is not known")

// ErrTooSlow is in the chain of errors of commands that took longer than their limit; they were ended.
var ErrTooSlow = errors.New("it took too long and was ended")

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

// Run runs one command. A command that ran gives no error whatever its exit code; errors are those of the connection,
// of sudo (kinds auth and permission), of a ctx that ended or of the limit. When ctx ends the command is ended with
// everything it started. The Result of a failed command holds what came until then.
func (c *Conn) Run(ctx context.Context, cmd Command) (Result, error) {
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
	if cmd.Limit > 0 {
		limited, cancel := context.WithTimeoutCause(ctx, cmd.Limit, ErrTooSlow)
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
			return nil, nil, backends.Errorf(backends.KindUnreachable, c.target.String(), "", "open a session: %s", Clean(o.err.Error()))
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

// An exchange is one session with its streams.
type exchange struct {
	conn     *Conn
	line     *line
	session  *ssh.Session
	cmd      Command
	frame    frame
	password string
	out, err *capture
	group    chan int      // the process group, when it is told
	begun    chan struct{} // the script runs
	again    chan struct{} // sudo did not take the password
	over     chan struct{} // closed when the session has ended
}

func newExchange(c *Conn, n *line, s *ssh.Session, cmd Command, f frame, password string) *exchange {
	limit := cmd.MaxOutput
	if limit <= 0 {
		limit = defaultOutput
	}
	x := &exchange{conn: c, line: n, session: s, cmd: cmd, frame: f, password: password,
		group: make(chan int, 1), begun: make(chan struct{}), again: make(chan struct{}, 1), over: make(chan struct{})}
	x.out = &capture{begin: []byte(f.begin()), end: []byte(f.end()), limit: limit, onLine: cmd.OnLine, onBegin: x.started}
	x.err = &capture{begin: []byte(f.begin()), limit: limit, onNoise: x.heard}
	return x
}

func (x *exchange) started(rest string) {
	if g, err := strconv.Atoi(strings.TrimSpace(rest)); err == nil && g > 1 {
		x.group <- g
	}
	close(x.begun)
}

func (x *exchange) heard(noise string) {
	if x.frame.password && wrongPassword(noise) {
		select {
		case x.again <- struct{}{}:
		default:
		}
	}
}

func (x *exchange) start() error {
	x.session.Stdout, x.session.Stderr = x.out, x.err
	stdin, err := x.session.StdinPipe()
	if err == nil {
		err = x.session.Start(bootstrap(x.frame.outer(x.cmd.script())))
	}
	if err != nil {
		close(x.over)
		return backends.Errorf(backends.KindUnreachable, x.conn.target.String(), "", "start a command: %w: %s", ErrConnectionLost, Clean(err.Error()))
	}
	go x.feed(stdin)
	return nil
}

// feed writes the password and, once the script runs, the content: what sudo did not read it must not leave to the
// script, and what is meant for the script must not be tried as a password.
func (x *exchange) feed(stdin io.WriteCloser) {
	defer stdin.Close()
	if x.frame.password {
		if _, err := io.WriteString(stdin, x.password+"\n"); err != nil {
			return
		}
		select {
		case <-x.begun:
		case <-x.again:
			return
		case <-x.over:
			return
		case <-time.After(sudoTime):
			return
		}
		if _, err := io.WriteString(stdin, x.frame.mark+"\n"); err != nil {
			return
		}
	}
	stdin.Write(x.cmd.Stdin)
}

// kill ends what was started: by the server, and by the process group, as root where the command ran as root.
func (x *exchange) kill() {
	done := make(chan struct{})
	go func() {
		defer close(done)
		x.session.Signal(ssh.SIGTERM)
		select {
		case g := <-x.group:
			x.killGroup(g)
		default:
		}
	}()
	select {
	case <-done:
	case <-x.line.dead:
	case <-time.After(killTime):
	}
}

func (x *exchange) killGroup(group int) {
	s, err := x.line.client.NewSession()
	if err != nil {
		return
	}
	defer s.Close()
	f := newFrame()
	f.sudo, f.password = x.frame.sudo, x.frame.password
	k := newExchange(x.conn, x.line, s, Command{Script: killScript(group)}, f, x.password)
	if k.start() == nil {
		s.Wait()
		k.close()
	}
}

func (x *exchange) close() {
	select {
	case <-x.over:
	default:
		close(x.over)
	}
	x.out.finish()
	x.err.finish()
}

func (x *exchange) result(waited error) Result {
	x.close()
	x.out.mu.Lock()
	defer x.out.mu.Unlock()
	x.err.mu.Lock()
	defer x.err.mu.Unlock()
	r := Result{Stdout: x.out.kept.String(), Stderr: x.err.kept.String(), Truncated: x.out.dropped || x.err.dropped}
	var exit *ssh.ExitError
	switch {
	case x.out.ended:
		r.ExitCode = x.out.code
	case errors.As(waited, &exit) && exit.Signal() != "":
		r.ExitCode, r.Signal = -1, exit.Signal()
	case errors.As(waited, &exit):
		r.ExitCode = exit.ExitStatus()
	}
	return r
}

// judge tells a command that ran from one that did not.
func (x *exchange) judge(ctx context.Context, waited error) (Result, error) {
	r := x.result(waited)
	var exit *ssh.ExitError
	var missing *ssh.ExitMissingError
	switch {
	case x.out.ended:
		return r, nil
	case waited != nil && !errors.As(waited, &exit):
		if ctx.Err() != nil {
			return r, x.conn.ended(ctx)
		}
		if errors.As(waited, &missing) && x.out.begun && !x.line.dies(time.Second) {
			return r, backends.Errorf(backends.KindTransient, x.conn.target.String(), "", "a command ended without a word: %w", ErrConnectionLost)
		}
		return r, backends.Errorf(backends.KindUnreachable, x.conn.target.String(), "Look at the machine, then resume.", "%w", ErrConnectionLost)
	case x.out.begun:
		return r, nil // ended by a signal, or replaced by exec
	case x.frame.sudo:
		return r, sudoError(x.conn.target, string(x.err.noise)+string(x.out.noise))
	}
	said := Clean(string(x.err.noise) + " " + string(x.out.noise))
	return r, backends.Errorf(backends.KindPermission, x.conn.target.String(),
		fmt.Sprintf("Give %s a login shell that starts /bin/sh.", x.conn.User()), "the login shell of %s ran no command: %s", x.conn.User(), said)
}
