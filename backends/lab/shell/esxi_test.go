package shell_test

import (
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/rdma-setup/rdma-setup/backends/lab/world"
	"github.com/rdma-setup/rdma-setup/backends/lab/world/scenario"
)

func (l *lab) host(name string) *ssh.Client {
	l.Helper()
	if err := l.world.SetService(name, "TSM-SSH", true); err != nil {
		l.Fatal(err)
	}
	addr, err := l.servers.Host(name)
	if err != nil {
		l.Fatal(err)
	}
	return l.dialAddr(addr, l.config("root"))
}

func TestESXiLetsNobodyInWithoutItsService(t *testing.T) {
	l := start(t, scenario.Spec{Hosts: 1, VMs: 1})
	addr, err := l.servers.Host("esx-01")
	if err != nil {
		t.Fatal(err)
	}
	if c, err := ssh.Dial("tcp", addr, l.config("root")); err == nil {
		_ = c.Close()
		t.Fatal("SSH is off and answers")
	}
	c := l.host("esx-01")
	gone := make(chan error, 1)
	go func() { gone <- c.Wait() }()
	if err := l.world.SetService("esx-01", "TSM-SSH", false); err != nil {
		t.Fatal(err)
	}
	select {
	case <-gone:
	case <-time.After(5 * time.Second):
		t.Error("the connection outlived the service")
	}
	if err := l.world.SetService("esx-01", "TSM-SSH", true); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		user, password string
		in             bool
	}{{"root", l.world.Secrets.ESXi, true}, {"root", "guess", false}, {"admin", l.world.Secrets.ESXi, false}} {
		c, err := ssh.Dial("tcp", addr, &ssh.ClientConfig{User: tc.user, Auth: []ssh.AuthMethod{ssh.Password(tc.password)},
			HostKeyCallback: ssh.InsecureIgnoreHostKey()})
		if err == nil {
			_ = c.Close()
		}
		if (err == nil) != tc.in {
			t.Errorf("%s with %q: %v", tc.user, tc.password, err)
		}
	}
	err = l.world.Update(func(s *world.State) ([]world.Event, error) {
		s.Host("esx-01").Lockdown = "lockdownNormal"
		return nil, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if c, err := ssh.Dial("tcp", addr, l.config("root")); err == nil {
		_ = c.Close()
		t.Error("lockdown mode let root in")
	}
}

func TestESXiFaults(t *testing.T) {
	l := start(t, scenario.Spec{Hosts: 1, VMs: 1, Faults: []string{"host=esx-01,command=vsish -e get,do=fail:Internal error",
		"host=esx-01,command=vsish -e cat,do=drop"}})
	c := l.host("esx-01")
	if r := run(t, c, "vsish -e get /net/pNics/vmnic2/stats", ""); r != (result{"", "Internal error\n", 1}) {
		t.Errorf("got %+v", r)
	}
	if r := run(t, c, "vsish -e cat /net/pNics/vmnic2/stats", ""); r.status != lost {
		t.Errorf("got %+v", r)
	}
}

func TestESXiReboot(t *testing.T) {
	l := start(t, scenario.Spec{Hosts: 1, VMs: 1, Timing: world.Timing{HostReboot: 50 * time.Millisecond}})
	c := l.host("esx-01")
	guest := l.dial("vm-01", "ubuntu")
	ok(t, c, "reboot")
	_ = c.Wait()
	_ = guest.Wait()
	addr, err := l.servers.Host("esx-01")
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the host is back", func() bool {
		c, err := ssh.Dial("tcp", addr, l.config("root"))
		if err != nil {
			return false
		}
		_ = c.Close()
		return true
	})
	if n := len(l.world.Log.Outages()); n != 1 {
		t.Errorf("%d outages", n)
	}
}
