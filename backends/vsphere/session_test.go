package vsphere_test

import (
	"context"
	"testing"

	"github.com/vmware/govmomi"
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/mo"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/testclass"
	"github.com/rdma-setup/rdma-setup/backends/vsphere"
)

var everything = backends.Scope{}

func TestSessionExpires(t *testing.T) {
	w := start(t, func(m *simulator.Model) { m.Portgroup = 2 }, listOption)
	asked := 0
	cfg := w.config()
	cfg.Password = func(context.Context) (string, error) { asked++; return "secret-word", nil }
	c, err := vsphere.Dial(t.Context(), cfg)
	testclass.OK(t, err)
	defer c.Close()
	vm := backends.VMRef("DC0_C0_RP0_VM0")
	adapter := backends.Setting{Target: vm, Kind: backends.KindAdapter, Name: "DC0_DVPG1"}
	spec := backends.AdapterSpec{Type: "pvrdma", PortGroup: adapter.Name, Switch: "DVS0", Protocol: "rocev2", Start: true}
	powerOff(t, w, vm.Name)

	// A read, a call that writes, and a task: each is called when the session has ended, with its collector.
	expire(t, w)
	if _, err := c.Inventory(t.Context(), everything); err != nil {
		t.Errorf("inventory: %v", err)
	}
	expire(t, w)
	s := backends.Setting{Target: backends.HostRef("DC0_H0"), Kind: backends.KindOption, Name: option}
	if err := c.Setters()[s.Kind].Set(t.Context(), s, backends.ValueOf("vmk0"), nil); err != nil {
		t.Errorf("option: %v", err)
	}
	expire(t, w)
	if err := c.Setters()[adapter.Kind].Set(t.Context(), adapter, backends.ValueOf(spec), nil); err != nil {
		t.Errorf("adapter: %v", err)
	}
	expire(t, w)
	if err := c.Setters()[adapter.Kind].Set(t.Context(), adapter, backends.Absent, nil); err != nil {
		t.Errorf("adapter removed: %v", err)
	}
	if asked != 5 {
		t.Errorf("logged in %d times, want 5", asked)
	}
}

// expire ends every session, as an administrator or an idle timeout does.
func expire(t *testing.T, w *world) {
	t.Helper()
	admin, err := govmomi.NewClient(t.Context(), w.URL, true)
	testclass.OK(t, err)
	defer func() { _ = admin.Logout(t.Context()) }()
	var manager mo.SessionManager
	if err := admin.RetrieveOne(t.Context(), *admin.ServiceContent.SessionManager, []string{"sessionList", "currentSession"},
		&manager); err != nil {
		t.Fatal(err)
	}
	for _, s := range manager.SessionList {
		if s.Key != manager.CurrentSession.Key {
			testclass.OK(t, admin.SessionManager.TerminateSession(t.Context(), []string{s.Key}))
		}
	}
}

func TestSessionEndsPermanently(t *testing.T) {
	w := start(t, nil, nil)
	cfg := w.config()
	right := "secret-word"
	asked := 0
	cfg.Password = func(context.Context) (string, error) { asked++; return right, nil }
	c, err := vsphere.Dial(t.Context(), cfg)
	testclass.OK(t, err)
	defer c.Close()
	expire(t, w)
	right = "changed meanwhile"
	for range 3 {
		_, err = c.Inventory(t.Context(), everything)
		check(t, err, backends.KindAuth, "user name or password is wrong")
	}
	if asked != 2 {
		t.Errorf("tried to log in %d times: the account would be locked", asked)
	}
}

func TestBrokenWire(t *testing.T) {
	w := start(t, nil, listOption)
	s := backends.Setting{Target: backends.HostRef("DC0_C0_H0"), Kind: backends.KindOption, Name: option}
	for _, tt := range []struct {
		name, method string
		r            rule
		value        string
	}{
		{"vCenter restarts before a read", "QueryOptions", status(503, 1), "vmk0"},
		{"vCenter restarts before a write", "UpdateOptions", status(503, 1), "vmk1"},
		{"the proxy in front of vCenter restarts", "UpdateOptions", status(502, 1), "vmk2"},
		{"a read breaks", "QueryOptions", hangUp(1, false), "vmk3"},
		{"a write breaks before it is done", "UpdateOptions", hangUp(1, false), "vmk4"},
		{"a write breaks after it is done", "UpdateOptions", hangUp(1, true), "vmk5"},
		{"somebody else writes first", "UpdateOptions", fault("ConcurrentAccess", "concurrent", 2), "vmk6"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := between(t, w)
			c := p.dial(t)
			p.on(tt.method, tt.r)
			testclass.OK(t, c.Setters()[s.Kind].Set(t.Context(), s, backends.ValueOf(tt.value), nil))
			if v, err := c.Setters()[s.Kind].Read(t.Context(), s); err != nil || v != backends.ValueOf(tt.value) {
				t.Errorf("reads %s (%v)", v, err)
			}
		})
	}
	t.Run("refused for good", func(t *testing.T) {
		p := between(t, w)
		c := p.dial(t)
		p.on("UpdateOptions", fault("NoPermission", "Permission to perform this operation was denied.", 9))
		err := c.Setters()[s.Kind].Set(t.Context(), s, backends.ValueOf("vmk7"), nil)
		check(t, err, backends.KindPermission, "rdma-setup generate role")
		if n := p.calls("UpdateOptions"); n != 1 {
			t.Errorf("tried %d times", n)
		}
	})
	t.Run("the wait for a task breaks", func(t *testing.T) {
		powerOff(t, w, "DC0_C0_RP0_VM1")
		m := backends.Setting{Target: backends.VMRef("DC0_C0_RP0_VM1"), Kind: backends.KindMemory}
		p := between(t, w)
		c := p.dial(t)
		p.on("WaitForUpdatesEx", hangUp(1, true))
		if err := c.Setters()[m.Kind].Set(t.Context(), m, backends.ValueOf(backends.MemorySpec{Locked: true, ReservationMB: 32}),
			nil); err != nil {
			t.Fatal(err)
		}
	})
}
