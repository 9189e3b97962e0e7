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

// An exchange is one session with its streams.
type exchange struct {
	conn     *Conn
	line     *line
	session  *ssh.Session
	cmd      Command
	frame    frame
	password string
	out, err *capture
	group    chan int      // receives the process group
	begun    chan struct{} // closed when the script runs
	again    chan struct{} // closed if sudo refused the password
	over     chan struct{} // closed at the end of the session
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
		err = x.session.Start(x.conn.link.pool.command(x.frame, x.cmd.script()))
	}
	if err != nil {
		close(x.over)
		return backends.Unreachablef(x.conn.target.String(), "", "start a command: %w: %s", ErrConnectionLost,
			Excerpt(err.Error()))
	}
	go x.feed(stdin)
	return nil
}

// feed writes the password and, once the script runs, the content: a password that sudo did not read must not reach the script,
// and content for the script must not be tried as a password.
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

// kill ends the command: through the server, and by its process group, as root if the command ran as root.
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
	r := Result{Stdout: x.out.kept.String(), Stderr: x.err.kept.String()}
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

func inBytes(n int) string {
	if n >= 1<<20 && n%(1<<20) == 0 {
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%d bytes", n)
}

// judge distinguishes a command that ran from one that did not.
func (x *exchange) judge(ctx context.Context, waited error) (Result, error) {
	r := x.result(waited)
	var exit *ssh.ExitError
	var missing *ssh.ExitMissingError
	switch {
	case x.out.dropped:
		return r, backends.Permanentf(x.conn.target.String(), "Run the command by hand and check its output.",
			"%w: %s", ErrTooMuch, inBytes(x.out.limit))
	case x.out.ended:
		return r, nil
	case waited != nil && !errors.As(waited, &exit):
		if ctx.Err() != nil {
			return r, x.conn.ended(ctx)
		}
		if errors.As(waited, &missing) && x.out.begun && !x.line.dies(time.Second) {
			return r, backends.Transientf(x.conn.target.String(), "", "a command ended without an exit status: %w",
				ErrConnectionLost)
		}
		return r, backends.Unreachablef(x.conn.target.String(), "Check the machine, then run "+
			"rdma-setup resume.", "%w", ErrConnectionLost)
	case x.out.begun:
		return r, nil // ended by a signal, or replaced by exec
	case x.frame.sudo:
		return r, sudoError(x.conn.target, string(x.err.noise)+string(x.out.noise))
	}
	said := Excerpt(string(x.err.noise) + " " + string(x.out.noise))
	return r, backends.Errorf(backends.KindPermission, x.conn.target.String(),
		fmt.Sprintf("Give %s a login shell that can start /bin/sh.", x.conn.User()), "the login shell of %s did not run the command: %s",
		x.conn.User(), said)
}
