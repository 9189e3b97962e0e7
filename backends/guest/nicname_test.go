package guest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
	"github.com/rdma-setup/rdma-setup/backends/testclass"
)

// nameOf returns the name and the MAC of the first interface of the guest.
func (m *machine) nameOf(t *testing.T) (name, mac string) {
	t.Helper()
	name, mac, _ = strings.Cut(strings.TrimSpace(m.root(t, `for d in /sys/class/net/ens*; do echo "${d##*/} $(cat $d/address)"; break; done`)),
		" ")
	return name, mac
}

// TestNICNameOutlivesItsSlot: an adapter that comes back in another PCI slot (Broadcom KB 407595) has its name where a .link file gives
// it by MAC (systemd.link(5)), and another one without. What was there before comes back to the byte.
func TestNICNameOutlivesItsSlot(t *testing.T) {
	for _, os := range []string{"ubuntu-22.04", "debian-12", "rhel-9"} {
		t.Run(os, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t, config{os: os})
			m.root(t, "sed -i /set-name/d /etc/netplan/* || :") // by which netplan keeps the name
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
			testclass.OK(t, err)
			testclass.OK(t, m.Setters()[s.Kind].Set(t.Context(), s, backends.ValueOf(name), nil))
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
			testclass.OK(t, keep.Restore(t.Context(), s, kept, nil))
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

// A file that gives the name by MAC and comes before ours, as those of netplan do (set-name), is not a hindrance.
func TestNICNameThatNetplanKeeps(t *testing.T) {
	t.Parallel()
	m := newMachine(t, config{os: "ubuntu-22.04"})
	name, mac := m.nameOf(t)
	m.root(t,
		fmt.Sprintf(`printf '[Match]\nMACAddress=%s\n\n[Link]\nName=%s\n' >/etc/systemd/network/10-netplan-lan.link; update-initramfs -u`, mac,
			name))
	s := m.setting(backends.KindNICName, mac)
	testclass.OK(t, m.Setters()[s.Kind].Set(t.Context(), s, backends.ValueOf(name), nil))
}

// TestNICNameThatIsNotKept: udev applies the first matching .link file alone (systemd.link(5)), and an image of dracut that holds the
// driver names the interface without a new file (systemd issue 9006). Nothing is written.
func TestNICNameThatIsNotKept(t *testing.T) {
	for name, c := range map[string]struct{ os, before, want string }{
		"another file": {"debian-12",
			`sed -i /set-name/d /etc/netplan/*; netplan generate; printf '[Match]\nMACAddress=MAC\n\n[Link]\nName=NAME\nMTUBytes=9000\n' >/etc/systemd/network/50-lan.link; update-initramfs -u`,
			"/etc/systemd/network/50-lan.link already configures NAME"},
		"driver in the image": {"rhel-9",
			`echo '-rw-r--r-- 1 root root 1 Jan 1 00:00 usr/lib/modules/5/kernel/drivers/net/vmxnet3/vmxnet3.ko.xz' >>/boot/initramfs-$(uname -r).img`,
			"its initial RAM disk contains vmxnet3, and would name NAME"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t, config{os: c.os})
			name, mac := m.nameOf(t)
			fill := strings.NewReplacer("MACAddress=MAC", "MACAddress="+mac, "NAME", name)
			m.root(t, fill.Replace(c.before))
			before := m.disk(t)
			s := m.setting(backends.KindNICName, mac)
			err := m.Setters()[s.Kind].Set(t.Context(), s, backends.ValueOf(name), nil)
			if err == nil || !strings.Contains(err.Error(), fill.Replace(c.want)) || backends.KindOf(err) != backends.KindRefused {
				t.Errorf("want %q, got %v", fill.Replace(c.want), err)
			}
			if m.disk(t) != before {
				t.Error("a file was written")
			}
		})
	}
}
