package torture

import (
	"slices"
	"testing"
	"time"

	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

// TestOneEvacuationPerHost: installing the firmware tools and setting the firmware takes two reboots. The host is evacuated once
// for both, even if the run is killed at any point from the evacuation to the last reboot, and once more by a rollback. The
// evacuations are counted in the lab's own log.
func TestOneEvacuationPerHost(t *testing.T) {
	const first = " host/esx-01/host-reboot:1"
	for name, harm := range map[string]string{
		"undisturbed":                    "",
		"killed once evacuated":          "after:opened host/esx-01/host-maintenance:1",
		"killed when it reboots":         "before:closed" + first,
		"killed between the two reboots": "after:closed" + first,
		"killed before the last reboot":  "after:closing host/esx-01/host-reboot/2:1",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := modes[1]
			m.reboot = 50 * time.Millisecond
			if harm != "" {
				m = m.small()
			}
			s := serve(t, m)
			var got said
			if harm == "" {
				got = s.here(0, s.apply()...)
			} else {
				s.killed(harm, s.child(harm, s.apply()...))
				got = s.finish()
			}
			if got.code != 0 {
				t.Fatalf("exit %d\n%s", got.code, got)
			}
			s.wentDown("apply", 0, m.hosts, 2*m.hosts, 2*m.hosts)
			from := len(s.lab.World().Log.Events())
			if got := s.back(); got.code != 0 {
				t.Fatalf("rollback: exit %d\n%s", got.code, got)
			}
			s.wentDown("rollback", from, m.hosts, m.hosts, m.hosts)
		})
	}
}

// wentDown checks how often hosts have entered and left maintenance mode and have rebooted since an event of the lab's log, and
// that no two of them were in maintenance mode at the same time.
func (s *site) wentDown(what string, from, evacuations, least, most int) {
	s.t.Helper()
	entered, left, reboots := 0, 0, 0
	var out []string
	for _, e := range s.lab.World().Log.Events()[from:] {
		switch {
		case e.What == world.HostMaintenance && e.Detail == "true":
			entered++
			if out = append(out, e.Host); len(out) > 1 {
				s.t.Errorf("%s: %v are in maintenance mode at the same time", what, out)
			}
		case e.What == world.HostMaintenance:
			left++
			out = slices.DeleteFunc(out, func(h string) bool { return h == e.Host })
		case e.What == world.HostDown:
			reboots++
		}
	}
	if entered != evacuations || left != evacuations || reboots < least || reboots > most {
		s.t.Errorf("%s: %d evacuations, %d returns to service and %d reboots; want %d, %d and %d to %d", what, entered, left, reboots,
			evacuations, evacuations, least, most)
	}
}
