package firmware_test

import (
	"testing"

	"github.com/rdma-setup/rdma-setup/backends/transcript/firmware"
	"github.com/rdma-setup/rdma-setup/backends/transcript/scan/scantest"
)

func fuzz(f *testing.F, tool string) {
	scantest.Fuzz(f, "testdata", tool, firmware.Tools()[tool])
}

func FuzzFlint(f *testing.F)        { fuzz(f, "flint") }
func FuzzMLXConfig(f *testing.F)    { fuzz(f, "mlxconfig") }
func FuzzMLXFWManager(f *testing.F) { fuzz(f, "mlxfwmanager") }
func FuzzMLXFWReset(f *testing.F)   { fuzz(f, "mlxfwreset") }
func FuzzMST(f *testing.F)          { fuzz(f, "mst") }

// The rows are from public outputs of mlxlink on Linux.
func FuzzPCIeLink(f *testing.F) {
	for text, want := range map[string][2]int{
		"PCIe Operational (Enabled) Info\n-------------------------------\nDepth, pcie index, node         : 0, 0, 0\n" +
			"Link Speed Active (Enabled)     : 16G-Gen 4 (16G-Gen 4)\nLink Width Active (Enabled)     : 16X (16X)\n": {4, 16},
		"Link Speed Active (Enabled)        : 2.5G-Gen 1 (16G-Gen 4)\nLink Width Active (Enabled)        : 4X (16X)\n": {1, 4},
		"Link Speed Active (Enabled)     : N/A\nLink Width Active (Enabled)     : N/A\n":                               {},
		"-E- Failed to send access register\n":                                                                         {},
	} {
		if gen, lanes := firmware.PCIeLink(text); [2]int{gen, lanes} != want {
			f.Errorf("%q: %d %d", text, gen, lanes)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if gen, lanes := firmware.PCIeLink(text); gen < 0 || gen > 9 || lanes < 0 || lanes > 99 {
			t.Errorf("%d %d", gen, lanes)
		}
	})
}
