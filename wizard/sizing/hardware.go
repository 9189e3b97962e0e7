package sizing

import (
	"strconv"

	"github.com/hashicorp/go-version"
)

// The virtual hardware versions that PVRDMA needs. Version 13 is the minimum of the adapter (vSphere Networking 7.0,
// "PVRDMA Support"; Broadcom KB 328676). RoCE v2 needs 14: the device protocol came with the vSphere API 6.7
// (VirtualVmxnet3Vrdma.deviceProtocol, "Since vSphere API 6.7"), whose hardware version is 14.
const (
	hardwareRoCEv1 = 13
	hardwareRoCEv2 = 14
)

// HardwareForPVRDMA returns the lowest virtual hardware version on which a PVRDMA adapter works with a protocol of
// pvrdma.protocol (rocev1, rocev2).
func HardwareForPVRDMA(protocol string) int {
	if protocol == "rocev1" {
		return hardwareRoCEv1
	}
	return hardwareRoCEv2
}

// HardwareSlots is the hardware version from which PCI slots of VMs with EFI firmware are laid out anew, so that NICs of
// the guest get other names when a VM is upgraded across it (Broadcom KB 407595).
const HardwareSlots = 20

// HardwareLimit returns the newest virtual hardware version that an ESXi version runs (vSphere Virtual Machine
// Administration, "Hardware Features Available with Virtual Machine Compatibility Settings"; Broadcom KB 315655), and 0
// for a version that cannot be read. ESXi 6.7 Update 2 calls itself 6.7.0 and runs 15; its build tells (13006603: Broadcom KB,
// "Build numbers and versions of VMware ESXi/ESX").
func HardwareLimit(esxi, build string) int {
	v, err := version.NewVersion(esxi)
	if err != nil {
		return 0
	}
	best := 0
	for _, row := range []struct {
		esxi     string
		hardware int
	}{{"6.0.0", 11}, {"6.5.0", 13}, {"6.7.0", 14}, {"7.0.0", 17}, {"7.0.1", 18}, {"7.0.2", 19}, {"8.0.0", 20}, {"8.0.2", 21}, {"9.0.0", 22}} {
		if v.Core().GreaterThanOrEqual(version.Must(version.NewVersion(row.esxi))) {
			best = row.hardware
		}
	}
	if n, err := strconv.Atoi(build); err == nil && best == 14 && n >= build67U2 {
		best = 15
	}
	return best
}

const build67U2 = 13006603
