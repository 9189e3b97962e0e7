package sshd

import (
	"context"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/rdma-setup/rdma-setup/backends/lab/shell/sh"
)

// client is an authenticated connection.
type client struct {
	server *Server
	conn   *ssh.ServerConn
	net    net.Conn
	up     context.Context // context of the machine's current boot

	mu       sync.Mutex
	sessions int
}

func (c *client) serve(ctx context.Context, channels <-chan ssh.NewChannel) {
	var wg sync.WaitGroup
	for nc := range channels {
		switch nc.ChannelType() {
		case "session":
			if !c.room(1) {
				_ = nc.Reject(ssh.Prohibited, "open failed")
				continue
			}
			ch, requests, err := nc.Accept()
			if err != nil {
				c.room(-1)
				continue
			}
			wg.Go(func() {
				defer c.room(-1)
				c.session(ch, requests)
			})
		default:
			_ = nc.Reject(ssh.UnknownChannelType, "unknown channel type")
		}
	}
	_ = c.conn.Close()
	wg.Wait()
}

func (c *client) room(n int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n > 0 && c.sessions >= maxSessions {
		return false
	}
	c.sessions += n
	return true
}

// session handles one session channel: requests until a command starts, then signals until it has ended.
func (c *client) session(ch ssh.Channel, requests <-chan *ssh.Request) {
	defer ch.Close()
	account, ok := c.server.machine.Account(c.conn.User())
	if !ok {
		return
	}
	// Background processes continue after the session, so the context is that of the machine and not that of the connection.
	ctx, cancel := context.WithCancelCause(c.up)
	s := &session{
		client: c, ch: ch, cancel: cancel, done: make(chan struct{}),
		state: &sh.Session{Peer: c.conn.RemoteAddr().String(), Drop: func() { reset(c.net) }, Release: func() { cancel(nil) }},
	}
	s.proc = c.server.machine.Login(account.User, s.state)
	defer func() {
		if !s.state.Detached() {
			cancel(nil)
		}
	}()
	for {
		select {
		case r, ok := <-requests:
			if !ok { // the client has closed the channel or the connection
				s.lose()
				if s.started {
					<-s.done
				}
				return
			}
			s.request(ctx, r)
		case <-s.done:
			go ssh.DiscardRequests(requests)
			return
		}
	}
}

// lose handles a command whose client has disconnected. A command on a terminal gets SIGHUP, because the terminal is closed.
// Any other command is not notified: session_close_by_channel in session.c of OpenSSH only releases the terminal and waits for
// the command to end by itself. The command reads end of file, and SIGPIPE terminates it when it writes.
func (s *session) lose() {
	if s.state.TTY && !s.ended.Load() {
		s.cancel(sh.SIGHUP)
	}
	if s.started {
		s.out.close()
		s.errs.close()
	}
}

type session struct {
	client  *client
	ch      ssh.Channel
	proc    *sh.Proc
	state   *sh.Session
	cancel  context.CancelCauseFunc
	started bool
	out     *outlet       // standard output of the command
	errs    *outlet       // standard error; on a terminal it is the same as out
	ended   atomic.Bool   // the command has ended; only background processes are running
	done    chan struct{} // closed when the client has been notified

	mu       sync.Mutex
	signaled string
}

func (s *session) request(ctx context.Context, r *ssh.Request) {
	ok := false
	switch r.Type {
	case "env":
		var kv struct{ Name, Value string }
		if ssh.Unmarshal(r.Payload, &kv) == nil && (kv.Name == "LANG" || strings.HasPrefix(kv.Name, "LC_")) {
			s.proc.Setenv(kv.Name, kv.Value)
			ok = true
		}
	case "pty-req":
		s.state.TTY, ok = true, true
	case "window-change":
		ok = true
	case "signal":
		var sig struct{ Name string }
		if number, known := sh.Signals()[name(r.Payload, &sig)]; known && s.started {
			s.mu.Lock()
			s.signaled = sig.Name
			s.mu.Unlock()
			s.cancel(number)
			ok = true
		}
	case "exec", "shell":
		s.start(ctx, r)
		return
	}
	if r.WantReply {
		_ = r.Reply(ok, nil)
	}
}

func name(payload []byte, into *struct{ Name string }) string {
	_ = ssh.Unmarshal(payload, into) // on an invalid payload the name stays empty
	return into.Name
}

