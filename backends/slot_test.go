package backends_test

import (
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
)

// The bridges that slots belong to, from KB 311606 (Mapping PCI slot numbers to guest-visible PCI bus topology).
func TestGuestBridge(t *testing.T) {
	for slot, want := range map[int]string{0: "", 17: "", 192: "0000:00:16.0", 1216: "0000:00:16.1", 1184: "0000:00:15.1"} {
		if got := (backends.AssignedDevice{Slot: slot}).GuestBridge(); got != want {
			t.Errorf("slot %d: %q, want %q", slot, got, want)
		}
	}
}

// Of several passed-through cards each is the device behind the bridge of its slot.
func TestCardAt(t *testing.T) {
	v := &backends.VM{Devices: []backends.AssignedDevice{{PCI: "0000:38:00.0", Slot: 1216}, {PCI: "0000:3a:00.0", Slot: 192},
		{PCI: "0000:3c:00.0"}}}
	g := &backends.Guest{RDMA: []backends.VerbsDevice{{Name: "mlx5_0", Bridge: "0000:00:16.0"}, {Name: "mlx5_1", Bridge: "0000:00:16.1"}}}
	for pci, want := range map[string]string{"0000:38:00.0": "mlx5_1", "0000:3A:00.0": "mlx5_0", "0000:3c:00.0": "", "0000:3e:00.0": ""} {
		got := ""
		if d := g.CardAt(v, backends.HCAName(pci)); d != nil {
			got = d.Name
		}
		if got != want {
			t.Errorf("%s: %q, want %q", pci, got, want)
		}
	}
}
