//go:build e2e

package realtest_test

import (
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends/testclass"
)

// catchAll is the only netplan file of many templates (canonical/subiquity issue 2257): one stanza for every interface. An earlier release
// narrowed it to the RDMA adapter, with a file as narrowed.
const (
	catchAll = `network:
  version: 2
  ethernets:
    all:
      match: {name: "en*"}
      dhcp4: true
`
	narrowed = `network:
  version: 2
  ethernets:
    all:
      match: {macaddress: "$(cat /sys/class/net/ens192f0/address)"}
      set-name: ens192f0
      dhcp4: false
      dhcp6: false
      mtu: 9000
      addresses: [192.168.50.11/24]
`
)

// TestE2EPVRDMA sets up a guest that has a pvrdma device with VMware's own driver, and already has the packages. Its traffic would
// not be real, so nothing is measured here. Its network is one stanza for every interface.
func TestE2EPVRDMA(t *testing.T) {
	t.Parallel()
	s := serve(t, 1, true)
	good := s.answers("ubuntu")
	guest := s.guests[0]
	guest.run("cat >/etc/netplan/01-management.yaml <<'EOF'\n" + catchAll + "EOF")
	guest.reboot()
	bare := s.facts()
	if testclass.All {
		s.killedInside(good)
	}
	if !s.scenario("apply with the real vmw_pvrdma, packages present", func(t *testing.T) {
		out, errs := s.done("apply", "-f", good, "--yes")
		if strings.Contains(out+errs, "install packages") {
			t.Errorf("packages that are there are installed:\n%s%s", out, errs)
		}
		s.configured()
		if got := guest.run("readlink -f /sys/class/infiniband/*/device/driver"); got != "/sys/bus/pci/drivers/vmw_pvrdma" {
			t.Errorf("the RDMA device belongs to %s", got)
		}
	}) {
		t.FailNow()
	}
	s.scenario("check finds nothing wrong with the real vmw_pvrdma", func(*testing.T) { s.sound(good) })
	s.understood(guest)
	s.scenario("vmw_pvrdma was unloaded, and the port is down with its interface", func(*testing.T) {
		guest.run("modprobe -r vmw_pvrdma; ip link set ens192f0 down")
		out, errs := s.done("apply", "-f", good, "--yes")
		s.says(out+errs, `load RDMA modules`, `bring RDMA port up`)
		s.configured()
	})
	s.lockout(good)
	s.scenario("vmw_pvrdma after a reboot", func(t *testing.T) {
		guest.reboot()
		s.configured()
		s.must(0, "plan", "-f", good, "--detailed-exitcode")
	})
	s.scenario("rollback with the real vmw_pvrdma", func(t *testing.T) {
		s.must(0, "rollback", s.firstRun(), "--yes")
		s.unchanged(bare)
	})
	s.scenario("a guest whose management stanza an earlier release narrowed", func(t *testing.T) {
		guest.run("umask 077; cat >/etc/netplan/60-rdma-setup-RDMA-PG.yaml <<EOF\n# Written by rdma-setup: the RDMA adapter on RDMA-PG.\n" +
			narrowed + "EOF\nnetplan generate")
		out, _, _ := s.run("check", "-f", good, "-o", "json")
		s.says(out, `"GST-NETFILES-044"`, `/etc/netplan/60-rdma-setup-RDMA-PG.yaml`)
		s.done("apply", "-f", good, "--yes")
		guest.reboot() // it would not come back
		s.configured()
	})
}
