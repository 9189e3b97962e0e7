//go:build e2e

package realtest_test

import (
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rdma-setup/rdma-setup/backends/testclass"
)

// TestE2EGuests sets up two bare guests through the program's commands, breaks them, and rolls everything back. The scenarios run
// one after the other. Each leaves the guests as it found them, or as its name says.
func TestE2EGuests(t *testing.T) {
	t.Parallel()
	s := serve(t, 2, false)
	good := s.answers("ubuntu", "ubuntu")
	bare := s.facts()
	s.faultsOfLogin()
	run := s.setUp(good, bare)
	var sound map[string]finding
	s.scenario("check finds nothing wrong with the guests", func(*testing.T) { sound = s.sound(good) })
	s.understood(s.guests[0])
	s.systemd(s.guests[0])
	s.drifts(good, sound)
	s.measured(good)
	if testclass.All { // make e2e has less time
		s.mpi(good)
		s.lossy(good)
	}
	s.unmeasured(good)
	s.scenario("rollback brings back every file, package, unit and address", func(t *testing.T) {
		s.must(0, "rollback", run, "--yes")
		s.unchanged(bare)
	})
}

// scenario is a named part of the suite; it reports whether it passed.
func (s *site) scenario(name string, do func(t *testing.T)) bool {
	return s.outer.Run(name, func(t *testing.T) {
		old := s.t
		s.take(t)
		defer s.take(old)
		do(t)
	})
}

func (s *site) take(t *testing.T) {
	s.t = t
	for _, m := range s.guests {
		m.t = t
	}
}

// both runs a script in all guests at the same time.
func (s *site) both(script string) {
	s.t.Helper()
	var wg sync.WaitGroup
	for _, m := range s.guests {
		wg.Go(func() {
			if out, err := m.try(script); err != nil {
				m.t.Errorf("%v\n%s", err, out)
			}
		})
	}
	wg.Wait()
}

const factsScript = `cd /etc
find . -type l -printf '%p -> %l\n' -o -printf 'mode %p %m %U:%G\n'
find . -type f ! -name 'g*shadow*' ! -name 'group*' -print0 | xargs -0 sha256sum | awk '{print $2, $1}'
# rdma-core makes a group, which Debian leaves when the package goes.
grep -v '^rdma:' group
dpkg-query -W -f 'package ${Package} ${Version} ${db:Status-Abbrev}\n'
systemctl --root=/ list-unit-files --no-legend --no-pager | awk '{print "unit", $1, $2}'
for i in ens160 NIC; do
	echo "$i mtu $(cat /sys/class/net/$i/mtu) up $(($(cat /sys/class/net/$i/flags) & 1))"
	ip -4 -o addr show dev $i | awk '{print $2, $4}'
done`

// facts returns what a rollback must restore: every file under /etc, packages, units, addresses.
func (s *site) facts() []map[string]string {
	s.t.Helper()
	all := make([]map[string]string, len(s.guests))
	var wg sync.WaitGroup
	for i, m := range s.guests {
		wg.Go(func() {
			text, err := m.try(strings.ReplaceAll(factsScript, "NIC", m.nic()))
			if err != nil {
				s.t.Error(err)
			}
			all[i] = map[string]string{}
			for line := range strings.Lines(text) {
				name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
				if name == "package" || name == "mode" || name == "unit" || name == "ens160" || name == m.nic() {
					word, rest, _ := strings.Cut(value, " ")
					name, value = name+" "+word, rest
				}
				all[i][name] = value
			}
		})
	}
	wg.Wait()
	return all
}

// unchanged compares the guests with their state before.
func (s *site) unchanged(before []map[string]string) {
	s.t.Helper()
	if d := cmp.Diff(before, s.facts()); d != "" {
		s.t.Errorf("the guests are not what they were:\n%s", d)
	}
}

func (s *site) planned(answers string) {
	s.t.Helper()
	out, _ := s.must(10, "plan", "-f", answers, "-o", "json", "--detailed-exitcode")
	var p struct {
		Changes []struct {
			Kind     string
			Target   string
			From, To any
		}
	}
	if err := json.Unmarshal([]byte(out), &p); err != nil {
		s.t.Fatalf("%v in %s", err, out)
	}
	kinds := map[string][]string{}
	for _, c := range p.Changes {
		if !strings.HasPrefix(c.Target, "guest/") {
			s.t.Errorf("%s %s is to be changed", c.Kind, c.Target)
		}
		kinds[c.Target] = append(kinds[c.Target], c.Kind)
	}
	want := []string{"address", "memlock", "modules", "packages", "persist", "port"}
	for _, vm := range []string{"guest/vm-01", "guest/vm-02"} {
		if got := slices.Sorted(slices.Values(kinds[vm])); !slices.Equal(got, want) {
			s.t.Errorf("%s: changes %v, want %v", vm, got, want)
		}
	}
}
