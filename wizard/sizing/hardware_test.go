package sizing_test

import (
	"testing"

	"github.com/rdma-setup/rdma-setup/wizard/sizing"
)

func TestHardwareLimit(t *testing.T) {
	for esxi, want := range map[string]int{
		"6.5.0": 13, "6.7.0": 14, "7.0.0": 17, "7.0.1": 18, "7.0.2": 19, "7.0.3": 19, // vSphere 7.0, "Hardware Features Available ..."
		"8.0.0": 20, "8.0.1": 20, "8.0.2": 21, "8.0.3": 21, "9.0.1": 22, "9.0.0.0": 22, // Broadcom KB 315655, KB 395110
		"": 0, "unknown": 0,
	} {
		if got := sizing.HardwareLimit(esxi, ""); got != want {
			t.Errorf("ESXi %q: %d, want %d", esxi, got, want)
		}
	}
}

// TestHardwareLimitOf67U2: 6.7 Update 2 and 3 call themselves 6.7.0, and run 15.
func TestHardwareLimitOf67U2(t *testing.T) {
	for build, want := range map[string]int{"8169922": 14, "13006603": 15, "14320388": 15} { // 6.7, U2, U3
		if got := sizing.HardwareLimit("6.7.0", build); got != want {
			t.Errorf("build %s: %d, want %d", build, got, want)
		}
	}
	if got := sizing.HardwareLimit("7.0.0", "15843807"); got != 17 {
		t.Errorf("7.0.0: %d", got)
	}
}

func TestHardwareForPVRDMA(t *testing.T) {
	for protocol, want := range map[string]int{"rocev1": 13, "rocev2": 14, "": 14} {
		if got := sizing.HardwareForPVRDMA(protocol); got != want {
			t.Errorf("%q: %d, want %d", protocol, got, want)
		}
	}
}
