package backends_test

import (
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
)

// Boards of four SXM GPUs have no NVSwitch; a ConnectX-7 leads to NVSwitches beside Blackwell SXM GPUs alone.
func TestFindBaseboard(t *testing.T) {
	gpu := func(device string) []backends.GPU { return []backends.GPU{{Vendor: "10de", Device: device}} }
	nvswitch := backends.PCIDevice{Address: "0000:c9:00.0", Vendor: "10de", Device: "22a3", Class: "0680"}
	ib := backends.PCIDevice{Address: "0000:ca:00.0", Vendor: "15b3", Device: "1021", Class: "0207"}
	ethernet := backends.PCIDevice{Address: "0000:cb:00.0", Vendor: "15b3", Device: "1021", Class: "0200"}
	for name, c := range map[string]struct {
		gpus  []backends.GPU
		pci   []backends.PCIDevice
		want  string
		cards int
	}{
		"PCIe cards":              {gpu("2331"), []backends.PCIDevice{ib, ethernet}, "", 2},
		"four SXM GPUs":           {gpu("20b2"), nil, "", 0},
		"HGX A100":                {gpu("20b2"), []backends.PCIDevice{nvswitch, ib}, "HGX A100", 1},
		"HGX H200":                {gpu("2335"), []backends.PCIDevice{nvswitch, ib, ethernet}, "HGX H200", 2},
		"HGX B300":                {gpu("3182"), []backends.PCIDevice{ib, ethernet}, "HGX B300", 1},
		"a GPU that nobody knows": {gpu("2fff"), []backends.PCIDevice{nvswitch}, "HGX", 0},
	} {
		h := backends.Host{GPUs: c.gpus, PCI: c.pci}
		h.Baseboard = h.FindBaseboard()
		got := ""
		if h.Baseboard != nil {
			got = h.Baseboard.Name
		}
		if got != c.want || len(h.Cards()) != c.cards {
			t.Errorf("%s: %q with %d cards", name, got, len(h.Cards()))
		}
	}
}
