package guest_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/guest"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
	"github.com/rdma-setup/rdma-setup/backends/ssh"
	"github.com/rdma-setup/rdma-setup/backends/testclass"
)

// A guest that goes down while dpkg configures a package leaves apt-get refusing all work until that is finished.
func TestAnInstallationCutShortByAReboot(t *testing.T) {
	const postinst = "command=/bin/sh /var/lib/dpkg/info/rdma-core.postinst"
	want := backends.ValueOf(backends.PackageSpec{Installed: []string{"perftest", "rdma-core"}})
	cut := func(t *testing.T) (*machine, backends.Setting, backends.Setter, backends.Kept) {
		m := newMachine(t, config{os: "ubuntu-22.04", options: guest.Options{}})
		s, set := m.setting(backends.KindPackages, "rdma"), m.Setters()[backends.KindPackages]
		kept, err := set.(backends.Keeper).Keep(t.Context(), s, want)
		testclass.OK(t, err)
		m.fault(t, postinst+",do=hang")
		ended := make(chan error, 1)
		go func() { ended <- set.Set(t.Context(), s, want, nil) }()
		m.hung(t, postinst)
		m.reboot(t)
		if err := <-ended; err == nil {
			t.Fatal("the guest went down and nothing was said")
		}
		m.world.Faults.Clear()
		r, err := m.Run(t.Context(), m.vm, ssh.Command{Script: "apt-get -y install perftest", Sudo: true})
		if err != nil || r.ExitCode != 100 || !strings.Contains(r.Stderr, "you must manually run 'dpkg --configure -a'") {
			t.Fatalf("apt-get: %+v, %v", r, err)
		}
		if now, err := set.Read(t.Context(), s); err != nil || !now.IsPartial() {
			t.Fatalf("installed are %s, %v", now, err)
		}
		return m, s, set, kept
	}
	assertUsable := func(t *testing.T, m *machine) {
		t.Helper()
		if said := m.root(t, "dpkg --audit; ls /var/lib/dpkg/updates 2>/dev/null || :"); said != "" {
			t.Errorf("dpkg has left: %s", said)
		}
	}
	t.Run("is finished by the next one", func(t *testing.T) {
		m, s, set, _ := cut(t)
		testclass.OK(t, set.Set(t.Context(), s, want, nil))
		if now, err := set.Read(t.Context(), s); err != nil || now != want {
			t.Errorf("installed are %s, %v", now, err)
		}
		assertUsable(t, m)
	})
	t.Run("is taken back without a trace", func(t *testing.T) {
		m, s, set, kept := cut(t)
		testclass.OK(t, set.(backends.Keeper).Restore(t.Context(), s, kept, nil))
		if now := m.root(t, "dpkg-query -W -f '${Package}\\n' perftest rdma-core librdmacm1 2>/dev/null || :"); now != "" {
			t.Errorf("left are %s", now)
		}
		assertUsable(t, m)
	})
	t.Run("of a package that must be reinstalled", func(t *testing.T) {
		for _, what := range []string{"install", "restore"} {
			m := newMachine(t, config{os: "ubuntu-22.04", options: guest.Options{}})
			s, set := m.setting(backends.KindPackages, "rdma"), m.Setters()[backends.KindPackages]
			kept, err := set.(backends.Keeper).Keep(t.Context(), s, want)
			testclass.OK(t, err)
			m.fault(t, "command=dpkg --force-confdef --force-confold --status-fd 9 --no-triggers --unpack,do=kill:2")
			if err := set.Set(t.Context(), s, want, nil); err == nil {
				t.Fatal("dpkg was killed, and the installation is reported as done")
			}
			m.world.Faults.Clear()
			if state := m.root(t, "dpkg-query -W -f '${db:Status-Abbrev}|${Package}\n' | grep '^iUR' || :"); state == "" {
				t.Fatal("no package must be reinstalled")
			}
			if what == "install" {
				if err := set.Set(t.Context(), s, want, nil); err != nil {
					t.Error(err)
				}
				if now, err := set.Read(t.Context(), s); err != nil || now != want {
					t.Errorf("installed are %s, %v", now, err)
				}
			} else if err := set.(backends.Keeper).Restore(t.Context(), s, kept, nil); err != nil {
				t.Error(err)
			} else if now := m.root(t, "dpkg-query -W -f '${Package}\n' perftest rdma-core librdmacm1 2>/dev/null || :"); now != "" {
				t.Errorf("left are %s", now)
			}
			assertUsable(t, m)
		}
	})
	t.Run("and another package manager is waited for", func(t *testing.T) {
		m, s, set, _ := cut(t)
		m.fault(t, "command=dpkg --force-confdef,nth=1,do=fail:dpkg: error: dpkg frontend lock was locked by another process with pid 812")
		testclass.OK(t, set.Set(t.Context(), s, want, nil))
		assertUsable(t, m)
	})
}

