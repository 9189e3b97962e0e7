package shell_test

import (
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/skeema/knownhosts"
	"golang.org/x/crypto/ssh"

	"github.com/rdma-setup/rdma-setup/backends/lab/world"
	"github.com/rdma-setup/rdma-setup/backends/lab/world/scenario"
)

func TestLogins(t *testing.T) {
	l := start(t, scenario.Spec{Hosts: 1, VMs: 1})
	addr, err := l.servers.Guest("vm-01")
	if err != nil {
		t.Fatal(err)
	}
	secret := l.world.Secrets.Guest
	ask := ssh.KeyboardInteractive(func(_, _ string, q []string, _ []bool) ([]string, error) { return []string{secret}[:len(q)], nil })
	for _, tc := range []struct {
		name, user string
		auth       ssh.AuthMethod
		in         bool
	}{
		{"key", "ubuntu", ssh.PublicKeys(l.signer), true},
		{"key of root", "root", ssh.PublicKeys(l.signer), true},
		{"password", "ubuntu", ssh.Password(secret), true},
		{"keyboard-interactive", "ubuntu", ask, true},
		{"wrong password", "ubuntu", ssh.Password("guess"), false},
		{"root by password", "root", ssh.Password(secret), false},
		{"unknown user", "nobody", ssh.PublicKeys(l.signer), false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c, err := ssh.Dial("tcp", addr, &ssh.ClientConfig{User: tc.user, Auth: []ssh.AuthMethod{tc.auth},
				HostKeyCallback: ssh.InsecureIgnoreHostKey()})
			if err == nil {
				_ = c.Close()
			}
			if (err == nil) != tc.in {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestKnownHosts(t *testing.T) {
	l := start(t, scenario.Spec{Hosts: 1, VMs: 2})
	file := filepath.Join(t.TempDir(), "known_hosts")
	if err := os.WriteFile(file, l.servers.KnownHosts(), 0o600); err != nil {
		t.Fatal(err)
	}
	db, err := knownhosts.NewDB(file)
	if err != nil {
		t.Fatal(err)
	}
	config := l.config("ubuntu")
	config.HostKeyCallback = db.HostKeyCallback()
	for _, vm := range []string{"vm-01", "vm-02"} {
		addr, err := l.servers.Guest(vm)
		if err != nil {
			t.Fatal(err)
		}
		if got := ok(t, l.dialAddr(addr, config), "hostname"); got != vm+"\n" {
			t.Errorf("%s calls itself %q", vm, got)
		}
	}
	if n := strings.Count(string(l.servers.KnownHosts()), "\n"); n != 3 {
		t.Errorf("%d lines for one host and two guests", n)
	}
}

func TestAddressesAreInTheWorld(t *testing.T) {
	l := start(t, scenario.Spec{Hosts: 1, VMs: 1})
	guest, err := l.servers.Guest("vm-01")
	if err != nil {
		t.Fatal(err)
	}
	host, err := l.servers.Host("esx-01")
	if err != nil {
		t.Fatal(err)
	}
	l.world.View(func(s *world.State) {
		g := s.VM("vm-01").Guest
		if _, port, _ := net.SplitHostPort(guest); g.Address != "127.0.0.1" || port == "0" || g.Port == 0 || s.Host("esx-01").ShellAddr != host {
			t.Errorf("the world has %s:%d and %s, the servers %s and %s", g.Address, g.Port, s.Host("esx-01").ShellAddr, guest, host)
		}
	})
}

func TestStatusStreamsAndInput(t *testing.T) {
	l := start(t, scenario.Spec{Hosts: 1, VMs: 1})
	c := l.dial("vm-01", "ubuntu")
	if r := run(t, c, "cat; echo oops >&2; exit 9", "in\n"); r != (result{"in\n", "oops\n", 9}) {
		t.Errorf("got %+v", r)
	}
	big := strings.Repeat("0123456789abcdef\n", 1<<16)
	if r := run(t, c, "cat >/tmp/big; wc -c </tmp/big; cat /tmp/big", big); r.out != "1114112\n"+big {
		t.Errorf("a megabyte did not come back: %d bytes, status %d", len(r.out), r.status)
	}
}

func TestSignalEndsTheCommand(t *testing.T) {
	l := start(t, scenario.Spec{Hosts: 1, VMs: 1})
	c := l.dial("vm-01", "ubuntu")
	s, err := c.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Start("sleep 60"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "sleep runs", func() bool { return run(t, c, "pgrep sleep", "").status == 0 })
	if err := s.Signal(ssh.SIGTERM); err != nil {
		t.Fatal(err)
	}
	var exit *ssh.ExitError
	if err := s.Wait(); !errors.As(err, &exit) || exit.Signal() != "TERM" {
		t.Errorf("got %v", err)
	}
}

// As with OpenSSH, a command without a terminal is not notified when its client disconnects and runs to its end. A command on a
// terminal gets SIGHUP.
func TestCommandOutlivesItsClient(t *testing.T) {
	l := start(t, scenario.Spec{Hosts: 1, VMs: 1})
	c := l.dial("vm-01", "ubuntu")
	for _, terminal := range []bool{false, true} {
		other := l.dial("vm-01", "ubuntu")
		s, err := other.NewSession()
		if err != nil {
			t.Fatal(err)
		}
		seconds := "61"
		if terminal {
			seconds = "62"
			if err := s.RequestPty("xterm", 24, 80, ssh.TerminalModes{}); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Start("sleep " + seconds); err != nil {
			t.Fatal(err)
		}
		find := "pgrep -f 'sleep " + seconds + "$'"
		eventually(t, "sleep runs", func() bool { return run(t, c, find, "").status == 0 })
		_ = other.Close()
		if terminal {
			eventually(t, "sleep is gone", func() bool { return run(t, c, find, "").status == 1 })
			continue
		}
		// Its writes now fail, but it is still running.
		if got := run(t, c, "sleep 0.1; "+find, ""); got.status != 0 {
			t.Errorf("sleep without a terminal is gone: %+v", got)
		}
		run(t, c, "pkill -f 'sleep "+seconds+"$'", "")
	}
}

func TestBackgroundOutlivesTheSession(t *testing.T) {
	l := start(t, scenario.Spec{Hosts: 1, VMs: 1})
	c := l.dial("vm-01", "ubuntu")
	ok(t, c, "nohup sleep 62 >/dev/null 2>&1 &")
	eventually(t, "sleep runs", func() bool { return run(t, c, "pgrep -x sleep", "").status == 0 })
	_ = c.Close()
	again := l.dial("vm-01", "ubuntu")
	if r := run(t, again, "pgrep -x sleep", ""); r.status != 0 {
		t.Errorf("it ended with the session: %+v", r)
	}
}

func TestSessionsAreLimited(t *testing.T) {
	l := start(t, scenario.Spec{Hosts: 1, VMs: 1})
	c := l.dial("vm-01", "ubuntu")
	for i := range 10 {
		s, err := c.NewSession()
		if err != nil {
			t.Fatalf("session %d: %v", i+1, err)
		}
		defer s.Close()
	}
	if s, err := c.NewSession(); err == nil {
		_ = s.Close()
		t.Error("an eleventh session was opened")
	}
}

// The lab has no subsystem: the product copies files through the shell.
func TestSubsystemsAreRefused(t *testing.T) {
	s, err := start(t, scenario.Spec{Hosts: 1, VMs: 1}).dial("vm-01", "ubuntu").NewSession()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.RequestSubsystem("sftp"); err == nil {
		t.Error("the subsystem sftp was started")
	}
}

func TestNobodyAnswersWhileTheGuestIsDown(t *testing.T) {
	l := start(t, scenario.Spec{Hosts: 1, VMs: 1})
	c := l.dial("vm-01", "ubuntu")
	ok(t, c, "true")
	closed := make(chan error, 1)
	go func() { closed <- c.Wait() }()
	if err := l.world.PowerOff("vm-01"); err != nil {
		t.Fatal(err)
	}
	select {
	case <-closed:
	case <-time.After(5 * time.Second):
		t.Fatal("the connection outlived the guest")
	}
	addr, err := l.servers.Guest("vm-01")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ssh.Dial("tcp", addr, l.config("ubuntu")); !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, io.EOF) {
		t.Errorf("got %v", err)
	}
	if err := l.world.PowerOn("vm-01"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it answers again", func() bool {
		c, err := ssh.Dial("tcp", addr, l.config("ubuntu"))
		if err != nil {
			return false
		}
		_ = c.Close()
		return true
	})
}

func TestFaultRules(t *testing.T) {
	l := start(t, scenario.Spec{Hosts: 1, VMs: 2, Faults: []string{
		"vm=vm-01,command=modprobe,nth=2,do=fail:modprobe: ERROR: could not insert",
		"vm=vm-01,command=hostname,do=hang",
		"vm=vm-01,command=uname,do=drop",
		"vm=vm-02,do=drop",
	}})
	c := l.dial("vm-01", "root")
	if r := run(t, c, "modprobe ib_umad; modprobe rdma_ucm; echo $?; modprobe rdma_ucm; echo $?", ""); r.out != "1\n0\n" ||
		!strings.Contains(r.err, "could not insert") {
		t.Errorf("got %+v", r)
	}
	if r := run(t, c, "timeout 0.1 hostname", ""); r.status != 124 {
		t.Errorf("it did not hang: %+v", r)
	}
	if r := run(t, c, "uname", ""); r.status != lost {
		t.Errorf("the connection was not cut: %+v", r)
	}
	addr, err := l.servers.Guest("vm-02")
	if err != nil {
		t.Fatal(err)
	}
	if c, err := ssh.Dial("tcp", addr, l.config("ubuntu")); err == nil {
		_ = c.Close()
		t.Error("a connection was let in")
	}
}

// TestESXiLocksTheAccount sends wrong passwords. After five in a row, the correct one is also refused for 15 minutes. A
// successful login in between resets the count (vSphere Security, "ESXi Passwords and Account Lockout"; Broadcom KB 436299).
func TestESXiLocksTheAccount(t *testing.T) {
	l := start(t, scenario.Spec{Hosts: 1, VMs: 1})
	addr, err := l.servers.Host("esx-01")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.world.SetService("esx-01", "TSM-SSH", true); err != nil {
		t.Fatal(err)
	}
	in := func(password string) bool {
		c, err := ssh.Dial("tcp", addr, &ssh.ClientConfig{User: "root", Auth: []ssh.AuthMethod{ssh.Password(password)},
			HostKeyCallback: ssh.InsecureIgnoreHostKey()})
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	}
	right := l.world.Secrets.ESXi
	for range 4 {
		in("wrong")
	}
	if !in(right) {
		t.Error("locked after four")
	}
	for range 5 {
		in("wrong")
	}
	if in(right) {
		t.Error("not locked after five")
	}
	err = l.world.Update(func(s *world.State) ([]world.Event, error) {
		if left := time.Until(s.Hosts[0].LockedUntil); left < 14*time.Minute || left > 15*time.Minute {
			t.Errorf("locked for %s", left)
		}
		s.Hosts[0].LockedUntil = time.Now()
		return nil, nil
	})
	if err != nil || !in(right) {
		t.Errorf("still locked (%v)", err)
	}
}
