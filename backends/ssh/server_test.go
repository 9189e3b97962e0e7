package ssh_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/binary"
	"encoding/pem"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	xssh "golang.org/x/crypto/ssh"

	"github.com/rdma-setup/rdma-setup/backends/ssh"
	"github.com/rdma-setup/rdma-setup/backends/testclass"
)

// A server is an SSH server that runs the requested commands with a real shell.
type server struct {
	t        *testing.T
	addr     string
	hostKey  xssh.Signer
	password string   // "": keys only
	shell    []string // login shell with -c
	path     string   // PATH of the sessions
	env      []string
	forward  bool
	hangups  int // connections to drop before they say anything
	offers   xssh.Config

	mu     sync.Mutex
	key    xssh.PublicKey // authorized
	conns  []net.Conn
	logins int
	argv   []string // every command line received
	groups []int    // process groups started
	done   sync.WaitGroup
}

func newKey(t *testing.T) (xssh.Signer, ed25519.PrivateKey) {
	t.Helper()
	_, priv, err := ed25519.GenerateKey(rand.Reader)
	testclass.OK(t, err)
	s, err := xssh.NewSignerFromKey(priv)
	testclass.OK(t, err)
	return s, priv
}

func startServer(t *testing.T, change func(*server)) *server {
	t.Helper()
	host, _ := newKey(t)
	s := &server{t: t, hostKey: host, password: "open sesame", shell: []string{"/bin/sh", "-c"}, path: os.Getenv("PATH")}
	if change != nil {
		change(s)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	testclass.OK(t, err)
	s.addr = l.Addr().String()
	s.done.Add(1)
	go func() {
		defer s.done.Done()
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.conns = append(s.conns, c)
			drop := s.hangups > 0
			s.hangups--
			s.mu.Unlock()
			if drop {
				c.Close()
				continue
			}
			s.done.Add(1)
			go func() { defer s.done.Done(); s.serve(c) }()
		}
	}()
	t.Cleanup(func() { l.Close(); s.drop(); s.killAll(); s.done.Wait() })
	return s
}

// drop closes every connection, as a reboot does.
func (s *server) drop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.conns {
		c.Close()
	}
	s.conns = nil
}

func (s *server) killAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, g := range s.groups {
		syscall.Kill(-g, syscall.SIGKILL)
	}
}

func (s *server) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.logins
}

func (s *server) lines() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.argv, "\n")
}

func (s *server) serve(c net.Conn) {
	conf := &xssh.ServerConfig{Config: s.offers, AuthLogCallback: s.judged}
	if s.password != "" {
		conf.PasswordCallback = func(_ xssh.ConnMetadata, p []byte) (*xssh.Permissions, error) {
			if string(p) != s.password {
				return nil, io.EOF
			}
			return nil, nil
		}
		conf.KeyboardInteractiveCallback = func(m xssh.ConnMetadata, ask xssh.KeyboardInteractiveChallenge) (*xssh.Permissions, error) {
			a, err := ask("", "", []string{"Password: "}, []bool{false})
			if err != nil {
				return nil, err
			}
			return conf.PasswordCallback(m, []byte(a[0]))
		}
	}
	conf.PublicKeyCallback = func(_ xssh.ConnMetadata, k xssh.PublicKey) (*xssh.Permissions, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.key == nil || string(k.Marshal()) != string(s.key.Marshal()) {
			return nil, io.EOF
		}
		return nil, nil
	}
	conf.AddHostKey(s.hostKey)
	conn, chans, reqs, err := xssh.NewServerConn(c, conf)
	if err != nil {
		return
	}
	go xssh.DiscardRequests(reqs)
	for nc := range chans {
		switch {
		case nc.ChannelType() == "session":
			ch, reqs, err := nc.Accept()
			if err == nil {
				s.done.Add(1)
				go func() { defer s.done.Done(); s.session(ch, reqs) }()
			}
		case nc.ChannelType() == "direct-tcpip" && s.forward:
			s.done.Add(1)
			go func() { defer s.done.Done(); s.tunnel(nc) }()
		default:
			nc.Reject(xssh.Prohibited, "not allowed")
		}
	}
	conn.Wait()
}

// judged counts a login before the client receives the result.
func (s *server) judged(_ xssh.ConnMetadata, _ string, err error) {
	if err == nil {
		s.mu.Lock()
		s.logins++
		s.mu.Unlock()
	}
}

func (s *server) tunnel(nc xssh.NewChannel) {
	var to struct {
		Host     string
		Port     uint32
		From     string
		FromPort uint32
	}
	xssh.Unmarshal(nc.ExtraData(), &to)
	out, err := net.Dial("tcp", net.JoinHostPort(to.Host, strconv.Itoa(int(to.Port))))
	if err != nil {
		nc.Reject(xssh.ConnectionFailed, err.Error())
		return
	}
	ch, reqs, err := nc.Accept()
	if err != nil {
		out.Close()
		return
	}
	go xssh.DiscardRequests(reqs)
	var both sync.WaitGroup
	both.Add(2)
	go func() { defer both.Done(); io.Copy(ch, out); ch.CloseWrite() }()
	go func() { defer both.Done(); io.Copy(out, ch); out.Close() }()
	both.Wait()
	ch.Close()
}

