package model

import (
	"cmp"
	"fmt"
	"time"

	"github.com/vmware/govmomi/simulator/esx"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

// CoreMHz is the clock rate of a CPU core.
const CoreMHz = 2400

const cpuHz = CoreMHz * 1_000_000

// server returns the hardware description of a host.
func server(h *world.Host) world.Server {
	return world.Server{Vendor: cmp.Or(h.Make.Vendor, "Dell Inc."), Model: cmp.Or(h.Make.Model, "PowerEdge R740xd"),
		CPU: cmp.Or(h.Make.CPU, "Intel(R) Xeon(R) Gold 6240R CPU @ 2.40GHz"), MHz: cmp.Or(h.Make.MHz, CoreMHz)}
}

func hardware(h *world.Host) *types.HostHardwareInfo {
	of := server(h)
	info := &types.HostHardwareInfo{
		SystemInfo: types.HostSystemInfo{Vendor: of.Vendor, Model: of.Model, Uuid: h.UUID, SerialNumber: fmt.Sprintf("LAB%04d", h.Index+1)},
		CpuInfo: types.HostCpuInfo{NumCpuPackages: int16(h.Sockets), NumCpuCores: int16(h.Cores),
			NumCpuThreads: int16(h.Threads()), Hz: int64(of.MHz) * 1_000_000},
		MemorySize: h.MemoryMB << 20,
		NumaInfo:   &types.HostNumaInfo{Type: "NUMA", NumNodes: int32(h.Sockets)},
		BiosInfo: &types.HostBIOSInfo{BiosVersion: "2.19.1", Vendor: "Dell Inc.",
			ReleaseDate: ptr(time.Date(2023, 9, 12, 0, 0, 0, 0, time.UTC))},
	}
	for n := range h.Sockets {
		node := types.HostNumaNode{TypeId: byte(n), MemoryRangeLength: h.MemoryMB << 20 / int64(h.Sockets)}
		info.CpuPkg = append(info.CpuPkg, types.HostCpuPackage{Index: int16(n), Vendor: "intel", Hz: int64(of.MHz) * 1_000_000,
			BusHz:       100_000_000,
			Description: of.CPU})
		for c := range h.Threads() / h.Sockets {
			node.CpuID = append(node.CpuID, int16(n*h.Threads()/h.Sockets+c))
		}
		for _, d := range h.PCI {
			if d.NUMA == n {
				node.PciId = append(node.PciId, d.Address)
			}
		}
		info.NumaInfo.NumaNode = append(info.NumaInfo.NumaNode, node)
	}
	for _, d := range h.PCI {
		info.PciDevice = append(info.PciDevice, pciDevice(d))
	}
	return info
}

// pciDevice returns a PCI function in the format of vSphere: ids are signed 16-bit integers.
func pciDevice(d *world.PCIDevice) types.HostPciDevice {
	var bus, slot, function byte
	var segment int
	_, _ = fmt.Sscanf(d.Address, "%04x:%02x:%02x.%x", &segment, &bus, &slot, &function)
	return types.HostPciDevice{
		Id: d.Address, ClassId: int16(d.Class), Bus: bus, Slot: slot, Function: function,
		VendorId: int16(d.Vendor), DeviceId: int16(d.Device), SubVendorId: int16(d.SubVendor), SubDeviceId: int16(d.SubDevice),
		VendorName: d.VendorName, DeviceName: d.DeviceName, ParentBridge: d.Parent,
	}
}

func hardwareSummary(h *world.Host) *types.HostHardwareSummary {
	of := server(h)
	return &types.HostHardwareSummary{
		Vendor: of.Vendor, Model: of.Model, Uuid: h.UUID, MemorySize: h.MemoryMB << 20,
		CpuModel: of.CPU, CpuMhz: int32(of.MHz), NumCpuPkgs: int16(h.Sockets),
		NumCpuCores: int16(h.Cores), NumCpuThreads: int16(h.Threads()), NumNics: int32(len(h.PNICs)),
	}
}

// passthru lists the devices that can be passed through. Network functions that can have VFs have the type HostSriovInfo.
func passthru(h *world.Host) []types.BaseHostPciPassthruInfo {
	var list []types.BaseHostPciPassthruInfo
	for _, d := range h.PCI {
		info := types.HostPciPassthruInfo{Id: d.Address, DependentDevice: d.Address, PassthruCapable: d.PassthruCapable,
			PassthruEnabled: d.PassthruEnabled, PassthruActive: d.PassthruActive, HardwareLabel: d.Label}
		if d.Dependent != "" {
			info.DependentDevice = d.Dependent
		}
		p := h.PNICAt(d.Address)
		if p == nil || p.MaxVFs == 0 {
			list = append(list, &info)
			continue
		}
		sriov := &types.HostSriovInfo{HostPciPassthruInfo: info, SriovCapable: true, MaxVirtualFunctionSupported: int32(p.MaxVFs),
			SriovEnabled: p.ActiveVFs > 0, SriovActive: p.ActiveVFs > 0, NumVirtualFunction: int32(p.ActiveVFs),
			NumVirtualFunctionRequested: int32(p.ActiveVFs)}
		for _, r := range []*world.SRIOVRequest{p.SRIOV, p.Shown} {
			if r != nil {
				sriov.SriovEnabled, sriov.NumVirtualFunctionRequested = r.Enabled, int32(r.VFs)
			}
		}
		list = append(list, sriov)
	}
	return list
}

// CanRebind reports whether passthrough of a device can be enabled or disabled without a reboot (vSphere 7.0 and later).
func CanRebind(h *world.Host) bool { return !world.VersionLess(h.Version, "7.0.0") }

// uefiSecureBootSince is the first version whose API reports whether Secure Boot is enabled.
const uefiSecureBootSince = "8.0.3"

func hostCapability(h *world.Host) *types.HostCapability {
	c := *esx.HostCapability
	c.DeviceRebindWithoutRebootSupported = types.NewBool(CanRebind(h))
	c.UefiSecureBoot = nil
	if !world.VersionLess(h.Version, uefiSecureBootSince) {
		c.UefiSecureBoot = types.NewBool(h.SecureBoot)
	}
	return &c
}

// SRIOVTargets lists the ports with VFs, and the VFs, that can be assigned to a VM on the host.
func SRIOVTargets(h *world.Host) []types.VirtualMachineSriovInfo {
	var list []types.VirtualMachineSriovInfo
	for _, d := range h.PCI {
		p := h.PNICAt(d.Address)
		if d.PF == "" && (p == nil || p.ActiveVFs == 0) {
			continue
		}
		info := types.VirtualMachineSriovInfo{VirtualFunction: d.PF != "", VirtualMachinePciPassthroughInfo: target(d, "BYPASS")}
		if p != nil {
			info.Pnic = p.Device
		}
		list = append(list, info)
	}
	return list
}

// PassthruTargets lists the devices that are currently passed through.
func PassthruTargets(h *world.Host) []types.BaseVirtualMachinePciPassthroughInfo {
	var list []types.BaseVirtualMachinePciPassthroughInfo
	for _, d := range h.PCI {
		if d.PassthruActive {
			info := target(d, h.UUID)
			list = append(list, &info)
		}
	}
	return list
}

func target(d *world.PCIDevice, system string) types.VirtualMachinePciPassthroughInfo {
	return types.VirtualMachinePciPassthroughInfo{PciDevice: pciDevice(d), SystemId: system,
		VirtualMachineTargetInfo: types.VirtualMachineTargetInfo{Name: d.Address}}
}

func ptr[T any](v T) *T { return &v }
