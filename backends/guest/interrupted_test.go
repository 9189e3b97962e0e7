package guest_test

import (
	"strings"
	"testing"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/guest"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
	"github.com/rdma-setup/rdma-setup/backends/ssh"
)

// A guest that goes down while dpkg configures a package leaves apt-get refusing all work until that is finished.
func TestAnInstallationCutShortByAReboot(t *testing.T) {
	const postinst = "command=/bin/sh /var/lib/dpkg/info/rdma-core.postinst"
	want := backends.ValueOf(backends.PackageSpec{Installed: []string{"perftest", "rdma-core"}})
	cut := func(t *testing.T) (*machine, backends.Setting, backends.Setter, backends.Value) {
		m := newMachine(t, config{os: "ubuntu-22.04", options: guest.Options{}})
		s, set := m.setting(backends.KindPackages, "rdma"), m.Setters()[backends.KindPackages]
		kept, err := set.(backends.Keeper).Keep(t.Context(), s, want)
		if err != nil {
			t.Fatal(err)
		}
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
		if now, err := set.Read(t.Context(), s); err != nil || now == want {
			t.Fatalf("installed are %s, %v", now, err)
		}
		return m, s, set, kept
	}
	whole := func(t *testing.T, m *machine) {
		t.Helper()
		if said := m.root(t, "dpkg --audit; ls /var/lib/dpkg/updates 2>/dev/null || :"); said != "" {
			t.Errorf("dpkg has left: %s", said)
		}
	}
	t.Run("is finished by the next one", func(t *testing.T) {
		m, s, set, _ := cut(t)
		if err := set.Set(t.Context(), s, want, nil); err != nil {
			t.Fatal(err)
		}
		if now, err := set.Read(t.Context(), s); err != nil || now != want {
			t.Errorf("installed are %s, %v", now, err)
		}
		whole(t, m)
	})
	t.Run("is taken back without a trace", func(t *testing.T) {
		m, s, set, kept := cut(t)
		if err := set.(backends.Keeper).Restore(t.Context(), s, kept, nil); err != nil {
			t.Fatal(err)
		}
		if now := m.root(t, "dpkg-query -W -f '${Package}\\n' perftest rdma-core librdmacm1 2>/dev/null || :"); now != "" {
			t.Errorf("left are %s", now)
		}
		whole(t, m)
	})
	t.Run("and another package manager is waited for", func(t *testing.T) {
		m, s, set, _ := cut(t)
		m.fault(t, "command=dpkg --force-confdef,nth=1,do=fail:dpkg: error: dpkg frontend lock was locked by another process with pid 812")
		if err := set.Set(t.Context(), s, want, nil); err != nil {
			t.Fatal(err)
		}
		whole(t, m)
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
