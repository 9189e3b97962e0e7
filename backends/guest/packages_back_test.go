package guest_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
)

// An installation upgrades a package that is there in an older version: the rollback restores that version, or names both if the
// repositories no longer have it.
func TestUpgradedDependenciesAreRestored(t *testing.T) {
	for os, c := range map[string]struct{ name, version, set, other, fault, query string }{
		"ubuntu-22.04": {"libibverbs1", "38.0-1", "ibverbs-utils", "ethtool",
			"command=apt-get -q -y -o DPkg::Lock::Timeout=60 -o Dpkg::Options::=--force-confdef -o Dpkg::Options::=--force-confold " +
				"--no-install-recommends --allow-downgrades,do=fail:E: Version '38.0-1' for 'libibverbs1' was not found",
			"dpkg-query -W -f '${Version}' libibverbs1"},
		"rocky-9": {"libibverbs", "37.1-1.el9", "libibverbs-utils", "ethtool",
			"command=dnf -y downgrade,do=fail:No match for argument: libibverbs-37.1-1.el9", "rpm -q --qf '%{VERSION}-%{RELEASE}' libibverbs"},
	} {
		t.Run(os, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t, config{os: os, older: map[string]string{c.name: c.version}})
			marks := func() string { return m.root(t, "command -v apt-mark >/dev/null && apt-mark showauto || :") }
			m.root(t, "command -v apt-mark >/dev/null && apt-mark auto "+c.name+" || :")
			marked := marks()
			set := m.Setters()[backends.KindPackages]
			a := backends.Assignment{Setting: m.setting(backends.KindPackages, "rdma"),
				To: backends.ValueOf(backends.PackageSpec{Installed: []string{c.set}})}
			k, _ := backends.As[backends.Keeper](set)
			kept, err := k.Keep(t.Context(), a.Setting, a.To)
			if err != nil {
				t.Fatal(err)
			}
			if i := kept.Item(backends.ItemPackage, c.name); i == nil || i.State != backends.ValueOf(c.version) {
				t.Errorf("recorded: %v", kept)
			}
			if err := set.Set(t.Context(), a.Setting, a.To, nil); err != nil {
				t.Fatal(err)
			}
			moved := m.root(t, c.query)
			if d := m.differs(t, a, kept); moved == c.version || len(d) != 2 {
				t.Errorf("%s is %s; there differ %v", c.name, moved, d)
			}
			m.fault(t, c.fault)
			err = k.Restore(t.Context(), a.Setting, kept, nil)
			if want := c.name + " is " + moved + " and was " + c.version; err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %s", err, want)
			}
			var lost backends.Unobtainable
			if !errors.As(err, &lost) || !slices.Equal(lost.Names, []string{c.name}) {
				t.Errorf("%v does not say what cannot be had", err)
			}
			m.world.Faults.Clear()
			for range 2 {
				if err := k.Restore(t.Context(), a.Setting, kept, nil); err != nil {
					t.Error(err)
				}
			}
			if got := m.root(t, c.query); got != c.version {
				t.Errorf("%s is %s and was %s", c.name, got, c.version)
			}
			if got := marks(); got != marked {
				t.Errorf("marked as automatically installed: %q, before %q", got, marked)
			}
			if d := m.differs(t, a, kept); len(d) > 0 {
				t.Errorf("restored there differ %v", d)
			}
			// Up again, though the version of another one is nowhere to be had: that one is named, and it alone.
			kept = backends.Kept{Items: []backends.Item{
				{Kind: backends.ItemPackage, Name: c.name, State: backends.ValueOf(moved)},
				{Kind: backends.ItemPackage, Name: c.other, State: backends.ValueOf("0.1-1")}}}
			if err = k.Restore(t.Context(), a.Setting, kept, nil); !errors.As(err, &lost) || !slices.Equal(lost.Names, []string{c.other}) {
				t.Errorf("%v does not name %s alone", err, c.other)
			}
			if got := m.root(t, c.query); got != moved {
				t.Errorf("%s is %s, want %s", c.name, got, moved)
			}
		})
	}
}
