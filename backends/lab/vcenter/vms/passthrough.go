package vms

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter/frame"
	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter/model"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

// minDynamic is the hardware version that knows Dynamic DirectPath I/O (vSphere 7.0).
const minDynamic = 17

// passthrough adds or removes a device that is given to a VM whole. That is done with the VM off.
func passthrough(s *world.State, v *world.VM, index int, op types.VirtualDeviceConfigSpecOperation, p *types.VirtualPCIPassthrough) error {
	if v.On {
		return hotPlug()
	}
	switch op {
	case types.VirtualDeviceConfigSpecOperationAdd:
		return addPassthrough(s.Host(v.Host), v, index, p)
	case types.VirtualDeviceConfigSpecOperationRemove:
		i := slices.IndexFunc(v.Devices, func(d *world.Passthrough) bool { return d.Key == p.Key })
		if i < 0 {
			return frame.Refuse(ptr(at(index)))
		}
		v.Devices = slices.Delete(v.Devices, i, i+1)
		return nil
	}
	return frame.Refuse(ptr(at(index)))
}

func addPassthrough(h *world.Host, v *world.VM, index int, p *types.VirtualPCIPassthrough) error {
	invalid := frame.Refuse(&types.InvalidDeviceBacking{InvalidDeviceSpec: at(index)})
	d := &world.Passthrough{Key: model.FirstPassthru}
	switch b := p.Backing.(type) {
	case *types.VirtualPCIPassthroughDeviceBackingInfo:
		c := h.PCIDevice(b.Id)
		id, err := strconv.ParseUint(strings.TrimPrefix(strings.ToLower(b.DeviceId), "0x"), 16, 16)
		switch {
		case c == nil || !c.PassthruActive || err != nil || uint16(id) != c.Device || uint16(b.VendorId) != c.Vendor || b.SystemId != h.UUID:
			return invalid
		case slices.ContainsFunc(v.Devices, func(o *world.Passthrough) bool { return o.PCI == b.Id }):
			return frame.Refuse(&types.DeviceNotSupported{Device: b.Id, Reason: "duplicate"}, "Device "+b.Id+" is already part of the virtual machine.")
		}
		d.PCI, d.Vendor, d.Device = b.Id, c.Vendor, c.Device
	case *types.VirtualPCIPassthroughDynamicBackingInfo:
		if v.Hardware < minDynamic {
			return frame.Refuse(&types.DeviceUnsupportedForVmVersion{InvalidDeviceSpec: at(index), CurrentVersion: fmt.Sprintf("vmx-%02d", v.Hardware),
				ExpectedVersion: fmt.Sprintf("vmx-%02d", minDynamic)}, "Dynamic DirectPath I/O is not supported for this virtual machine version.")
		}
		if len(b.AllowedDevice) == 0 {
			return invalid
		}
		d.Vendor, d.Device = uint16(b.AllowedDevice[0].VendorId), uint16(b.AllowedDevice[0].DeviceId)
	default:
		return invalid
	}
	for slices.ContainsFunc(v.Devices, func(o *world.Passthrough) bool { return o.Key == d.Key }) {
		d.Key++
	}
	v.Devices = append(v.Devices, d)
	return nil
}

// The pages of 4 KiB that devices may map without 64-bit MMIO: 3.5 GiB (Dell KB 000199172).
const smallWindow = 917504

// devicesFit refuses a VM whose devices are not there, or whose address window does not hold their memory.
func devicesFit(s *world.State, v *world.VM, h *world.Host) error {
	trial := *v
	trial.Devices = nil
	for _, d := range v.Devices {
		clone := *d
		trial.Devices = append(trial.Devices, &clone)
	}
	if err := s.AssignDevices(&trial); err != nil {
		return frame.Refuse(&types.GenericVmConfigFault{Reason: "passthrough"},
			"Device is not available: "+err.Error()+". Module 'DevicePowerOn' power on failed. Failed to start the virtual machine.")
	}
	pages := int64(0)
	for _, d := range trial.Devices {
		if c := h.PCIDevice(d.PCI + d.Assigned); c != nil && c.MemoryMB > 0 {
			pages += (bar(c.MemoryMB) + 48) << 20 >> 12
		}
	}
	limit := int64(smallWindow)
	if strings.EqualFold(setting(v, "pciPassthru.use64bitMMIO"), "TRUE") && v.Firmware == "efi" {
		limit = 32 << 30 >> 12
		if gb, err := strconv.ParseInt(setting(v, "pciPassthru.64bitMMIOSizeGB"), 10, 32); err == nil && gb > 0 {
			limit = gb << 30 >> 12
		}
	}
	if pages > limit {
		return frame.Refuse(&types.GenericVmConfigFault{Reason: "mmio"}, fmt.Sprintf(
			"PCIPassthru: total number of pages needed (%d) exceeds limit (%d). Module 'DevicePowerOn' power on failed. Failed to start the virtual machine.", pages, limit))
	}
	return nil
}

// bar is the window over a device's memory, in MB: a power of two.
func bar(memoryMB int64) int64 {
	size := int64(1)
	for size < memoryMB {
		size *= 2
	}
	return size
}

// setting reads a VMX key, whatever its spelling.
func setting(v *world.VM, key string) string {
	for k, value := range v.Extra {
		if strings.EqualFold(k, key) {
			return value
		}
	}
	return ""
}
