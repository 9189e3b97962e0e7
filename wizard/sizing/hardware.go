package sizing

import (
	"strconv"

	"github.com/rdma-setup/rdma-setup/assets"
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

// HardwareFor returns the lowest virtual hardware version for adapters of a type (backends.Adapter.Type), with a protocol of
// pvrdma.protocol, and for dynamic devices if there are any; 0 if every version is sufficient.
func HardwareFor(adapter, protocol string, dynamic bool) (need int) {
	if adapter == "pvrdma" {
		need = HardwareForPVRDMA(protocol)
	}
	if dynamic {
		need = max(need, HardwareDynamic)
	}
	return need
}

// HardwareDynamic is the first hardware version with Dynamic DirectPath I/O devices (bosh-vsphere-cpi-release, pull request 370;
// version 17 is that of vSphere 7.0).
const HardwareDynamic = 17

// HardwareDeviceGroup is the hardware version of the release that introduced vendor device groups, ESXi 8.0 (KB 2007240; vSphere
// Web Services API, VirtualMachineVirtualDeviceGroups). Whether earlier ones accept a group is unverified.
const HardwareDeviceGroup = 20

// HardwareNativeEndpoints is the first hardware version with which PVRDMA reaches peers that are not PVRDMA VMs, since vSphere 7.0
// Update 1 (vSphere Networking 8.0, "PVRDMA Support", Support for PVRDMA Native Endpoints; before: Broadcom KB 328676).
const HardwareNativeEndpoints = 18

// HardwareNamespaces is the first hardware version with namespaces for PVRDMA (vSphere Networking 7.0, "PVRDMA Support").
const HardwareNamespaces = 17

// HardwareSlots is the first hardware version with a different layout of the PCI slots of VMs with EFI firmware, so that NICs of
// the guest get other names when a VM is upgraded to it (Broadcom KB 407595).
const HardwareSlots = 20

// HardwareLimit returns the newest virtual hardware version that an ESXi version supports (vSphere Virtual Machine
// Administration, "Hardware Features Available with Virtual Machine Compatibility Settings"; Broadcom KB 315655), and 0 for an
// invalid version. ESXi 6.7 Update 2 reports 6.7.0 and supports 15; its build distinguishes it.
func HardwareLimit(esxi, build string) int {
	n, _ := strconv.Atoi(build) // 0: of the first build
	if r, ok := assets.ReleaseOf(esxi, n); ok {
		return r.Hardware
	}
	return 0
}

// AdaptersForPVRDMA returns how many PVRDMA adapters a VM can have on an ESXi version: 1 (Broadcom KB 328676), and 10 since 7.0
// Update 2 (vSphere Virtual Machine Administration 7.0 and 8.0, "Hardware Features Available with Virtual Machine Compatibility
// Settings"); it depends on the version of ESXi, not on the hardware version. It returns 1 for an invalid version.
func AdaptersForPVRDMA(esxi string) int {
	if r, ok := assets.ReleaseOf(esxi, 0); ok {
		return r.Adapters
	}
	return 1
}

// VectorsFor returns how many interrupt vectors VFs need, three each; 3072 are available to them on a host with 32 CPUs (vSphere
// Networking, Intel and Emulex formula).
func VectorsFor(vfs int) int { return 3 * vfs }

// VectorLimit bounds VectorsFor.
const VectorLimit = 3072

// PassthroughLimit returns how many passthrough devices a VM supports by hardware version: 16, from 20 on 32 (64 with ESXi 8.0
// U1), from 21 on 128 (KB 309986).
func PassthroughLimit(hardware int, esxi8u1 bool) int {
	switch {
	case hardware >= 21:
		return 128
	case hardware >= 20 && esxi8u1:
		return 64
	case hardware >= 20:
		return 32
	}
	return 16
}
