//go:build torture

package torture

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rdma-setup/rdma-setup/backends/lab/world"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// catchAll is a stanza for every interface, as installers and templates write it (canonical/subiquity#2257, docker/docs#19765).
const catchAll = `network: {version: 2, renderer: networkd, ethernets: {all: {match: {name: "e*"}, dhcp4: true}}}` + "\n"

// inForce prints what decides for each interface of a guest with netplan, and their addresses.
const inForce = `for f in /etc/netplan/* /run/systemd/network/*; do echo "== $f"; cat "$f"; done; ip -o -4 addr show`

func (s *site) asRoot(v answers.VM, script string) (out string) {
	s.t.Helper()
	s.until("guest "+v.Name+" answers", func() (ok bool) {
		var err error
		out, err = s.ask(v, fmt.Sprintf("echo '%s' | sudo -S -p '' sh -c '%s'", s.env["RDMA_SETUP_SUDO_PASSWORD"], script))
		return err == nil
	})
	return out
}

// TestTortureKillsOfANetworkChange kills a run with kill -9 at ten points between the intent to configure a guest's interface and its
// outcome: at a record, or while a command of the guest runs. After a resume the site is as after an undisturbed run, and after a
// rollback, which comes at once at every other point, as before: every file of the guest, what decides for each interface, its addresses.
func TestTortureKillsOfANetworkChange(t *testing.T) {
	t.Parallel()
	m := modes[0].small()
	m.systems, m.netplan = []string{"ubuntu-22.04"}, catchAll
	s := serve(t, m)
	start := s.asRoot(s.vms[0], inForce)
	c := s.undisturbed()
	const change = " guest/vm-01/address/RDMA-PG:1"
	for i, at := range []string{"before:intent" + change, "after:intent" + change, "systemd-run", "mktemp /etc/netplan/.",
		"mv -f /etc/netplan/.",
		"networkctl reload", "networkctl reconfigure", "rm /run/rdma-setup/address", "systemctl stop rdma-setup-watch",
		"before:outcome" + change} {
		if strings.Contains(at, change) {
			s.killed(at, s.child(at, s.apply()...))
		} else {
			s.killed(at, s.killedAt(at))
		}
		s.hasConsolePage("netplan")
		done := "rolled back"
		if i%2 == 0 {
			if done = "resumed, rolled back"; s.finish().code != 0 {
				t.Errorf("%s: the resume failed", at)
			}
			s.same("resumed after "+at, c.end)
			if is := s.asRoot(s.vms[0], inForce); !strings.HasPrefix(is, start[:strings.Index(start, "== /run")]) ||
				!strings.Contains(is, section(start, "10-netplan-all.network")) ||
				!strings.Contains(is, section(is, "10-netplan-0-rdma-setup-RDMA-PG.network")) {
				t.Errorf("%s: after the resume decides\n%s\nbefore the run\n%s", at, is, start)
			}
		}
		if got := s.back(); got.code != 0 {
			t.Fatalf("%s: rollback: exit %d\n%s", at, got.code, got)
		}
		if exact := s.started("rolled back after "+at, c); !exact || s.asRoot(s.vms[0], inForce) != start {
			t.Fatalf("%s: %s", at, cmp.Diff(start, s.asRoot(s.vms[0], inForce)))
		}
		t.Logf("killed at %-50s %s, exact", strings.TrimSuffix(at, ":1"), done)
		s.forget()
	}
}

// section returns the part of a text of inForce about a file.
func section(text, file string) string {
	_, text, _ = strings.Cut(text, "== /run/systemd/network/"+file+"\n")
	text, _, _ = strings.Cut(text, "\n== ")
	return file + "\n" + text
}

// killedAt kills an apply when its guest begins a command, which goes on.
func (s *site) killedAt(command string) said {
	s.t.Helper()
	w := s.lab.World()
	rule := "vm=vm-01,command=" + command + ",nth=1,do=slow:300ms"
	if err := w.Faults.Add(rule); err != nil {
		s.t.Fatal(err)
	}
	defer w.Faults.Clear()
	from := len(w.Log.Events())
	run := s.start("", s.apply()...)
	s.until(command, func() bool {
		for _, e := range w.Log.Events()[from:] {
			if e.What == world.FaultApplied {
				return true
			}
		}
		return false
	})
	_ = run.cmd.Process.Kill()
	return run.end()
}

// hasConsolePage checks that the page of manual steps of the last run exists, and says how the guest of vm-01 gets its network back at
// its console; it returns the command.
func (s *site) hasConsolePage(program string) (command string) {
	s.t.Helper()
	id, _ := s.run()
	page, err := os.ReadFile(filepath.Join(s.env["XDG_STATE_HOME"], "rdma-setup", "runs", id, "backup", "undo.md"))
	_, text, there := strings.Cut(string(page), "\n## Guest vm-01\n")
	text, _, _ = strings.Cut(text, "\n## ")
	_, command, found := strings.Cut(text, "\n- "+program+": `")
	command, _, _ = strings.Cut(command, "`\n")
	if err != nil || !there || !found || !strings.Contains(text, "open the VM's console") {
		s.t.Errorf("%v, the page:\n%s", err, page)
	}
	return command
}

// TestTortureKillsLeaveAPageForTheConsole kills a run when it has recorded that it will write the network of the first guest, in all modes:
// the page is there. After the resume, its command alone, as root and without another machine, removes what the run has added to the
// guest's network, whatever program configures it, and the guest's own network is up after a boot.
func TestTortureKillsLeaveAPageForTheConsole(t *testing.T) {
	for _, m := range modes[:3] {
		for system, program := range map[string]string{"ubuntu-22.04": "netplan", "rhel-9": "NetworkManager"} {
			t.Run(m.name+"-"+system, func(t *testing.T) {
				t.Parallel()
				m := m.small()
				m.systems = []string{system}
				s := serve(t, m)
				if m.name == "gpudirect" && system == "rhel-9" {
					s.answers = s.rewrite(s.answers,
						func(a *answers.Answers) { a.GPUDirect.Driver = []string{"kmod-nvidia-open-dkms", "nvidia-driver-cuda"} })
				}
				const files = `find /etc/netplan /etc/NetworkManager /etc/sysconfig/network-scripts /etc/systemd/network -type f 2>/dev/null | sort | while read -r f; do sha256sum "$f"; done`
				before := s.asRoot(s.vms[0], files)
				harm := "before:intent guest/vm-01/address/" + map[bool]string{true: "hca", false: "RDMA-PG"}[m.name == "gpudirect"] + ":1"
				s.killed(harm, s.child(harm, s.apply()...))
				if is := s.asRoot(s.vms[0], files); is != before {
					t.Errorf("the network was touched: %s", is)
				}
				command := s.hasConsolePage(program)
				if got := s.finish(); got.code != 0 {
					t.Fatalf("resume: %s", got)
				}
				if s.asRoot(s.vms[0], files) == before || s.hasConsolePage(program) != command {
					t.Error("the network was not set, or the page has changed")
				}
				s.asRoot(s.vms[0], command)
				if diff := cmp.Diff(before, s.asRoot(s.vms[0], files)); diff != "" {
					t.Errorf("after %s (-before +now):\n%s", command, diff)
				}
				if err := s.lab.World().RebootGuest("vm-01"); err != nil {
					t.Fatal(err)
				}
				s.waitUntilIdle()
				if is := s.asRoot(s.vms[0], "ip -o -4 addr show"); !strings.Contains(is, "ens192") || strings.Contains(is, "192.168.50.") {
					t.Errorf("after the command and a boot: %s", is)
				}
			})
		}
	}
}
