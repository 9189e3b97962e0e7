//go:build e2e

package realtest_test

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rdma-setup/rdma-setup/assets"
	"github.com/rdma-setup/rdma-setup/backends/ssh"
)

// systemd checks when systemd keeps units in memory, which the lab imitates (TestUnitsInMemory), and that nothing is left of the watch
// over a change of an address that a killed run has not confirmed: who may undo it does so at once, and any step does if the watch is gone.
func (s *site) systemd(m *machine) {
	s.scenario("systemd keeps units in memory as the lab does", func(t *testing.T) {
		script, err := os.ReadFile("../testdata/systemd/units.sh")
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile("../testdata/systemd/units.txt")
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(string(want), m.run(string(script))+"\n"); d != "" {
			t.Errorf("systemd differs from the lab (-lab +systemd):\n%s", d)
		}
	})
	s.scenario("a step ends the watch over an address that nobody has confirmed", func(t *testing.T) {
		const work, unit = "/run/rdma-setup", "rdma-setup-watch-e2e"
		const dir = work + "/address-lo-e2e"
		// A change without a file and an address: only its watch is of interest.
		set := ssh.Script("address-set.sh", dir, work, unit, assets.Script("address-watch.sh"), "600", "rm "+dir+"/undoing",
			ssh.Script("address-end.sh", dir, unit, work), ":", "/etc/none", "/etc/.none.", "", "", "", "lo", "", "0", "", "", "", "1", "1", "", "")
		const left = "\nsystemctl list-units --all --no-legend --plain 'rdma-setup-watch*'; pgrep -fl '[r]dma-setup/address'; ls -d " + work +
			" 2>/dev/null || :"
		for what, c := range map[string]struct{ happens, keep string }{"waits": {":", "undo"},
			"was killed": {"systemctl kill -s KILL " + unit, "no"}} {
			step := ssh.Script("guard.sh", work, "/root", "wait for an earlier step", "60", c.keep, "", "", assets.Script("step.sh"))
			m.run("mkdir -p " + work + "\n" + set)
			m.run(c.happens)
			if m.run(left) == "" {
				t.Fatalf("no watch %s", what)
			}
			if now := m.run("(" + step + ")" + left); now != "" {
				t.Errorf("left of a watch that %s:\n%s", what, now)
			}
		}
	})
}