// hung waits until a fault rule has been taken.
func (m *machine) hung(t *testing.T, rule string) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); <-time.After(5 * time.Millisecond) {
		for _, e := range m.world.Log.Events() {
			if e.What == world.FaultApplied && strings.Contains(e.Detail, rule) {
				return
			}
		}
	}
	t.Fatalf("%s was not taken", rule)
}

// An interrupted removal is recognised and repeated: nothing of this program is left.
func TestPartlyRemovedTrafficClass(t *testing.T) {
	testclass.Plain(t)
	for _, rule := range []string{"command=rmdir,do=fail:No such thing", "command=systemctl stop,do=hang",
		"command=rm -f -- /etc/systemd/system/rdma-setup-class,nth=1,do=drop"} {
		t.Run(rule, func(t *testing.T) {
			m := newMachine(t, config{os: "ubuntu-22.04", vf: true})
			for _, a := range wanted(m, "ubuntu-22.04") {
				if a.Kind == backends.KindPackages || a.Kind == backends.KindAddress {
					testclass.OK(t, m.Setters()[a.Kind].Set(t.Context(), a.Setting, a.To, nil))
				}
			}
			m.root(t, "modprobe -a rdma_cm rdma_ucm")
			before := m.disk(t)
			s, set := m.setting(backends.KindTrafficClass, m.group), m.Setters()[backends.KindTrafficClass]
			kept, err := set.(backends.Keeper).Keep(t.Context(), s, backends.ValueOf(106))
			testclass.OK(t, err)
			testclass.OK(t, set.Set(t.Context(), s, backends.ValueOf(106), nil))
			m.fault(t, rule)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			ended := make(chan error, 1)
			go func() { ended <- set.(backends.Keeper).Restore(ctx, s, kept, nil) }()
			if hangs, ok := strings.CutSuffix(rule, ",do=hang"); ok {
				m.hung(t, hangs)
				cancel()
			}
			if err := <-ended; err == nil {
				t.Error("nothing was said")
			}
			m.world.Faults.Clear()
			if now, err := set.Read(t.Context(), s); err != nil || now.IsAbsent() {
				t.Errorf("it reads %s, %v", now, err)
			}
			if g := m.Survey(t.Context(), m.vm); !slices.ContainsFunc(g.RDMA,
				func(d backends.VerbsDevice) bool { return d.ClassPartly && !d.ClassKept }) {
				t.Errorf("the survey sees %+v", g.RDMA)
			}
			if err := set.(backends.Keeper).Restore(t.Context(), s, kept, nil); err != nil {
				t.Error(err)
			}
			if now, err := set.Read(t.Context(), s); err != nil || !now.IsAbsent() {
				t.Errorf("it reads %s, %v", now, err)
			}
			if d := cmp.Diff(before, m.disk(t)); d != "" {
				t.Errorf("left (-before +after):\n%s", d)
			}
		})
	}
}

// Modules and drivers are chosen by the kernel: a guest that does not tell it is not taken for one with an old kernel.
func TestAGuestWithoutAKernelIsNotUnderstood(t *testing.T) {
	for _, do := range []string{"fail:No such thing", "garbage"} {
		m := newMachine(t, config{os: "ubuntu-22.04"})
		m.fault(t, "command=uname,do="+do)
		if g := m.Survey(t.Context(), m.vm); !strings.Contains(g.Error, "uname -r") || g.Hint == "" {
			t.Errorf("%s: %q, hint %q", do, g.Error, g.Hint)
		}
	}
}

// A failure after another user has restarted the guest says so: what the operation found says nothing about the guest.
func TestAGuestThatRestartsDuringAnOperation(t *testing.T) {
	m := newMachine(t, config{os: "ubuntu-22.04"})
	m.root(t, "echo blacklist vmw_pvrdma >/etc/modprobe.d/no-rdma.conf; modprobe -r vmw_pvrdma") // the adapter has no RDMA device
	for _, restarts := range []bool{false, true, false} {
		m.asked = nil
		if restarts {
			m.asked = func() { m.asked = nil; m.root(t, "sleep 0.5"); m.reboot(t) } // the step takes half a second
		}
		err := m.Setters()[backends.KindPort].Set(t.Context(), m.setting(backends.KindPort, m.group), backends.ValueOf("PORT_ACTIVE"), nil)
		const says = "it has restarted during this step: the adapter on"
		if backends.KindOf(err) != backends.KindPermanent || strings.Contains(err.Error(), says) != restarts ||
			strings.Contains(backends.HintOf(err), "why it restarted") != restarts {
			t.Errorf("restarts %v: %v, hint %q", restarts, err, backends.HintOf(err))
		}
	}
}
