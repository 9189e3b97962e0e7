package checks_test

import (
	"testing"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// Counters are shown of pNICs that carry RDMA: the uplinks of the switch of the answers, and PFs with VFs on any switch or none.
func TestPortsOf(t *testing.T) {
	a := answers.Default(answers.SRIOV)
	stats := backends.FactOf(backends.PortStats{Over: time.Second})
	for name, tt := range map[string]struct {
		nic  backends.NIC
		want bool
	}{
		"an uplink of the switch":   {backends.NIC{Switch: a.Switch.Name}, true},
		"a PF without a switch":     {backends.NIC{RDMADevice: "vmrdma0", SRIOV: &backends.SRIOV{Active: true, VFs: 8}}, true},
		"VFs after the next reboot": {backends.NIC{RDMADevice: "vmrdma0", SRIOV: &backends.SRIOV{VFs: 8}}, false},
		"another switch":            {backends.NIC{RDMADevice: "vmrdma0", Switch: "vSwitch0"}, false},
	} {
		tt.nic.Device = "vmnic2"
		inv := &backends.Inventory{Hosts: []backends.Host{{Name: "esx-01", NICs: []backends.NIC{tt.nic},
			System: &backends.HostSystem{Stats: map[string]backends.Fact[backends.PortStats]{"vmnic2": stats}}}}}
		if got := checks.PortsOf(a, inv); (len(got) == 1) != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
