//go:build e2e

package realtest_test

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// setUp applies while guest-1 has no package mirror and guest-2 no disk space, then mends both and resumes.
func (s *site) setUp(good string) (run string) {
	first, second := s.pair[0], s.pair[1]
	s.scenario("apply without a package mirror in one guest and without disk space in the other", func(t *testing.T) {
		first.run("cp /etc/apt/sources.list /var/tmp/sources; echo 'deb http://mirror.invalid/debian stable main' >/etc/apt/sources.list")
		second.run("fallocate -l $(df -B1 --output=avail / | tail -n1) /full; dd if=/dev/zero of=/full.root bs=1M 2>/dev/null || :") // root has a reserve
		out, errs := s.must(1, "apply", "-f", good, "--yes")
		s.says(out+errs, `vm-01.*cannot be reached`, `vm-02.*No space left`)
		for _, m := range s.pair {
			if got := m.run("dpkg --audit; dpkg-query -W -f '${Package}\\n' perftest 2>/dev/null || :"); got != "" {
				t.Errorf("%s: %s", m.name, got)
			}
		}
	})
	s.scenario("apply when both are mended, and one reboots in the middle", func(t *testing.T) {
		first.run("mv /var/tmp/sources /etc/apt/sources.list")
		second.run("rm /full /full.root")
		before := second.run("cat /proc/sys/kernel/random/boot_id")
		second.run("systemd-run --quiet --unit=accident sh -c 'until [ -e /var/lib/dpkg/info/rdma-core.list ]; do sleep 0.2; done; systemctl reboot'")
		out, errs, code := s.run("apply", "-f", good, "--yes") // nothing had begun that could be resumed
		if code == 0 {
			t.Errorf("the guest has not rebooted:\n%s%s", out, errs)
		}
		s.says(out+errs, `vm-02: install packages`)
		if err := second.up(t.Context(), before); err != nil {
			t.Fatal(err)
		}
	})
	s.scenario("resume after the reboot ends where an undisturbed apply does", func(t *testing.T) {
		s.must(0, "resume", "--yes")
		s.configured()
	})
	s.scenario("a second apply changes nothing", func(t *testing.T) {
		s.must(0, "plan", "-f", good, "--detailed-exitcode")
	})
	return s.firstRun()
}

// firstRun is the oldest run that is done: one that failed before its first change has nothing to take back.
func (s *site) firstRun() string {
	s.t.Helper()
	var runs struct {
		Runs []struct{ Run, Status string }
	}
	out, _ := s.must(0, "runs", "-o", "json")
	if err := json.Unmarshal([]byte(out), &runs); err != nil {
		s.t.Fatalf("%v in %s", err, out)
	}
	first := ""
	for _, r := range runs.Runs {
		if r.Status == "done" && (first == "" || r.Run < first) {
			first = r.Run
		}
	}
	if first == "" {
		s.t.Fatalf("no run is done: %s", out)
	}
	return first
}

// says wants a line for each pattern.
func (s *site) says(text string, patterns ...string) {
	s.t.Helper()
	for _, p := range patterns {
		if !regexp.MustCompile(p).MatchString(text) {
			s.t.Errorf("nothing says %s:\n%s", p, lastPart(text, 60))
		}
	}
}

const configuredScript = `ip -4 -o addr show dev NIC | awk '{print $4}'
cat /sys/class/net/NIC/mtu
su - ubuntu -c 'ulimit -l'
cut -d' ' -f1 /proc/modules | grep -xE 'ib_umad|rdma_cm|rdma_ucm|DRIVER' | sort | xargs
ibv_devinfo | grep -o PORT_ACTIVE
cat /sys/class/infiniband/*/ports/1/gids/* | grep -c :ffff:c0a8:32`

// configured holds both guests against what the answers ask for, by other tools than the program's.
func (s *site) configured() {
	s.t.Helper()
	for i, m := range s.pair {
		driver, modules := "rdma_rxe", "ib_umad rdma_cm rdma_rxe rdma_ucm"
		if m.pvrdma {
			driver, modules = "vmw_pvrdma", "ib_umad rdma_cm rdma_ucm vmw_pvrdma"
		}
		want := []string{[]string{"192.168.50.11/24", "192.168.50.12/24"}[i], "9000", "unlimited", modules, "PORT_ACTIVE"}
		script := strings.NewReplacer("NIC", m.nic(), "DRIVER", driver).Replace(configuredScript)
		// After a boot people are let in before the last units have run.
		for end := time.Now().Add(bootTime); ; {
			out, err := m.try(script)
			got := strings.Split(strings.TrimSpace(out), "\n")
			if len(got) == len(want)+1 && slices.Equal(got[:len(want)], want) && got[len(want)] != "0" {
				break
			}
			if time.Now().After(end) {
				s.t.Errorf("%s: got %q (%v), want %q and a GID of the address", m.name, got, err, want)
				break
			}
			<-time.After(time.Second)
		}
	}
}

// A finding is one result of check -o json.
type finding struct{ ID, Target, Status, Evidence string }

// check runs the checks and gives those of the guests that are not passed.
func (s *site) check(answers string, args ...string) map[string]finding {
	s.t.Helper()
	out, errs, _ := s.run(append([]string{"check", "-f", answers, "-o", "json"}, args...)...)
	var doc struct{ Results []finding }
	if err := json.Unmarshal([]byte(out), &doc); err != nil || len(doc.Results) == 0 {
		s.t.Fatalf("%v in %s%s", err, out, errs)
	}
	bad := map[string]finding{}
	for _, f := range doc.Results {
		if strings.HasPrefix(f.ID, "GST-") && (f.Status == "fail" || f.Status == "warn") {
			bad[f.ID+" "+f.Target] = f
		}
	}
	return bad
}
