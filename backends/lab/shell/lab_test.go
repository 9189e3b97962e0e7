package shell_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/crypto/ssh"

	"github.com/rdma-setup/rdma-setup/backends/lab/memnet"
	"github.com/rdma-setup/rdma-setup/backends/lab/shell"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
	"github.com/rdma-setup/rdma-setup/backends/lab/world/scenario"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A lab is a data centre with its SSH servers and the key that they accept.
type lab struct {
	*testing.T
	world   *world.World
	servers *shell.Servers
	signer  ssh.Signer
}

func start(t *testing.T, spec scenario.Spec) *lab {
	t.Helper()
	return startWith(t, spec, shell.Options{})
}

func startWith(t *testing.T, spec scenario.Spec, o shell.Options) *lab {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	spec.Secrets.AuthorizedKey = strings.TrimSpace(string(ssh.MarshalAuthorizedKey(signer.PublicKey())))
	if spec.Timing.VMBoot == 0 {
		spec.Timing.VMBoot = 20 * time.Millisecond
	}
	w, err := scenario.New(spec)
	if err != nil {
		t.Fatal(err)
	}
	s, err := shell.Start(t.Context(), w, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		w.Close()
	})
	return &lab{t, w, s, signer}
}

// config returns a client configuration for a login by key that verifies the lab's published host keys.
func (l *lab) config(user string) *ssh.ClientConfig {
	return &ssh.ClientConfig{User: user, Auth: []ssh.AuthMethod{ssh.PublicKeys(l.signer)}, HostKeyCallback: ssh.InsecureIgnoreHostKey(),
		Timeout: 5 * time.Second}
}

func (l *lab) dial(vm, user string) *ssh.Client {
	l.Helper()
	addr, err := l.servers.Guest(vm)
	if err != nil {
		l.Fatal(err)
	}
	return l.dialAddr(addr, l.config(user))
}

func (l *lab) dialAddr(addr string, config *ssh.ClientConfig) *ssh.Client {
	l.Helper()
	c, err := ssh.Dial("tcp", addr, config)
	if err != nil {
		l.Fatalf("dial %s: %v", addr, err)
	}
	l.Cleanup(func() { _ = c.Close() })
	return c
}

// A result is the output and the exit status of a remote command.
type result struct {
	out, err string
	status   int
}

// Statuses of a command without an exit status.
const (
	signaled = -1
	lost     = -2 // the connection was lost
)

func run(t *testing.T, c *ssh.Client, command, stdin string) result {
	t.Helper()
	s, err := c.NewSession()
	if err != nil {
		return result{err: err.Error(), status: lost}
	}
	defer s.Close()
	var out, stderr bytes.Buffer
	s.Stdout, s.Stderr = &out, &stderr
	if stdin != "" {
		s.Stdin = strings.NewReader(stdin)
	}
	r := result{}
	err = s.Run(command)
	var exit *ssh.ExitError
	switch {
	case errors.As(err, &exit):
		r.status = exit.ExitStatus()
		if exit.Signal() != "" {
			r.status = signaled
		}
	case err != nil:
		r.status = lost
	}
	r.out, r.err = out.String(), stderr.String()
	return r
}

// ok runs a command that must succeed and returns its output.
func ok(t *testing.T, c *ssh.Client, command string) string {
	t.Helper()
	r := run(t, c, command, "")
	if r.status != 0 {
		t.Fatalf("%s: status %d\n%s%s", command, r.status, r.out, r.err)
	}
	return r.out
}

// eventually waits until a condition is true.
func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !cond() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("it never came to this: %s", what)
		}
	}
}

// The servers of a private lab behave as those on ports do, and no port of this machine leads to them.
func TestPrivate(t *testing.T) {
	l := startWith(t, scenario.Spec{Hosts: 2, VMs: 2}, shell.Options{Inside: memnet.New()})
	addr, err := l.servers.Guest("vm-01")
	if err != nil {
		t.Fatal(err)
	}
	if c, err := net.Dial("tcp", addr); err == nil {
		c.Close()
		t.Errorf("a port of this machine leads to %s", addr)
	}
	login := func(over net.Conn, addr string) *ssh.Client {
		conn, channels, requests, err := ssh.NewClientConn(over, addr, l.config("ubuntu"))
		if err != nil {
			t.Fatal(err)
		}
		c := ssh.NewClient(conn, channels, requests)
		t.Cleanup(func() { c.Close() })
		return c
	}
	over, err := l.servers.Dial(t.Context(), addr)
	if err != nil {
		t.Fatal(err)
	}
	first := login(over, addr)
	if out := ok(t, first, "hostname"); strings.TrimSpace(out) != "vm-01" {
		t.Errorf("vm-01 says %q", out)
	}
	if out := ok(t, first, "seq 60000"); len(out) != 348_894 {
		t.Errorf("%d of 348894 bytes", len(out))
	}
	ended := make(chan int, 1)
	go func() { ended <- run(t, first, "sleep 1000", "").status }()
	if err := l.world.PowerOff("vm-01"); err != nil {
		t.Fatal(err)
	}
	select {
	case status := <-ended:
		if status != lost {
			t.Errorf("the command ended with %d when the power failed", status)
		}
	case <-time.After(10 * time.Second):
		t.Error("a command outlives its machine")
	}
	again, err := l.servers.Dial(t.Context(), addr)
	if err == nil {
		_, _, _, err = ssh.NewClientConn(again, addr, l.config("ubuntu"))
	}
	if err == nil {
		t.Error("a machine that is off accepts a login")
	}
}
