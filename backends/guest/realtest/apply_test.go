//go:build e2e

package realtest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rdma-setup/rdma-setup/backends/testclass"
)

// setUp applies while guest-1 has no package mirror and guest-2 no disk space, fixes both, interrupts dpkg in both, and resumes.
func (s *site) setUp(good string, bare []map[string]string) (run string) {
	first, second := s.guests[0], s.guests[1]
	s.scenario("apply without a package mirror in one guest and without disk space in the other", func(t *testing.T) {
		first.run("cp /etc/apt/sources.list /var/tmp/sources; echo 'deb http://mirror.invalid/debian stable main' >/etc/apt/sources.list")
		// root has a reserve
		second.run("fallocate -l $(df -B1 --output=avail / | tail -n1) /full; dd if=/dev/zero of=/full.root bs=1M 2>/dev/null || :")
		out, errs := s.must(1, "apply", "-f", good, "--yes")
		s.says(out+errs, `vm-01.*cannot be reached`, `vm-02.*No space left`)
		first.run("mv /var/tmp/sources /etc/apt/sources.list")
		second.run("rm /full /full.root")
		s.unchanged(bare)
	})
	if testclass.All {
		s.killed(good, bare, "apt-get install", "[d]pkg .*--unpack")
	}
	s.scenario("apply when both are repaired, the power fails in one and the other reboots while dpkg is at work", func(t *testing.T) {
		before := second.run("cat /proc/sys/kernel/random/boot_id")
		first.run("systemd-run --quiet --unit=accident sh -c 'until [ -e /var/lib/dpkg/info/libnl-3-200*.list ]; do sleep 0.2; done; echo o " +
			">/proc/sysrq-trigger'")
		second.run("systemd-run --quiet --unit=accident sh -c 'until [ -e /var/lib/dpkg/info/rdma-core.list ]; do sleep 0.2; done; " +
			"systemctl reboot'")
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		off, again := first.ended, make(chan error, 1)
		go func() { again <- first.again(ctx) }()
		out, errs, code := s.run("apply", "-f", good, "--yes") // nothing had begun that could be resumed
		select {
		case <-off:
		default:
			cancel() // nothing else ends it from here on
		}
		if err := <-again; err != nil {
			t.Fatalf("%v\n%s%s", err, out, errs)
		}
		// 4: a slow guest is still booting when the run reads everything again at its end.
		if code != 1 && code != 5 && !(code == 4 && strings.Contains(out+errs, "cannot be read")) {
			t.Errorf("exit %d:\n%s%s", code, out, errs)
		}
		s.says(out+errs, `FAILED +vm-01: install packages`, `FAILED +vm-02: install packages.*the connection was lost`)
		t.Log(lastPart(out+errs, 12))
		if said := first.run("dpkg --audit; ls /var/lib/dpkg/updates"); said == "" {
			t.Error("the power has not failed while dpkg was at work: it has left nothing undone")
		}
		if err := second.up(t.Context(), before); err != nil {
			t.Fatal(err)
		}
	})
	whole := s.scenario("resume ends where an undisturbed apply does", func(t *testing.T) {
		s.done("resume", "--yes")
		s.configured()
		for _, m := range s.guests {
			if said := m.run("dpkg --audit; ls /var/lib/dpkg/updates"); said != "" {
				t.Errorf("%s: dpkg has left: %s", m.name, said)
			}
		}
	})
	if !whole {
		s.outer.FailNow() // everything that follows needs guests that are set up
	}
	return s.firstRun()
}

// firstRun is the oldest run that is done: a run that failed before its first change has nothing to roll back.
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

// says expects a line for each pattern.
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

