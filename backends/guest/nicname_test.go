package guest_test

import (
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

// nameOf returns the name and the MAC of the first interface of the guest.
func (m *machine) nameOf(t *testing.T) (name, mac string) {
	t.Helper()
	name, mac, _ = strings.Cut(strings.TrimSpace(m.root(t, `for d in /sys/class/net/ens*; do echo "${d##*/} $(cat $d/address)"; break; done`)), " ")
	return name, mac
}

// TestNICNameOutlivesItsSlot: an adapter that comes back in another PCI slot (Broadcom KB 407595) has its name where a .link file gives
// it by MAC (systemd.link(5)), and another one without. What was there before comes back to the byte.
func TestNICNameOutlivesItsSlot(t *testing.T) {
	for _, os := range []string{"ubuntu-22.04", "debian-12", "rhel-9"} {
		t.Run(os, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t, config{os: os})
			name, mac := m.nameOf(t)
			s := m.setting(backends.KindNICName, mac)
			reads := func(want backends.Value) {
				t.Helper()
				if now, err := m.Setters()[s.Kind].Read(t.Context(), s); err != nil || now != want {
					t.Errorf("it reads %s, want %s: %v", now, want, err)
				}
			}
			reads(backends.Absent)
			keep, _ := backends.As[backends.Keeper](m.Setters()[s.Kind])
			before := m.root(t, "ls -A /etc/systemd/network /boot")
			kept, err := keep.Keep(t.Context(), s, backends.ValueOf(name))
			if err != nil {
				t.Fatal(err)
			}
			if err := m.Setters()[s.Kind].Set(t.Context(), s, backends.ValueOf(name), nil); err != nil {
				t.Fatal(err)
			}
			reads(backends.ValueOf(name))
			if err := m.world.Update(func(st *world.State) ([]world.Event, error) {
				for _, a := range st.VM(m.vm).Adapters {
					a.Slot ^= 4
				}
				return nil, nil
			}); err != nil {
				t.Fatal(err)
			}
			m.reboot(t)
			if now, _ := m.nameOf(t); now != name {
				t.Errorf("with the file %s is %s", name, now)
			}
			if err := keep.Restore(t.Context(), s, kept, nil); err != nil {
				t.Fatal(err)
			}
			reads(backends.Absent)
			m.reboot(t)
			if now, _ := m.nameOf(t); now == name {
				t.Errorf("without the file %s keeps its name", name)
			}
			if after := m.root(t, "ls -A /etc/systemd/network /boot"); after != before {
				t.Errorf("left: %q, was %q", after, before)
			}
		})
	}
}
