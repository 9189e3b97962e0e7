package ssh_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	xssh "golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/ssh"
	"github.com/rdma-setup/rdma-setup/backends/testclass"
)

func TestHostKeys(t *testing.T) {
	t.Run("unknown, nobody to ask", func(t *testing.T) {
		s := startServer(t, nil)
		c := trusting(t)
		_, err := newPool(t, c).Dial(t.Context(), s.target("guest vm-01"))
		print := xssh.FingerprintSHA256(s.hostKey.PublicKey())
		if backends.KindOf(err) != backends.KindAuth || !strings.Contains(err.Error(), print) || backends.HintOf(err) == "" {
			t.Fatalf("%v, hint %q", err, backends.HintOf(err))
		}
	})
	t.Run("unknown, accepted once for all", func(t *testing.T) {
		s := startServer(t, nil)
		c := trusting(t)
		c.KnownHosts = []string{filepath.Join(t.TempDir(), "new", "known_hosts")}
		var asked atomic.Int32
		c.Confirm = func(_ context.Context, k ssh.HostKey) (bool, error) {
			asked.Add(1)
			return k.Fingerprint == xssh.FingerprintSHA256(s.hostKey.PublicKey()) && k.Address == s.addr, nil
		}
		var all sync.WaitGroup
		for range 5 {
			all.Go(func() {
				conn, err := newPool(t, c).Dial(t.Context(), s.target("guest vm-01"))
				if err != nil {
					t.Error(err)
					return
				}
				conn.Close()
			})
		}
		all.Wait()
		c.Confirm = nil
		conn, err := newPool(t, c).Dial(t.Context(), s.target("guest vm-01"))
		testclass.OK(t, err)
		conn.Close()
		if st, err := os.Stat(c.KnownHosts[0]); err != nil || st.Mode().Perm() != 0o600 {
			t.Errorf("%v %v", st, err)
		}
	})
	t.Run("unknown, refused", func(t *testing.T) {
		s := startServer(t, nil)
		c := trusting(t)
		c.Confirm = func(context.Context, ssh.HostKey) (bool, error) { return false, nil }
		if _, err := newPool(t, c).Dial(t.Context(), s.target("guest vm-01")); backends.KindOf(err) != backends.KindAuth {
			t.Fatal(err)
		}
		if b, _ := os.ReadFile(c.KnownHosts[0]); len(b) != 0 {
			t.Errorf("it was remembered: %s", b)
		}
	})
	t.Run("changed", func(t *testing.T) {
		s := startServer(t, nil)
		c := trusting(t, s)
		old := xssh.FingerprintSHA256(s.hostKey.PublicKey())
		b, _ := os.ReadFile(c.KnownHosts[0])
		s2 := startServer(t, nil)
		text := strings.Replace(string(b), s.addr[strings.LastIndex(s.addr, ":"):], s2.addr[strings.LastIndex(s2.addr, ":"):], 1)
		testclass.Write(t, c.KnownHosts[0], text)
		c.Confirm = func(context.Context, ssh.HostKey) (bool, error) {
			t.Error("a changed key was asked about")
			return true, nil
		}
		_, err := newPool(t, c).Dial(t.Context(), s2.target("guest vm-01"))
		if backends.KindOf(err) != backends.KindAuth || !strings.Contains(backends.HintOf(err), "ssh-keygen") ||
			!strings.Contains(err.Error(), old) || !strings.Contains(err.Error(), xssh.FingerprintSHA256(s2.hostKey.PublicKey())) {
			t.Fatalf("%v, hint %q", err, backends.HintOf(err))
		}
		if s2.count() != 0 {
			t.Error("a password was sent to a host with another key")
		}
	})
	t.Run("revoked between two logins", func(t *testing.T) {
		s := startServer(t, nil)
		c := trusting(t, s)
		pool := newPool(t, c)
		conn, err := pool.Dial(t.Context(), s.target("guest vm-01"))
		testclass.OK(t, err)
		conn.Drop()
		conn.Close()
		b, _ := os.ReadFile(c.KnownHosts[0])
		testclass.OK(t, os.WriteFile(c.KnownHosts[0], append([]byte("@revoked "), b...), 0o600))
		if _, err := pool.Dial(t.Context(), s.target("guest vm-01")); backends.KindOf(err) != backends.KindAuth ||
			!strings.Contains(err.Error(), "revoked") {
			t.Fatalf("the file has changed since it was read: %v", err)
		}
	})
	t.Run("revoked", func(t *testing.T) {
		s := startServer(t, nil)
		c := trusting(t, s)
		b, _ := os.ReadFile(c.KnownHosts[0])
		testclass.OK(t, os.WriteFile(c.KnownHosts[0], append([]byte("@revoked "), b...), 0o600))
		if _, err := newPool(t, c).Dial(t.Context(), s.target("guest vm-01")); backends.KindOf(err) != backends.KindAuth ||
			!strings.Contains(err.Error(), "revoked") {
			t.Fatal(err)
		}
	})
}