// configured compares both guests with the answers, using other tools than the program's.
func (s *site) configured() {
	s.t.Helper()
	for i, m := range s.guests {
		driver, modules := "rdma_rxe", "ib_umad rdma_cm rdma_rxe rdma_ucm"
		if m.pvrdma {
			driver, modules = "vmw_pvrdma", "ib_umad rdma_cm rdma_ucm vmw_pvrdma"
		}
		want := []string{[]string{"192.168.50.11/24", "192.168.50.12/24"}[i], "9000", "unlimited", modules, "PORT_ACTIVE"}
		script := strings.NewReplacer("NIC", m.nic(), "DRIVER", driver).Replace(configuredScript)
		// After a boot logins are possible before the last units have run.
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

func (f finding) bad() bool { return f.Status == "fail" || f.Status == "warn" }

// lacks reports whether a check fails on these guests whatever is set up.
func (s *site) lacks(f finding) bool {
	if s.late && f.ID == "VC-TIME-004" {
		return true
	}
	if s.guests[0].pvrdma {
		return f.ID == "GST-GID-019" // QEMU's device supports only RoCE v1
	}
	return f.ID == "GST-LSPCI-003" || f.ID == "GST-PVLSPCI-050" // soft-RoCE is used in place of VMware's device
}

// done runs apply or resume to its end. Its verdict is "broken" (exit 1) where nothing fails but what these guests lack.
func (s *site) done(args ...string) (stdout, stderr string) {
	s.t.Helper()
	out, errs, code := s.run(args...)
	if code == 0 {
		return out, errs
	}
	text, _ := s.must(0, "report", "-o", "json")
	var doc struct {
		Status       string
		Checks       []finding
		Measurements []struct{ Verdict string }
	}
	err := json.Unmarshal([]byte(text), &doc)
	whole := err == nil && code == 1 && doc.Status == "done" && len(doc.Checks) > 0
	for _, f := range doc.Checks {
		whole = whole && (f.Status != "fail" || s.lacks(f))
	}
	for _, m := range doc.Measurements {
		whole = whole && m.Verdict != "fail" && m.Verdict != "unknown"
	}
	if !whole {
		s.t.Fatalf("rdma-setup %s: exit %d, %v\n%s\n%s", strings.Join(args, " "), code, err, lastPart(out, 60), lastPart(errs, 40))
	}
	return out, errs
}

// sound runs the checks on guests that are set up.
func (s *site) sound(answers string) map[string]finding {
	s.t.Helper()
	found := s.check(answers)
	for key, f := range found {
		if f.Status == "fail" && !s.lacks(f) {
			s.t.Errorf("%s: %s", key, f.Evidence)
		}
	}
	for i := range s.guests {
		for _, id := range []string{"GST-SUDO-002", "GST-PKG-005", "GST-PORT-010", "GST-MTU-012", "GST-IP-014", "GST-MEMLOCK-020"} {
			if key := fmt.Sprintf("%s guest/vm-%02d", id, i+1); found[key].Status != "pass" {
				s.t.Errorf("%s: %+v", key, found[key])
			}
		}
	}
	return found
}

// check runs the checks and returns the findings about the guests and the clocks.
func (s *site) check(answers string, args ...string) map[string]finding {
	s.t.Helper()
	out, errs, _ := s.run(append([]string{"check", "-f", answers, "-o", "json"}, args...)...)
	var doc struct{ Results []finding }
	if err := json.Unmarshal([]byte(out), &doc); err != nil || len(doc.Results) == 0 {
		s.t.Fatalf("%v in %s%s", err, out, errs)
	}
	found := map[string]finding{}
	for _, f := range doc.Results {
		if strings.HasPrefix(f.ID, "GST-") || f.ID == "VC-TIME-004" {
			found[f.ID+" "+f.Target] = f
		}
	}
	return found
}

// runs returns the ids of all runs.
func (s *site) runs() map[string]bool {
	s.t.Helper()
	var doc struct{ Runs []struct{ Run string } }
	out, _ := s.must(0, "runs", "-o", "json")
	if err := json.Unmarshal([]byte(out), &doc); err != nil {
		s.t.Fatalf("%v in %s", err, out)
	}
	ids := map[string]bool{}
	for _, r := range doc.Runs {
		ids[r.Run] = true
	}
	return ids
}

// newRun returns the run that did not exist before.
func (s *site) newRun(before map[string]bool) string {
	s.t.Helper()
	for id := range s.runs() {
		if !before[id] {
			return id
		}
	}
	s.t.Fatal("no run was begun")
	return ""
}
