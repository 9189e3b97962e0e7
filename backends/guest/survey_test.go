package guest_test

import (
	"slices"
	"testing"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/guest"
)

func TestSurvey(t *testing.T) {
	for _, os := range systems() {
		t.Run(os, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t, config{os: os})
			m.root(t, "mkdir -p /run/rdma-setup-try.99999/etc") // of a reader that was killed
			g := m.Survey(t.Context(), m.vm)
			manager, system := "apt", "netplan"
			if os[:4] == "rhel" {
				manager, system = "dnf", "networkmanager"
			}
			if g.Error != "" || g.OS != os[:len(g.OS)] || g.Version == "" || g.Pretty == "" || g.Kernel == "" || g.Arch != "x86_64" ||
				g.Sudo != "nopasswd" || g.PackageManager != manager || g.NetConfig != system || g.User != "ops" {
				t.Errorf("%+v", g)
			}
			if !slices.Contains(g.Available, "vmw_pvrdma") || !slices.Contains(g.Loaded, "vmw_pvrdma") {
				t.Errorf("available %v, loaded %v", g.Available, g.Loaded)
			}
			if left := m.root(t, "ls -d /run/rdma-setup-try.* 2>/dev/null || :"); system == "netplan" && left != "" {
				t.Errorf("left: %s", left)
			}
			if g.MemlockKB <= 0 {
				t.Errorf("memlock %d KB", g.MemlockKB)
			}
			i := g.Interface(m.mac)
			if i == nil || i.Persistent || i.MTU != 1500 {
				t.Errorf("the RDMA interface: %+v", i)
			}
			first := g.Interfaces[0]
			if first.MAC == m.mac || !first.DHCP || !first.Persistent || first.Config == "" || len(first.Addresses) == 0 {
				t.Errorf("the management interface: %+v", first)
			}
		})
	}
}

func TestSurveyOfAGuestThatIsSetUpByTheGuides(t *testing.T) {
	for _, os := range []string{"ubuntu-22.04", "rhel-9"} {
		t.Run(os, func(t *testing.T) {
			m := newMachine(t, config{os: os, preset: true})
			g := m.Survey(t.Context(), m.vm)
			i, d := g.Interface(m.mac), g.Verbs(m.mac)
			if i == nil || !i.Persistent || i.MTU != 9000 || !slices.Equal(i.Addresses, []string{"192.168.50.21/24"}) {
				t.Errorf("the interface: %+v", i)
			}
			if d == nil || d.State != "PORT_ACTIVE" || d.ActiveMTU == 0 || d.RateGbps == 0 {
				t.Errorf("the RDMA device: %+v", d)
			}
			if reload := g.Persist.Reload; (os == "ubuntu-22.04") != (reload == "vmw_pvrdma") || len(g.Persist.Modules) != 3 {
				t.Errorf("%+v", g.Persist)
			}
			for _, a := range wanted(m, os) {
				if a.Kind == backends.KindMemlock || a.Kind == backends.KindAddress || a.Kind == backends.KindPersist {
					m.Want(a.Setting, a.To)
					if v, err := m.Setters()[a.Kind].Read(t.Context(), a.Setting); err != nil || v != a.To {
						t.Errorf("%s is %s, %v", a.ID(), v, err)
					}
				}
			}
		})
	}
}

func TestSurveyWithoutRoot(t *testing.T) {
	m := newMachine(t, config{os: "ubuntu-22.04", sudo: "secret"})
	never := newMachine(t, config{os: "ubuntu-22.04", user: "nosudo"})
	for name, m := range map[string]*machine{"password": m, "none": never} {
		g := m.Survey(t.Context(), m.vm)
		if g.Error != "" || g.Kernel == "" || len(g.Interfaces) < 2 || g.NetConfig != "netplan" || name == "none" && g.Sudo != "none" {
			t.Errorf("%s: %+v", name, g)
		}
	}
}

func TestSurveyOfAGuestThatDoesNotAnswer(t *testing.T) {
	m := newMachine(t, config{os: "rhel-8", options: guest.Options{BootTime: 3 * time.Second}})
	if g := m.Survey(t.Context(), "another-vm"); g.Error == "" || g.ErrKind != backends.KindUsage || g.VM != "another-vm" {
		t.Errorf("%+v", g)
	}
	m.proxy.close()
	g := m.Survey(t.Context(), m.vm)
	if g.Error == "" || g.ErrKind != backends.KindUnreachable || g.Hint == "" || g.Kernel != "" {
		t.Errorf("%+v", g)
	}
	if err := m.Wait(t.Context(), m.vm); backends.KindOf(err) != backends.KindUnreachable || backends.HintOf(err) == "" {
		t.Errorf("%v", err)
	}
	m.proxy.reopen()
	if err := m.Wait(t.Context(), m.vm); err != nil {
		t.Error(err)
	}
	id, err := m.BootID(t.Context(), m.vm)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Boot(t.Context(), m.vm, id); backends.KindOf(err) != backends.KindUnreachable {
		t.Errorf("a guest that has not rebooted: %v", err)
	}
}
