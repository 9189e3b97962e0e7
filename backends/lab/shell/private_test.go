package shell_test

import (
	"net"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/rdma-setup/rdma-setup/backends/lab/memnet"
	"github.com/rdma-setup/rdma-setup/backends/lab/shell"
	"github.com/rdma-setup/rdma-setup/backends/lab/world/scenario"
)

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
