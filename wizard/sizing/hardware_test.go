package sizing_test

import (
	"testing"

	"github.com/rdma-setup/rdma-setup/wizard/sizing"
)

func TestHardwareLimit(t *testing.T) {
	for esxi, want := range map[string]int{
		"6.5.0": 13, "6.7.0": 14, "7.0.0": 17, "7.0.1": 18, "7.0.2": 19, "7.0.3": 19, // vSphere 7.0, "Hardware Features Available ..."
		"8.0.0": 20, "8.0.1": 20, "8.0.2": 21, "8.0.3": 21, "9.0.1": 22, // Broadcom KB 315655
		"": 0, "unknown": 0,
	} {
		if got := sizing.HardwareLimit(esxi); got != want {
			t.Errorf("ESXi %q: %d, want %d", esxi, got, want)
		}
	}
}

func TestHardwareForPVRDMA(t *testing.T) {
	for protocol, want := range map[string]int{"rocev1": 13, "rocev2": 14, "": 14} {
		if got := sizing.HardwareForPVRDMA(protocol); got != want {
			t.Errorf("%q: %d, want %d", protocol, got, want)
		}
	}
}
