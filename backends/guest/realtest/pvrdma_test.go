//go:build e2e

package realtest_test

import "testing"

// TestE2EPVRDMA sets up guests that have a pvrdma device, with VMware's own driver. What it sends would not be real, so
// nothing is measured here.
func TestE2EPVRDMA(t *testing.T) {
	s := serve(t, true)
	good := s.answers("ubuntu", "ubuntu")
	bare := s.facts()
	s.scenario("apply with the real vmw_pvrdma", func(t *testing.T) {
		s.must(0, "apply", "-f", good, "--yes")
		s.configured()
		for _, m := range s.pair {
			if got := m.run("readlink -f /sys/class/infiniband/*/device/driver"); got != "/sys/bus/pci/drivers/vmw_pvrdma" {
				t.Errorf("%s: the RDMA device belongs to %s", m.name, got)
			}
		}
	})
	first, second := s.pair[0], s.pair[1]
	var said string
	s.scenario("what happened to vmw_pvrdma is put right by one apply", func(*testing.T) {
		first.run("ip link set ens192f0 down")
		second.run("modprobe -r vmw_pvrdma")
		out, errs := s.must(0, "apply", "-f", good, "--yes")
		said = out + errs
		s.configured()
	})
	s.scenario("vmw_pvrdma: the port is down with its interface", func(*testing.T) { s.says(said, `bring RDMA port up`) })
	s.scenario("vmw_pvrdma was unloaded", func(*testing.T) { s.says(said, `load RDMA modules`) })
	s.scenario("vmw_pvrdma after a reboot", func(t *testing.T) {
		second.reboot()
		s.configured()
		s.must(0, "plan", "-f", good, "--detailed-exitcode")
	})
	s.scenario("rollback with the real vmw_pvrdma", func(t *testing.T) {
		s.must(0, "rollback", s.firstRun(), "--yes")
		s.unchanged(bare)
	})
}
