package vsphere_test

import (
	"slices"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/lab"
)

// vCenter is queried once for each guest OS and hardware version of a cluster, and only for the named VMs.
func TestAdaptersOfGuestSystems(t *testing.T) {
	_, c := startLab(t, lab.Options{Hosts: 4, VMs: 24, Systems: []string{"ubuntu-22.04", "rhel-9", "debian-12"}})
	names := []string{"vm-01", "vm-02", "vm-03"}
	calls := func(vms []string) (*backends.Inventory, int) {
		before := c.Calls()
		inv, err := c.Inventory(t.Context(), backends.Scope{Details: true, VMs: vms})
		if err != nil {
			t.Fatal(err)
		}
		return inv, c.Calls() - before
	}
	inv, few := calls(names)
	for name, want := range map[string]bool{"vm-01": true, "vm-02": true, "vm-03": false} { // "Other Linux" lists no RDMA adapter
		for _, kind := range []string{"pvrdma", "sriov"} {
			if supported, known := inv.VM(name).SupportsAdapter(kind); !known || supported != want {
				t.Errorf("%s, %s: supported %t, known %t: %v", name, kind, supported, known, inv.VM(name).GuestAdapters)
			}
		}
	}
	if v := inv.VM("vm-04"); v.GuestAdapters != nil {
		t.Errorf("vm-04 was not named and has %v", v.GuestAdapters)
	}
	var all []string
	for _, v := range inv.VMs {
		all = append(all, v.Name)
	}
	slices.Sort(all)
	if _, many := calls(all); many != few {
		t.Errorf("%d calls for %d VMs of three systems, %d for three VMs", many, len(all), few)
	}
	if _, none := calls(nil); none != few-3 {
		t.Errorf("%d calls with three guest systems, %d without", few, none)
	}
}
