package ssh_test

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/ssh"
	"github.com/rdma-setup/rdma-setup/backends/testclass"
)

func TestUnreachable(t *testing.T) {
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	testclass.OK(t, err)
	closed.Close()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	testclass.OK(t, err)
	defer silent.Close()
	web, err := net.Listen("tcp", "127.0.0.1:0")
	testclass.OK(t, err)
	defer web.Close()
	go func() {
		for {
			c, err := web.Accept()
			if err != nil {
				return
			}
			c.Write([]byte(strings.Repeat("HTTP/1.0 400 Bad Request\r\n", 400)))
			c.Close()
		}
	}()
	port := func(l net.Listener) int { return l.Addr().(*net.TCPAddr).Port }
	for _, test := range []struct {
		name string
		to   ssh.Target
		says string
	}{
		{"refused", ssh.Target{Host: "127.0.0.1", Port: port(closed)}, "refused the connection"},
		{"name does not resolve", ssh.Target{Host: "no-such-host.invalid"}, "could not be resolved"},
		{"accepts and says nothing", ssh.Target{Host: "127.0.0.1", Port: port(silent)}, "within 300ms"},
		{"not an SSH server", ssh.Target{Host: "127.0.0.1", Port: port(web)}, "127.0.0.1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.to.Name = "guest vm-07"
			start := time.Now()
			_, err := newPool(t, ssh.Config{DialTimeout: 300 * time.Millisecond}).Dial(t.Context(), test.to)
			if backends.KindOf(err) != backends.KindUnreachable || !strings.Contains(err.Error(), test.says) ||
				!strings.HasPrefix(err.Error(), "guest vm-07: ") || backends.HintOf(err) == "" {
				t.Fatalf("%v (%s), hint %q", err, backends.KindOf(err), backends.HintOf(err))
			}
			if took := time.Since(start); took > 5*time.Second {
				t.Errorf("it took %s", took)
			}
		})
	}
	t.Run("hangs up twice, as with MaxStartups", func(t *testing.T) {
		s := startServer(t, func(s *server) { s.hangups = 2 })
		conn, err := newPool(t, trusting(t, s)).Dial(t.Context(), s.target("guest vm-01"))
		testclass.OK(t, err)
		conn.Close()
	})
	t.Run("cancelled", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(50*time.Millisecond, cancel)
		_, err := newPool(t, ssh.Config{}).Dial(ctx, ssh.Target{Host: "127.0.0.1", Port: port(silent)})
		if backends.KindOf(err) != backends.KindInterrupted {
			t.Fatal(err)
		}
	})
}

func TestOneConnectionATarget(t *testing.T) {
	s := startServer(t, nil)
	p := newPool(t, trusting(t, s))
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			c, err := p.Dial(t.Context(), s.target("guest vm-01"))
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			if r, err := c.Run(t.Context(), ssh.Command{Argv: []string{"echo", "here"}}); err != nil || r.Stdout != "here\n" {
				t.Errorf("%q %v", r.Stdout, err)
			}
		})
	}
	all.Wait()
	if n := s.count(); n > 20 || n < 1 {
		t.Errorf("%d logins", n)
	}
	a, err := p.Dial(t.Context(), s.target("guest vm-01"))
	testclass.OK(t, err)
	before := s.count()
	b, err := p.Dial(t.Context(), s.target("guest vm-01"))
	testclass.OK(t, err)
	a.Close()
	if _, err := b.Run(t.Context(), ssh.Command{Script: ":"}); err != nil || s.count() != before {
		t.Errorf("%d logins, then %d, %v", before, s.count(), err)
	}
	b.Drop()
	if _, err := b.Run(t.Context(), ssh.Command{Script: ":"}); err != nil || s.count() != before+1 {
		t.Errorf("%d logins, then %d, %v", before, s.count(), err)
	}
	b.Close()
}

// TestIdleConnectionsAreClosed has room for two idle connections: the third target takes the place of the one that has been idle
// for longest, and a running command keeps its connection.
func TestIdleConnectionsAreClosed(t *testing.T) {
	servers := []*server{startServer(t, nil), startServer(t, nil), startServer(t, nil)}
	config := trusting(t, servers...)
	config.Connections = 2
	p := newPool(t, config)
	var conns []*ssh.Conn
	for i, s := range servers {
		c, err := p.Dial(t.Context(), s.target(fmt.Sprintf("guest vm-%02d", i)))
		testclass.OK(t, err)
		defer c.Close()
		conns = append(conns, c)
	}
	run := func(i int, script string, line func(string)) {
		t.Helper()
		if _, err := conns[i].Run(t.Context(), ssh.Command{Script: script, OnLine: line}); err != nil {
			t.Errorf("on %d: %v", i, err)
		}
	}
	logins := func(want ...int) {
		t.Helper()
		for i, s := range servers {
			if s.count() != want[i] {
				t.Errorf("server %d: %d logins, want %d", i, s.count(), want[i])
			}
		}
	}
	for range 3 {
		run(0, ":", nil)
		run(1, ":", nil)
	}
	logins(1, 1, 1)
	run(2, ":", nil) // closes 0
	run(1, ":", nil)
	logins(1, 1, 1)
	run(0, ":", nil) // closes 2
	logins(2, 1, 1)
	// While a command runs on 1, two others end: 1 is the oldest, and stays.
	run(1, "echo here", func(string) {
		run(2, ":", nil)
		run(0, ":", nil)
	})
	logins(2, 1, 2)
}

func TestKeepAliveEndsADeadConnection(t *testing.T) {
	s := startServer(t, nil)
	front, err := net.Listen("tcp", "127.0.0.1:0")
	testclass.OK(t, err)
	defer front.Close()
	var cut atomic.Bool
	go func() { // a path on which packets are lost after the cut
		for {
			in, err := front.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", s.addr)
			if err != nil {
				return
			}
			pipe := func(to, from net.Conn) {
				buf := make([]byte, 4096)
				for {
					n, err := from.Read(buf)
					if err != nil {
						to.Close()
						return
					}
					if !cut.Load() {
						to.Write(buf[:n])
					}
				}
			}
			go pipe(in, out)
			go pipe(out, in)
		}
	}()
	host, port, _ := net.SplitHostPort(front.Addr().String())
	n, _ := strconv.Atoi(port)
	c := ssh.Config{KeepAlive: 50 * time.Millisecond, Confirm: func(context.Context, ssh.HostKey) (bool, error) { return true, nil },
		KnownHosts: []string{filepath.Join(t.TempDir(), "k")}, Password: trusting(t).Password}
	conn, err := newPool(t, c).Dial(t.Context(), ssh.Target{Name: "guest vm-01", Host: host, Port: n, User: "ops"})
	testclass.OK(t, err)
	defer conn.Close()
	_, err = conn.Run(t.Context(), ssh.Command{Script: "echo up; exec sleep 1000", OnLine: func(string) { cut.Store(true) }})
	if backends.KindOf(err) != backends.KindUnreachable {
		t.Fatal(err)
	}
}