func TestLogin(t *testing.T) {
	signer, priv := newKey(t)
	locked := writeKey(t, priv, "hush")
	plain := writeKey(t, priv, "")
	_, stranger := newKey(t)
	for _, test := range []struct {
		name   string
		change func(*ssh.Config)
		says   string // "": accepted
	}{
		{"key file", func(c *ssh.Config) { c.Keys = []string{plain} }, ""},
		{"encrypted key file", func(c *ssh.Config) {
			c.Keys = []string{locked}
			c.Passphrase = func(context.Context, string) (string, error) { return "hush", nil }
		}, ""},
		{"wrong passphrase", func(c *ssh.Config) {
			c.Keys = []string{locked}
			c.Passphrase = func(context.Context, string) (string, error) { return "wrong", nil }
		}, "passphrase"},
		{"encrypted key and nobody to ask", func(c *ssh.Config) { c.Keys = []string{locked} }, "no terminal to ask"},
		{"a stranger's key first", func(c *ssh.Config) { c.Keys = []string{writeKey(t, stranger, ""), plain} }, ""},
		{"a stranger's key only", func(c *ssh.Config) { c.Keys = []string{writeKey(t, stranger, "")} }, "tried key "},
		{"no such key file", func(c *ssh.Config) { c.Keys = []string{plain + ".gone"} }, "cannot be read"},
		{"agent", func(c *ssh.Config) { c.AgentSocket = startAgent(t, priv) }, ""},
		{"agent that is gone, then the password", func(c *ssh.Config) {
			c.AgentSocket = filepath.Join(t.TempDir(), "gone")
			c.Password = func(context.Context, ssh.Target) (string, error) { return "open sesame", nil }
		}, ""},
		{"wrong password", func(c *ssh.Config) {
			c.Password = func(context.Context, ssh.Target) (string, error) { return "guess", nil }
		}, "tried password"},
		{"nothing", func(c *ssh.Config) { c.Password = func(context.Context, ssh.Target) (string, error) { return "", nil } },
			"neither a key nor a password was given"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := startServer(t, func(s *server) { s.key = signer.PublicKey() })
			c := ssh.Config{KnownHosts: []string{knownHosts(t, s)}}
			test.change(&c)
			conn, err := newPool(t, c).Dial(t.Context(), s.target("guest vm-01"))
			if test.says == "" {
				testclass.OK(t, err)
				conn.Close()
				return
			}
			if backends.KindOf(err) != backends.KindAuth || !strings.Contains(err.Error(), test.says) || backends.HintOf(err) == "" {
				t.Fatalf("%v, hint %q", err, backends.HintOf(err))
			}
			if strings.Contains(err.Error(), "guess") {
				t.Error("the error holds the password")
			}
		})
	}
}

func TestAQuestionStopsTheClock(t *testing.T) {
	s := startServer(t, nil)
	c := trusting(t, s)
	c.DialTimeout = 300 * time.Millisecond
	c.Password = func(ctx context.Context, _ ssh.Target) (string, error) {
		select { // a slow typist
		case <-ctx.Done():
		case <-time.After(700 * time.Millisecond):
		}
		return "open sesame", ctx.Err()
	}
	conn, err := newPool(t, c).Dial(t.Context(), s.target("guest vm-01"))
	testclass.OK(t, err)
	conn.Close()
}

func startAgent(t *testing.T, priv any) string {
	t.Helper()
	ring := agent.NewKeyring()
	testclass.OK(t, ring.Add(agent.AddedKey{PrivateKey: priv}))
	dir, err := os.MkdirTemp("", "a")
	testclass.OK(t, err)
	l, err := net.Listen("unix", filepath.Join(dir, "s"))
	testclass.OK(t, err)
	t.Cleanup(func() { l.Close(); os.RemoveAll(dir) })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go agent.ServeAgent(ring, c)
		}
	}()
	return l.Addr().String()
}