// start runs the command that the client requests. It works only once per session.
func (s *session) start(ctx context.Context, r *ssh.Request) {
	var arg struct{ Name string }
	ok := !s.started
	if r.Type != "shell" {
		ok = ok && ssh.Unmarshal(r.Payload, &arg) == nil
	}
	if r.WantReply {
		_ = r.Reply(ok, nil)
	}
	if !ok {
		return
	}
	s.started = true
	s.out, s.errs = s.outlet(s.ch), s.outlet(s.ch.Stderr())
	if s.state.TTY {
		s.out = s.outlet(crlf{s.ch})
		s.errs = s.out
	}
	go func() {
		defer close(s.done)
		deepen()
		args := []string{s.proc.User.Shell, "-c", arg.Name}
		if r.Type == "shell" {
			args = []string{s.proc.User.Shell, "-l"}
		}
		status, err := s.run(ctx, args)
		if s.client.up.Err() != nil { // the machine was powered off: its connections are lost before a command can report it
			reset(s.client.net)
			return
		}
		if err != nil {
			_, _ = io.WriteString(s.ch.Stderr(), err.Error()+"\n")
		}
		s.exit(status)
	}()
}

func (s *session) run(ctx context.Context, args []string) (int, error) {
	in, feed, err := os.Pipe()
	if err != nil {
		return 255, err
	}
	defer in.Close()
	go func() {
		_, _ = sh.Copy(feed, s.ch) // ends with the channel, or when there is no reader
		_ = feed.Close()
	}()
	p := s.proc
	p.Args, p.Stdin = args, in
	p.Stdout, p.Stderr = s.out, s.errs
	status, err := p.Sys.Exec(ctx, p)
	s.out.end()
	s.errs.end()
	return status, err
}

func (s *session) exit(status int) {
	s.ended.Store(true)
	s.mu.Lock()
	signaled := s.signaled
	s.mu.Unlock()
	_ = s.ch.CloseWrite()
	if signaled != "" {
		_, _ = s.ch.SendRequest("exit-signal", false, ssh.Marshal(struct {
			Signal string
			Core   bool
			Text   string
			Lang   string
		}{Signal: signaled}))
	} else {
		_, _ = s.ch.SendRequest("exit-status", false, ssh.Marshal(struct{ Status uint32 }{uint32(status)}))
	}
	_ = s.ch.Close()
}

// deepen enlarges the stack once for nested shells. Otherwise the runtime copies the used stack each time it becomes too small,
// which is slower.
//
//go:noinline
func deepen() byte {
	var room [60 << 10]byte
	return room[os.Getpid()%len(room)]
}

// An outlet is the pipe between the processes of a session and its channel, until the machine is powered off. Like sshd, it
// sends all data written since the last packet in one packet.
type outlet struct {
	w  io.Writer
	up context.Context

	mu      sync.Mutex
	idle    *sync.Cond
	waiting []byte
	sending bool        // sending, or about to send
	soon    *time.Timer // timer that starts sending
	gone    bool        // there is no reader any more
}

// gather is the time for which output is collected before it is sent, unless its process has ended: a script writes many lines
// at once.
const gather = 500 * time.Microsecond

// pipeSize is the number of bytes that can be written before the channel has sent them: pipe(7), "Pipe capacity".
const pipeSize = 64 << 10

func (s *session) outlet(w io.Writer) *outlet {
	o := &outlet{w: w, up: s.client.up}
	o.idle = sync.NewCond(&o.mu)
	return o
}

func (o *outlet) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.sending && len(o.waiting) >= pipeSize && !o.gone {
		o.idle.Wait()
	}
	if o.gone || o.up.Err() != nil {
		return 0, io.ErrClosedPipe // terminates the writer with SIGPIPE
	}
	o.waiting = append(o.waiting, b...)
	if !o.sending {
		o.sending = true
		o.soon = time.AfterFunc(gather, o.send)
	}
	return len(b), nil
}

// send sends the content of the pipe.
func (o *outlet) send() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(o.waiting) > 0 && !o.gone && o.up.Err() == nil {
		b := o.waiting
		o.waiting = nil
		o.mu.Unlock()
		_, err := o.w.Write(b)
		o.mu.Lock()
		o.gone = o.gone || err != nil
		o.idle.Broadcast()
	}
	o.waiting, o.sending = nil, false
	o.idle.Broadcast()
}

// end waits until all data has been sent. After that, the output of background processes has no reader.
func (o *outlet) end() {
	o.mu.Lock()
	now := o.soon != nil && o.soon.Stop()
	o.mu.Unlock()
	if now {
		o.send()
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.sending {
		o.idle.Wait()
	}
	o.gone = true
}

// close closes the pipe after the client has disconnected.
func (o *outlet) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.gone = true
	o.idle.Broadcast()
}

// crlf converts line endings as a terminal does.
type crlf struct{ w io.Writer }

func (c crlf) Write(b []byte) (int, error) {
	if _, err := io.WriteString(c.w, strings.ReplaceAll(string(b), "\n", "\r\n")); err != nil {
		return 0, err
	}
	return len(b), nil
}
