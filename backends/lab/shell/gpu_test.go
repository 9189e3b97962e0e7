package shell_test

import (
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

// A port of a card and a GPU that a VM was given are PCI functions of its own; the ports meet on the cable at line rate.
func TestHCAAndGPUInTheGuest(t *testing.T) {
	l := start(t, world.Spec{Scenario: "gpudirect-done"})
	for n, vm := range []string{"vm-01", "vm-02"} {
		c := l.dial(vm, "root")
		for command, want := range map[string]string{
			"lspci -nn -d 15b3:":                                "13:00.0 Ethernet controller [0200]: Mellanox Technologies MT27800 Family [ConnectX-5] [15b3:1017]",
			"lspci -nn -d 10de:":                                "1b:00.0 3D controller [0302]: NVIDIA Corporation GA100 [A100 PCIe 80GB] [10de:20b5] (rev a1)",
			"lspci -vv -s 1b:00":                                "(64-bit, prefetchable) [size=128G]",
			"cat /sys/bus/pci/devices/0000:1b:00.0/vendor":      "0x10de",
			"ls /sys/firmware":                                  "efi",
			"ls /sys/class/infiniband/*/device/net":             "ens224",
			"cat /sys/class/infiniband/*/hca_type /dev/null":    "MT4119",
			"cat /sys/class/net/ens224/address; ip -br l; true": "b8:59:9f:00:0" + string(rune('0'+n)) + ":02",
		} {
			if got := ok(t, c, command); !strings.Contains(got, want) {
				t.Errorf("%s: %s: %q is not in\n%s", vm, command, want, got)
			}
		}
	}
}
