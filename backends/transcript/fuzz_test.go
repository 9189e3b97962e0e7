package transcript_test

import (
	"testing"

	"github.com/rdma-setup/rdma-setup/backends/transcript"
)

func FuzzIBSendBW(f *testing.F)     { fuzz(f, "ib_send_bw") }
func FuzzIBSendLat(f *testing.F)    { fuzz(f, "ib_send_lat") }
func FuzzIBVDevInfo(f *testing.F)   { fuzz(f, "ibv_devinfo") }
func FuzzOFEDInfo(f *testing.F)     { fuzz(f, "ofed_info") }
func FuzzIPAddr(f *testing.F)       { fuzz(f, "ip_addr") }
func FuzzMlnxQoS(f *testing.F)      { fuzz(f, "mlnx_qos") }
func FuzzLspci(f *testing.F)        { fuzz(f, "lspci") }
func FuzzNvidiaQuery(f *testing.F)  { fuzz(f, "nvidia_smi_q") }
func FuzzNvidiaTopo(f *testing.F)   { fuzz(f, "nvidia_smi_topo") }
func FuzzFlint(f *testing.F)        { fuzz(f, "flint") }
func FuzzMLXConfig(f *testing.F)    { fuzz(f, "mlxconfig") }
func FuzzMLXFWManager(f *testing.F) { fuzz(f, "mlxfwmanager") }
func FuzzMST(f *testing.F)          { fuzz(f, "mst") }
func FuzzVSphereError(f *testing.F) { fuzz(f, "vsphere_error") }
func FuzzVIBChange(f *testing.F)    { fuzz(f, "esxcli_software_vib_install") }

// The rows are from public outputs of mlxlink on Linux.
func FuzzPCIeLink(f *testing.F) {
	for text, want := range map[string][2]int{
		"PCIe Operational (Enabled) Info\n-------------------------------\nDepth, pcie index, node         : 0, 0, 0\n" +
			"Link Speed Active (Enabled)     : 16G-Gen 4 (16G-Gen 4)\nLink Width Active (Enabled)     : 16X (16X)\n": {4, 16},
		"Link Speed Active (Enabled)        : 2.5G-Gen 1 (16G-Gen 4)\nLink Width Active (Enabled)        : 4X (16X)\n": {1, 4},
		"Link Speed Active (Enabled)     : N/A\nLink Width Active (Enabled)     : N/A\n":                               {},
		"-E- Failed to send access register\n":                                                                         {},
	} {
		if gen, lanes := transcript.PCIeLink(text); [2]int{gen, lanes} != want {
			f.Errorf("%q: %d %d", text, gen, lanes)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if gen, lanes := transcript.PCIeLink(text); gen < 0 || gen > 9 || lanes < 0 || lanes > 99 {
			t.Errorf("%d %d", gen, lanes)
		}
	})
}
