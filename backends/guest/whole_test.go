package guest

import (
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
)

// A passed-through card that cannot be matched to an RDMA device of the guest is reported with the bridge of its slot, the guest's
// devices, and the next step.
func TestPassedThroughCardThatTheGuestDoesNotReport(t *testing.T) {
	seen := []backends.VerbsDevice{{Name: "mlx5_0", Bridge: "0000:00:18.0"}, {Name: "mlx5_1"}}
	card := func(slot int) []backends.AssignedDevice {
		return []backends.AssignedDevice{{PCI: "0000:58:00.0", Slot: slot}}
	}
	for _, c := range []struct {
		pci        string
		given      []backends.AssignedDevice
		want, hint string
	}{
		{"0000:58:00.0", card(192),
			"no RDMA device of the guest is behind the PCI bridge 0000:00:16.0, where slot 192 of the card at 0000:58:00.0 leads (KB 311606); " +
				"RDMA devices of the guest: mlx5_0 behind 0000:00:18.0, mlx5_1 behind no bridge", "pciBridgeN.pciSlotNumber"},
		{"0000:58:00.0", card(0), "cannot tell which RDMA device is the card at 0000:58:00.0: its PCI slot in the VM is 0",
			"power the VM off and on"},
		{"0000:58:00.0", nil, "the VM does not have the card at 0000:58:00.0", "apply again"},
		{"", nil, "the guest has no RDMA device", "load the driver"},
	} {
		err := notSeen("vm-01", c.pci, c.given, seen)
		if !strings.Contains(err.Error(), c.want) || !strings.Contains(backends.HintOf(err), c.hint) ||
			backends.KindOf(err) != backends.KindRefused {
			t.Errorf("%v\nhint: %s", err, backends.HintOf(err))
		}
	}
}
