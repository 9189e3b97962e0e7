package shell_test

import (
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/rdma-setup/rdma-setup/backends/lab/world"
	"github.com/rdma-setup/rdma-setup/backends/lab/world/scenario"
)

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
		c, err := ssh.Dial("tcp", addr, &ssh.ClientConfig{User: "root", Auth: []ssh.AuthMethod{ssh.Password(password)}, HostKeyCallback: ssh.InsecureIgnoreHostKey()})
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
