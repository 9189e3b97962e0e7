//go:build e2e

package form_test

import (
	"slices"
	"strings"
	"testing"
)

// TestE2EWizardAsksForPasswords has only the password of the vCenter: the screen prompts for those of guests, sudo and ESXi hosts,
// again if one is refused. Ctrl-C at a prompt ends the program, also during a run, without changes.
func TestE2EWizardAsksForPasswords(t *testing.T) {
	bin := build(t)
	env, file := served(t, bin, "sriov", func(text string) string { return text }, "--scenario", "sriov-half")
	password := func(name string) (p string) {
		env = slices.DeleteFunc(env, func(line string) bool {
			is := strings.HasPrefix(line, name+"=")
			if is {
				_, p, _ = strings.Cut(line, "=")
			}
			return is
		})
		return p
	}
	guest, root, esxi := password("RDMA_SETUP_GUEST_PASSWORD"), password("RDMA_SETUP_SUDO_PASSWORD"), password("RDMA_SETUP_ESXI_PASSWORD")
	password("RDMA_SETUP_SSH_KEY")
	toGuests := [][2]string{{"vCenter address", "\r\r"}, {"Which hosts should be set up", "\r"}, {"How should the guests", "\r"},
		{"Which pNIC of each host", "\r"},
		{"Distributed switch", strings.Repeat("\r", 9)}, {"Which VMs get an RDMA", "\r"}}
	toRun := append(slices.Clone(toGuests), [][2]string{{"Log-in password in the guests", "typo\r"}, {"refused it; once more", guest + "\r"},
		{"Sudo password in the guests", "typo\r"},
		{"refused it; once more", root + "\r"}, {"Nothing prevents the setup", "\r"}, {"Scroll to the end", strings.Repeat("\r", 50)},
		{"the plan was not accepted", "yes\r"},
		{"Password of the ESXi host", "typo\r"}, {"for the other ESXi hosts too?", "n"}}...)
	t.Run("Ctrl-C before the run", func(t *testing.T) {
		s := start(t, bin, env, "-f", file)
		s.session(append(slices.Clone(toGuests), [2]string{"Log-in password in the guests", "\x03"})...)
		if code := s.exit(); code != 130 {
			t.Errorf("exit code %d", code)
		}
		s.restored()
	})
	t.Run("Ctrl-C in the run", func(t *testing.T) {
		s := start(t, bin, env, "-f", file)
		s.session(append(slices.Clone(toRun), [2]string{"Password of the ESXi host", "\x03"})...)
		if code := s.exit(); code != 130 {
			t.Errorf("exit code %d", code)
		}
		s.restored()
		for _, c := range s.kept().Changes {
			if c.State == "done" {
				t.Errorf("%s was done", c.ID())
			}
		}
	})
	t.Run("typed right the second time", func(t *testing.T) {
		s := start(t, bin, env, "-f", file)
		s.session(toRun[:len(toRun)-2]...)
		hosts := []string{"ESXi host esx-01", "ESXi host esx-02", "ESXi host esx-03", "ESXi host esx-04"}
		first := s.shows(hosts...)
		s.press("typo\r")
		s.session(toRun[len(toRun)-1])
		// Whether the host asks again before the other one asks depends on which logs in first.
		others := slices.DeleteFunc(hosts, func(h string) bool { return h == first })
		if again := "refused; once more"; s.shows(append(slices.Clone(others), again)...) == again {
			s.press(esxi + "\r")
			s.shows(others...)
		} else {
			s.press(esxi + "\r")
			s.shows(again)
		}
		s.press(esxi + "\r")
		s.session([2]string{"Next steps", "\r"})
		if code := s.exit(); code != 0 {
			t.Errorf("exit code %d", code)
		}
		s.complete()
	})
}
