package vsphere_test

import (
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/lab"
)

func TestNeighbours(t *testing.T) {
	_, c := startLab(t, lab.Options{Hosts: 2, VMs: 1})
	seen := map[backends.Neighbour]bool{}
	for _, host := range []string{"esx-01", "esx-02"} {
		near, err := c.Neighbours(t.Context(), host)
		if err != nil {
			t.Fatal(err)
		}
		if near["vmnic2"].Switch != "leaf-01" || near["vmnic2"].Port == "" {
			t.Errorf("%s: the RDMA pNIC hears %+v", host, near["vmnic2"])
		}
		if n, ok := near["vmnic3"]; ok {
			t.Errorf("%s: a pNIC without link hears %+v", host, n)
		}
		for _, n := range near {
			if seen[n] {
				t.Errorf("%+v is behind two pNICs", n)
			}
			seen[n] = true
		}
	}
	if _, err := c.Neighbours(t.Context(), "esx-99"); err == nil {
		t.Error("a host that is not there has neighbours")
	}
}