func (s *server) session(ch xssh.Channel, reqs <-chan *xssh.Request) {
	defer ch.Close()
	for r := range reqs {
		if r.Type != "exec" {
			r.Reply(false, nil)
			continue
		}
		n := binary.BigEndian.Uint32(r.Payload)
		line := string(r.Payload[4 : 4+n])
		s.mu.Lock()
		s.argv = append(s.argv, line)
		s.mu.Unlock()
		cmd := exec.Command(s.shell[0], append(s.shell[1:], line)...)
		cmd.Env = append([]string{"PATH=" + s.path, "HOME=/nonexistent", "LC_ALL=C", "SSH_CONNECTION=192.0.2.1 50000 192.0.2.2 22"}, s.env...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		cmd.Stdout, cmd.Stderr = ch, ch.Stderr()
		in, err := cmd.StdinPipe()
		if err == nil {
			err = cmd.Start()
		}
		r.Reply(err == nil, nil)
		if err != nil {
			return
		}
		s.mu.Lock()
		s.groups = append(s.groups, cmd.Process.Pid)
		s.mu.Unlock()
		go func() { io.Copy(in, ch); in.Close() }()
		go xssh.DiscardRequests(reqs)
		err = cmd.Wait()
		code := 0
		if exit, ok := err.(*exec.ExitError); ok {
			if ws := exit.Sys().(syscall.WaitStatus); ws.Signaled() {
				ch.SendRequest("exit-signal", false, xssh.Marshal(struct {
					Name string
					Core bool
					Text string
					Lang string
				}{Name: "TERM"}))
				return
			}
			code = exit.ExitCode()
		}
		ch.SendRequest("exit-status", false, binary.BigEndian.AppendUint32(nil, uint32(code)))
		return
	}
}

// target, trusting and pool return the usual way to connect to a server.
func (s *server) target(name string) ssh.Target {
	host, port, _ := net.SplitHostPort(s.addr)
	n, _ := strconv.Atoi(port)
	return ssh.Target{Name: name, Class: "guest", Host: host, Port: n, User: "ops"}
}

func knownHosts(t *testing.T, servers ...*server) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "known_hosts")
	var b strings.Builder
	for _, s := range servers {
		host, port, _ := net.SplitHostPort(s.addr)
		b.WriteString("[" + host + "]:" + port + " " + string(xssh.MarshalAuthorizedKey(s.hostKey.PublicKey())))
	}
	testclass.Write(t, file, b.String())
	return file
}

func newPool(t *testing.T, c ssh.Config) *ssh.Pool {
	t.Helper()
	p, err := ssh.NewPool(c)
	testclass.OK(t, err)
	t.Cleanup(func() { p.Close() })
	return p
}

func trusting(t *testing.T, servers ...*server) ssh.Config {
	return ssh.Config{
		KnownHosts: []string{knownHosts(t, servers...)},
		Password:   func(context.Context, ssh.Target) (string, error) { return "open sesame", nil },
	}
}

func dial(t *testing.T, s *server, change func(*ssh.Config)) *ssh.Conn {
	t.Helper()
	c := trusting(t, s)
	if change != nil {
		change(&c)
	}
	conn, err := newPool(t, c).Dial(t.Context(), s.target("guest vm-01"))
	testclass.OK(t, err)
	t.Cleanup(func() { conn.Close() })
	return conn
}

func writeKey(t *testing.T, priv ed25519.PrivateKey, passphrase string) string {
	t.Helper()
	var block *pem.Block
	var err error
	if passphrase == "" {
		block, err = xssh.MarshalPrivateKey(priv, "")
	} else {
		block, err = xssh.MarshalPrivateKeyWithPassphrase(priv, "", []byte(passphrase))
	}
	testclass.OK(t, err)
	file := filepath.Join(t.TempDir(), "id")
	testclass.OK(t, os.WriteFile(file, pem.EncodeToMemory(block), 0o600))
	return file
}

// eventually waits for a condition that another process causes.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(10 * time.Second)
	for !is() {
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("still not: %s", what)
		}
	}
}

// forget replaces a server's key in a known_hosts file.
func forget(t *testing.T, file string, s *server) {
	t.Helper()
	b := testclass.Read(t, file)
	other, _ := newKey(t)
	text := strings.ReplaceAll(string(b), string(xssh.MarshalAuthorizedKey(s.hostKey.PublicKey())),
		string(xssh.MarshalAuthorizedKey(other.PublicKey())))
	if text == string(b) {
		t.Fatal("the server has no line")
	}
	testclass.Write(t, file, text)
}
