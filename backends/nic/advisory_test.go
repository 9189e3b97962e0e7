package nic_test

import (
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/nic"
)

// TestVulnerable: NVIDIA, security bulletins 5699 (2026-06-30) and 5847 (2026-09-29).
func TestVulnerable(t *testing.T) {
	const exec1, exec2, denial = "CVE-2025-23351", "CVE-2025-23350", "CVE-2025-33207"
	for _, c := range []struct {
		vendor, device, firmware string
		want                     string // CVEs; "unknown"
	}{
		{"15b3", "1015", "14.32.1900", exec1}, // ConnectX-4 Lx
		{"15b3", "1015", "14.32.1908", ""},
		{"15b3", "1017", "16.35.4030", exec1 + " " + denial}, // ConnectX-5: not named for 23350
		{"15b3", "1017", "16.35.8002", denial},
		{"15b3", "1017", "16.35.8008", ""},
		{"15b3", "101d", "22.35.8002", denial}, // LTS22 has no fix for the second bulletin
		{"15b3", "101d", "22.43.8001", exec1 + " " + exec2},
		{"15b3", "101d", "22.45.1020", exec1 + " " + exec2 + " " + denial}, // a branch without a fix of its own
		{"15b3", "101d", "22.46.3008", denial},
		{"15b3", "101d", "22.48.1000", ""},
		{"15b3", "1021", "28.46.3008", ""},
		{"15b3", "1017", "16.35.4030 (DEL0000000004)", exec1 + " " + denial},
		{"15b3", "1021", "", "unknown"},
		{"15b3", "a2d2", "18.33.1048", "unknown"}, // BlueField: named by neither bulletin
		{"15b3", "1003", "2.42.5000", "unknown"},  // ConnectX-3
		{"15b3", "1021", "28.x.1", "unknown"},
		{"8086", "1592", "4.40 0x8001 1.3429.0", "unknown"},
	} {
		n := &backends.NIC{Vendor: c.vendor, PCIDeviceID: c.device, Firmware: c.firmware}
		list, known := nic.Vulnerable(n)
		var got []string
		for _, a := range list {
			got = append(got, a.CVE)
		}
		if s := strings.Join(got, " "); s != c.want && !(c.want == "unknown" && !known) {
			t.Errorf("%s %s: %q, want %q", c.device, c.firmware, s, c.want)
		}
	}
	n := &backends.NIC{Vendor: "15b3", PCIDeviceID: "101d", Firmware: "22.45.1020"}
	list, _ := nic.Vulnerable(n)
	if got := nic.Named(list[:1], n); got != "CVE-2025-23351 (9.0, code execution on the card, fixed in 22.46.3008)" {
		t.Error(got)
	}
}
