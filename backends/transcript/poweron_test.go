package transcript_test

import (
	"testing"

	"github.com/rdma-setup/rdma-setup/backends/transcript"
)

// Messages of ESXi about VMs with devices that do not start (KB 323402, KB 437651, HPE a00121002).
func TestPowerOnCauses(t *testing.T) {
	for text, want := range map[string]struct{ code, device string }{
		"vmx - The firmware could not allocate 134250496 KB of PCI MMIO. Increase the size of PCI MMIO and try again.": {
			transcript.MMIOFirmware, ""},
		"PCIPassthru: total number of pages needed (33570818) exceeds limit (917504), failing\nModule 'DevicePowerOn' power on failed.": {
			transcript.MMIOSpace, ""},
		"Module 'DevicePowerOn' power on failed. Failed to register the device pciPassthru0 for 59:0.0 due to unavailable hardware or " +
			"software support.": {transcript.DeviceBusy, "0000:3b:00.0"},
		"Insufficient resources. One or more devices (pciPassthru1) required by VM vm-01 are not available on host esx-01.": {
			transcript.NoDeviceFree, ""},
		"Nested Hardware-Assisted Virtualization is not supported on a virtual machine with a PCI passthrough device.": {
			transcript.NestedVirtualization, ""},
		"WARNING: IOMMU fault on 0000:3c:00.0": {transcript.IOMMUFault, ""},
		"PCIPassthru: successfully created the IOMMU mappings; Module 'DevicePowerOn' power on failed.": {transcript.DevicePowerOnFailed, ""},
	} {
		f := transcript.VSphereError(text)
		if f.Code == nil || *f.Code != want.code || want.device != "" && (f.Device == nil || *f.Device != want.device) {
			t.Errorf("%q: code %v, device %v", text, f.Code, f.Device)
		}
	}
}
