package backends_test

import (
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
)

// A pNIC without an RDMA device is never the nearest RDMA card, not even if its path is shorter.
func TestNearestCardHasRDMA(t *testing.T) {
	h := backends.Host{
		PCI: []backends.PCIDevice{
			{Address: "0000:10:00.0"}, {Address: "0000:20:00.0"},
			{Address: "0000:11:00.0", Parent: "0000:10:00.0", Class: "0200", Vendor: "15b3"},
			{Address: "0000:21:00.0", Parent: "0000:20:00.0", Class: "0200", Vendor: "15b3"},
		},
		NICs: []backends.NIC{{Device: "vmnic0", PCI: "0000:11:00.0"}, {Device: "vmnic2", PCI: "0000:21:00.0", RDMADevice: "vmrdma0"}},
	}
	if got := h.Pair(&backends.GPU{RootPort: "0000:10:00.0"}); len(got) != 2 || got[0].Device != "vmnic2" ||
		got[1].Path != backends.OneRootPort {
		t.Errorf("%+v", got)
	}
}