func TestJumpHosts(t *testing.T) {
	last := startServer(t, nil)
	second := startServer(t, func(s *server) { s.forward = true })
	first := startServer(t, func(s *server) { s.forward = true })
	c := trusting(t, first, second, last)
	c.Jump = []string{"ops@" + first.addr, "ops@" + second.addr}
	p := newPool(t, c)
	conn, err := p.Dial(t.Context(), last.target("guest vm-01"))
	testclass.OK(t, err)
	if r, err := conn.Run(t.Context(), ssh.Command{Script: "echo through"}); err != nil || r.Stdout != "through\n" {
		t.Fatalf("%q %v", r.Stdout, err)
	}
	if first.count() != 1 || second.count() != 1 || last.count() != 1 {
		t.Errorf("logins %d %d %d", first.count(), second.count(), last.count())
	}
	conn.Close()

	t.Run("the last key is verified too", func(t *testing.T) {
		c := trusting(t, first, second)
		c.Jump = []string{"ops@" + first.addr, "ops@" + second.addr}
		_, err := newPool(t, c).Dial(t.Context(), last.target("guest vm-01"))
		if backends.KindOf(err) != backends.KindAuth || !strings.HasPrefix(err.Error(), "guest vm-01: ") {
			t.Fatal(err)
		}
	})
	t.Run("the first key is verified too", func(t *testing.T) {
		c := trusting(t, second, last)
		c.Jump = []string{"ops@" + first.addr, "ops@" + second.addr}
		_, err := newPool(t, c).Dial(t.Context(), last.target("guest vm-01"))
		if backends.KindOf(err) != backends.KindAuth || !strings.Contains(err.Error(), "jump host") {
			t.Fatal(err)
		}
	})
	t.Run("the jump host cannot reach it", func(t *testing.T) {
		c := trusting(t, first)
		c.Jump = []string{"ops@" + first.addr}
		_, err := newPool(t, c).Dial(t.Context(), ssh.Target{Name: "guest vm-01", Host: "127.0.0.1", Port: 1, User: "ops"})
		if backends.KindOf(err) != backends.KindUnreachable || !strings.Contains(err.Error(), "jump host could not reach") {
			t.Fatal(err)
		}
	})
}

func TestSSHConfig(t *testing.T) {
	signer, priv := newKey(t)
	jump := startServer(t, func(s *server) { s.forward, s.key = true, signer.PublicKey() })
	s := startServer(t, func(s *server) { s.key = signer.PublicKey(); s.password = "" })
	split := func(a string) (string, string) { h, p, _ := net.SplitHostPort(a); return h, p }
	jh, jp := split(jump.addr)
	sh, sp := split(s.addr)
	file := filepath.Join(t.TempDir(), "config")
	text := "Host hop\n  HostName " + jh + "\n  Port " + jp + "\n  User ops\n" +
		"Host rdma-1\n  HostName " + sh + "\n  Port " + sp + "\n  User ops\n  IdentityFile " + writeKey(t, priv, "") + "\n  ProxyJump hop\n" +
		"Host odd\n  ProxyCommand nc %h %p\n"
	testclass.Write(t, file, text)
	c := trusting(t, jump, s)
	c.SSHConfig = []string{filepath.Join(t.TempDir(), "none"), file}
	p := newPool(t, c)
	conn, err := p.Dial(t.Context(), ssh.Target{Host: "rdma-1"})
	testclass.OK(t, err)
	if conn.User() != "ops" || conn.Address() != s.addr || jump.count() != 1 {
		t.Errorf("%s@%s, %d logins on the way", conn.User(), conn.Address(), jump.count())
	}
	conn.Close()
	if _, err := p.Dial(t.Context(), ssh.Target{Host: "odd"}); backends.KindOf(err) != backends.KindUsage {
		t.Errorf("ProxyCommand: %v", err)
	}
	testclass.Write(t, file, "Host \"x\n\x00")
	if _, err := ssh.NewPool(c); err != nil && backends.KindOf(err) != backends.KindUsage {
		t.Errorf("broken ssh_config: %v", err)
	}
}
