package vsphere_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/lab"
	"github.com/rdma-setup/rdma-setup/backends/vsphere"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/system"
)

// The RDMA devices of 6.7 hosts can only be read with esxcli (vSphere Web Services API, HostRdmaDevice: since vSphere API 7.0),
// whether or not vCenter declares the property; newer hosts are not queried for them.
func TestRDMADevicesOfOlderHosts(t *testing.T) {
	for scenario, fresh := range map[string]int{"esx-6.7": 0, "mixed-versions": 2, "esx-9.0": 3} {
		_, c := startLab(t, lab.Options{Hosts: 3, VMs: 1, Scenario: scenario})
		inv, err := c.Inventory(t.Context(), backends.Scope{})
		if err != nil {
			t.Fatal(err)
		}
		newer := 0
		for _, h := range inv.Hosts {
			if !strings.HasPrefix(h.Version, "6.") {
				newer++
			}
			n := h.NIC("vmnic2")
			if n == nil || n.RDMADevice != "vmrdma0" || !n.RoCEv2 || !n.Eligible || len(h.RDMA) != 2 {
				t.Errorf("%s: %s %s: %+v", scenario, h.Name, h.Version, n)
			}
		}
		if newer != fresh {
			t.Errorf("%s: %d hosts of 7.0 and later, want %d", scenario, newer, fresh)
		}
	}
}

// A host that does not answer is named, and the facts of the others are unchanged.
func TestOlderHostThatDoesNotAnswer(t *testing.T) {
	_, c := startLab(t, lab.Options{Hosts: 2, VMs: 1, Scenario: "esx-6.7",
		Faults: []string{"method=ExecuteSoap,host=esx-02,do=fault:NotSupported"}})
	inv, err := c.Inventory(t.Context(), backends.Scope{})
	if err != nil {
		t.Fatal(err)
	}
	if !inv.Host("esx-01").NIC("vmnic2").Eligible || inv.Host("esx-02").NIC("vmnic2").Eligible {
		t.Error("esx-01 is to be fit, esx-02 not")
	}
	if !slices.ContainsFunc(inv.Gaps, func(g backends.Gap) bool {
		return g.Target == backends.HostRef("esx-02") && g.What == "RDMA devices" && strings.Contains(g.Why, "esxcli rdma device list")
	}) {
		t.Errorf("no gap: %+v", inv.Gaps)
	}
}

// The driver and firmware versions of hosts before 8.0 can only be read with esxcli (vSphere Web Services API,
// PhysicalNic.firmwareVersion: since vSphere API 8.0.0.1; PowerCLI scripts read driverinfo.firmwareversion of network.nic.get);
// newer hosts are not queried.
func TestVersionsOfOlderHosts(t *testing.T) {
	for scenario, driver := range map[string]string{"esx-6.7": "4.17.71.1-1OEM.670.0.0.8169922",
		"esx-7.0": "4.21.71.101-1OEM.702.0.0.17630552", "esx-9.0": ""} {
		_, c := startLab(t, lab.Options{Hosts: 1, VMs: 1, Scenario: scenario})
		inv, err := c.Inventory(t.Context(), backends.Scope{})
		if err != nil {
			t.Fatal(err)
		}
		n, before := inv.Hosts[0].NIC("vmnic2"), c.Calls()
		if (n.Firmware == "") != (driver != "") || (n.DriverVersion == "") != (driver != "") {
			t.Errorf("%s: the API tells %q, %q", scenario, n.DriverVersion, n.Firmware)
		}
		c.System(t.Context(), []*backends.Host{&inv.Hosts[0]}, vsphere.SystemOptions{Ask: []system.Question{system.Versions},
			PNICs: map[string][]string{"esx-01": {"vmnic2"}}})
		if driver != "" && (n.Firmware != "16.35.4030" || n.DriverVersion != driver) || driver == "" && c.Calls() != before {
			t.Errorf("%s: %q, %q, %d calls", scenario, n.DriverVersion, n.Firmware, c.Calls()-before)
		}
	}
}
