// Package sshd is the SSH server of the lab's machines. Handshakes, accounts, sessions, signals and forwarding are real;
// the shell and the file system exist only in memory.
package sshd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/rdma-setup/rdma-setup/backends/lab/shell/sh"
)

// An Account is a user account that can log in.
type Account struct {
	User     sh.User
	Password string                  // "": password login is not allowed
	Check    func(given string) bool // checks a password instead of Password; nil: Password is used
	Keys     []ssh.PublicKey         // authorized keys
}

// A Verdict defines how to handle a new connection.
type Verdict struct {
	Drop bool          // close the connection
	Hang bool          // never respond
	Wait time.Duration // delay before continuing
}

// A Machine is a machine to which users can log in.
type Machine interface {
	// Up returns a context that is cancelled when the machine goes down. It returns false while the machine is down or booting.
	Up() (context.Context, bool)
	// Account returns the account with a name, if it may log in.
	Account(name string) (Account, bool)
	// Login returns the process of a new session with its user, directory, environment and limits. The caller adds the rest.
	Login(u sh.User, s *sh.Session) *sh.Proc
	// Connect is called for every new connection.
	Connect() Verdict
	// Banner returns the version string of the server.
	Banner() string
}

// The default limits of OpenSSH.
const (
	maxAuthTries  = 6
	maxSessions   = 10
	maxStartups   = 10 // unauthenticated connections; above this limit every third is dropped
	fullStartups  = 100
	loginGrace    = 120 * time.Second
	shutdownGrace = 2 * time.Second
)

// A Server is the SSH server of one machine.
type Server struct {
	machine Machine
	config  func() *ssh.ServerConfig // created from the machine at the first connection
	ln      net.Listener
	stop    context.CancelFunc
	ctx     context.Context
	wg      sync.WaitGroup

	mu      sync.Mutex
	pending int // connections that are not logged in yet
	refused int // counter for dropping every third
}

// Listen starts a server for m on addr with a host key. "127.0.0.1:0" selects a free port.
func Listen(addr string, m Machine, key ssh.Signer) (*Server, error) {
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("lab: SSH server: %w", err)
	}
	return Serve(ln, m, key), nil
}

// Serve starts a server for m on a listener with a host key. Close closes the listener.
func Serve(ln net.Listener, m Machine, key ssh.Signer) *Server {
	s := &Server{machine: m, ln: ln}
	s.ctx, s.stop = context.WithCancel(context.Background())
	s.config = sync.OnceValue(func() *ssh.ServerConfig { return s.serverConfig(key) })
	s.wg.Add(1)
	go s.accept()
	return s
}

// Addr returns the address of the listener.
func (s *Server) Addr() string { return s.ln.Addr().String() }

// Close stops listening, closes all connections and waits until their processes have ended.
func (s *Server) Close() error {
	s.stop()
	err := s.ln.Close()
	s.wg.Wait()
	return err
}

func (s *Server) serverConfig(key ssh.Signer) *ssh.ServerConfig {
	refused := errors.New("permission denied")
	password := func(c ssh.ConnMetadata, given string) (*ssh.Permissions, error) {
		a, ok := s.machine.Account(c.User())
		switch {
		case !ok, a.Check != nil && !a.Check(given), a.Check == nil && (a.Password == "" || a.Password != given):
			return nil, refused
		}
		return &ssh.Permissions{}, nil
	}
	config := &ssh.ServerConfig{
		MaxAuthTries:  maxAuthTries,
		ServerVersion: s.machine.Banner(),
		PublicKeyCallback: func(c ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
			a, ok := s.machine.Account(c.User())
			for _, k := range a.Keys {
				if ok && string(k.Marshal()) == string(key.Marshal()) {
					return &ssh.Permissions{}, nil
				}
			}
			return nil, refused
		},
		PasswordCallback: func(c ssh.ConnMetadata, given []byte) (*ssh.Permissions, error) {
			return password(c, string(given))
		},
		KeyboardInteractiveCallback: func(c ssh.ConnMetadata, ask ssh.KeyboardInteractiveChallenge) (*ssh.Permissions, error) {
			answers, err := ask("", "", []string{"Password: "}, []bool{false})
			if err != nil || len(answers) != 1 {
				return nil, refused
			}
			return password(c, answers[0])
		},
	}
	// OpenSSH offers curve25519 in all releases (since 6.5), ML-KEM only since 9.9; a lab with hundreds of guests needs the CPU.
	config.KeyExchanges = []string{ssh.KeyExchangeCurve25519, ssh.KeyExchangeECDHP256, ssh.KeyExchangeECDHP384, ssh.KeyExchangeECDHP521}
	config.AddHostKey(key)
	return config
}

func (s *Server) accept() {
	defer s.wg.Done()
	for {
		c, err := s.ln.Accept()
		if err != nil {
			return
		}
		s.wg.Add(1)
		go func() {
			defer s.wg.Done()
			s.serve(c)
		}()
	}
}

// reset closes a connection as if nothing listened on the port.
func reset(c net.Conn) {
	if t, ok := c.(interface{ SetLinger(int) error }); ok { // TCP, or package memnet
		_ = t.SetLinger(0)
	}
	_ = c.Close()
}

func (s *Server) admit() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pending >= maxStartups {
		s.refused++
		if s.pending >= fullStartups || s.refused%3 == 0 {
			return false
		}
	}
	s.pending++
	return true
}

func (s *Server) loggedIn() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pending--
}

func (s *Server) serve(c net.Conn) {
	up, ok := s.machine.Up()
	if !ok {
		reset(c)
		return
	}
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	defer context.AfterFunc(up, cancel)()
	defer context.AfterFunc(ctx, func() { reset(c) })()
	v := s.machine.Connect()
	if v.Hang {
		<-ctx.Done()
		return
	}
	if !wait(ctx, v.Wait) || v.Drop || !s.admit() {
		reset(c)
		return
	}
	_ = c.SetDeadline(time.Now().Add(loginGrace))
	conn, channels, requests, err := ssh.NewServerConn(c, s.config())
	s.loggedIn()
	if err != nil {
		_ = c.Close()
		return
	}
	_ = c.SetDeadline(time.Time{})
	s.wg.Add(1)
	go func() {
		defer s.wg.Done()
		ssh.DiscardRequests(requests)
	}()
	client := &client{server: s, conn: conn, net: c, up: up}
	client.serve(ctx, channels)
}

// wait sleeps for d and reports whether ctx is still active.
func wait(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
