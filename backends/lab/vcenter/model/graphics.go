package model

import (
	"cmp"
	"slices"

	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

// graphics lists the GPUs of a host and the VMs that use their vGPUs. A GPU that is passed through has the type "direct".
func graphics(s *world.State, h *world.Host) []types.HostGraphicsInfo {
	var list []types.HostGraphicsInfo
	for _, d := range h.PCI {
		if d.Class>>8 != 0x03 {
			continue
		}
		g := types.HostGraphicsInfo{DeviceName: d.DeviceName, VendorName: d.VendorName, PciId: d.Address, GraphicsType: "basic",
			MemorySizeInKB: d.MemoryMB << 10}
		switch {
		case d.PassthruActive:
			g.GraphicsType = "direct"
		case h.Shares != nil && len(h.VGPUs) == 0: // the vGPU Manager is not running
		case h.Shared != "" || len(h.VGPUs) > 0:
			g.GraphicsType = cmp.Or(h.Shared, "shared")
			for _, v := range s.VMs {
				if v.Host == h.Name && v.On &&
					slices.ContainsFunc(v.Devices, func(p *world.Passthrough) bool { return p.Profile != "" && h.SharedGPU(p) == d }) {
					g.Vm = append(g.Vm, VMRef(v))
				}
			}
		}
		list = append(list, g)
	}
	return list
}

func graphicsConfig(h *world.Host) *types.HostGraphicsConfig {
	c := &types.HostGraphicsConfig{HostDefaultGraphicsType: "shared", SharedPassthruAssignmentPolicy: "performance"}
	if configured := cmp.Or(h.NextShared, h.Shared); configured != "" {
		c.HostDefaultGraphicsType = configured
	}
	for _, d := range h.PCI {
		if d.GPU != nil && (len(h.VGPUs) > 0 || h.Shares != nil) {
			c.DeviceType = append(c.DeviceType, types.HostGraphicsConfigDeviceType{DeviceId: d.Address, GraphicsType: c.HostDefaultGraphicsType})
		}
	}
	return c
}

func shares(h *world.Host) []types.HostSharedGpuCapabilities {
	var list []types.HostSharedGpuCapabilities
	for _, profile := range h.VGPUs {
		list = append(list, types.HostSharedGpuCapabilities{Vgpu: profile, DiskSnapshotSupported: true, MemorySnapshotSupported: true,
			SuspendSupported: true, MigrateSupported: true})
	}
	return list
}

// ShareTargets lists the vGPUs that can be assigned to a VM on the host.
func ShareTargets(h *world.Host) []types.VirtualMachinePciSharedGpuPassthroughInfo {
	var list []types.VirtualMachinePciSharedGpuPassthroughInfo
	for _, profile := range h.VGPUs {
		list = append(list,
			types.VirtualMachinePciSharedGpuPassthroughInfo{VirtualMachineTargetInfo: types.VirtualMachineTargetInfo{Name: profile}, Vgpu: profile})
	}
	return list
}

// DynamicTargets lists the models of the devices that are currently passed through, each with its hardware label.
func DynamicTargets(h *world.Host) []types.VirtualMachineDynamicPassthroughInfo {
	var list []types.VirtualMachineDynamicPassthroughInfo
	type kind struct {
		make  world.Make
		label string
	}
	seen := map[kind]bool{}
	for _, d := range h.PCI {
		k := kind{world.Make{Vendor: d.Vendor, Device: d.Device}, d.Label}
		if !d.PassthruActive || d.PF != "" || seen[k] {
			continue
		}
		seen[k] = true
		list = append(list,
			types.VirtualMachineDynamicPassthroughInfo{VirtualMachineTargetInfo: types.VirtualMachineTargetInfo{Name: d.DeviceName},
				VendorName: d.VendorName, DeviceName: d.DeviceName, CustomLabel: d.Label, VendorId: int32(d.Vendor), DeviceId: int32(d.Device)})
	}
	return list
}
