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

// minDynamic is the first virtual hardware version that supports Dynamic DirectPath I/O (vSphere 7.0).
const minDynamic = 17

// passthrough adds or removes a passthrough device or a vGPU. The VM must be off.
func passthrough(s *world.State, v *world.VM, index int, op types.VirtualDeviceConfigSpecOperation, p *types.VirtualPCIPassthrough) error {
	if v.On {
		return hotPlug()
	}
	i := slices.IndexFunc(v.Devices, func(d *world.Passthrough) bool { return d.Key == p.Key })
	switch {
	case op == types.VirtualDeviceConfigSpecOperationAdd:
		return addPassthrough(s.Host(v.Host), v, index, p)
	case op == types.VirtualDeviceConfigSpecOperationRemove && i >= 0:
		v.Devices = slices.Delete(v.Devices, i, i+1)
		return nil
	case op == types.VirtualDeviceConfigSpecOperationEdit && i >= 0:
		d, err := passthroughDevice(s.Host(v.Host), v, index, p)
		if err != nil {
			return err
		}
		d.Key, d.Slot = p.Key, v.Devices[i].Slot
		v.Devices[i] = d
		return nil
	}
	return frame.Refuse(ptr(at(index)))
}

// maxPassthrough returns the maximum number of devices for a virtual hardware version (KB 309986).
func maxPassthrough(h *world.Host, hardware int) int {
	switch {
	case hardware >= 21:
		return 128
	case hardware >= 20 && !world.VersionLess(h.Version, "8.0.1"):
		return 64
	case hardware >= 20:
		return 32
	}
	return 16
}

func addPassthrough(h *world.Host, v *world.VM, index int, p *types.VirtualPCIPassthrough) error {
	d, err := passthroughDevice(h, v, index, p)
	if err != nil {
		return err
	}
	if most := maxPassthrough(h, v.Hardware); len(v.Devices) >= most {
		return frame.Refuse(&types.TooManyDevices{InvalidVmConfig: types.InvalidVmConfig{Property: "configSpec.deviceChange"}},
			fmt.Sprintf("The maximum number of PCI passthrough devices (%d) for virtual machine version vmx-%02d has been exceeded.", most,
				v.Hardware))
	}
	d.Key, d.Slot = model.FirstPassthru, v.NextSlot()
	if in := p.DeviceGroupInfo; in != nil {
		d.Group = world.Place{Key: in.GroupInstanceKey, Sequence: in.SequenceId}
	}
	for slices.ContainsFunc(v.Devices, func(o *world.Passthrough) bool { return o.Key == d.Key }) {
		d.Key++
	}
	v.Devices = append(v.Devices, d)
	return nil
}

// passthroughDevice parses a backing and checks it against the devices of the host.
func passthroughDevice(h *world.Host, v *world.VM, index int, p *types.VirtualPCIPassthrough) (*world.Passthrough, error) {
	invalid := frame.Refuse(&types.InvalidDeviceBacking{InvalidDeviceSpec: at(index)})
	switch b := p.Backing.(type) {
	case *types.VirtualPCIPassthroughDeviceBackingInfo:
		c := h.PCIDevice(b.Id)
		id, err := strconv.ParseUint(strings.TrimPrefix(strings.ToLower(b.DeviceId), "0x"), 16, 16)
		switch {
		case c == nil || !c.PassthruActive || err != nil || uint16(id) != c.Device || uint16(b.VendorId) != c.Vendor || b.SystemId != h.UUID:
			return nil, invalid
		case slices.ContainsFunc(v.Devices, func(o *world.Passthrough) bool { return o.PCI == b.Id && o.Key != p.Key }):
			return nil, frame.Refuse(&types.DeviceNotSupported{Device: b.Id, Reason: "duplicate"},
				"Device "+b.Id+" is already part of the virtual machine.")
		}
		return &world.Passthrough{PCI: b.Id, Vendor: c.Vendor, Device: c.Device}, nil
	case *types.VirtualPCIPassthroughDynamicBackingInfo:
		if v.Hardware < minDynamic {
			return nil,
				frame.Refuse(&types.DeviceUnsupportedForVmVersion{InvalidDeviceSpec: at(index), CurrentVersion: fmt.Sprintf("vmx-%02d", v.Hardware),
					ExpectedVersion: fmt.Sprintf("vmx-%02d", minDynamic)}, "Dynamic DirectPath I/O is not supported for this virtual machine version.")
		}
		if len(b.AllowedDevice) == 0 {
			return nil, invalid
		}
		d := &world.Passthrough{Label: b.CustomLabel}
		for _, a := range b.AllowedDevice {
			d.Others = append(d.Others, world.Make{Vendor: uint16(a.VendorId), Device: uint16(a.DeviceId)})
		}
		d.Vendor, d.Device, d.Others = d.Others[0].Vendor, d.Others[0].Device, d.Others[1:]
		return d, nil
	case *types.VirtualPCIPassthroughVmiopBackingInfo:
		if !slices.Contains(h.VGPUs, b.Vgpu) {
			return nil, invalid
		}
		return &world.Passthrough{Profile: b.Vgpu}, nil
	}
	return nil, invalid
}

// nestedFits returns an error if a VM has both nested hardware virtualization and a passthrough device (KB 437651).
func nestedFits(v *world.VM) error {
	if v.Nested && len(v.Devices) > 0 {
		return frame.Refuse(&types.GenericVmConfigFault{Reason: "nested"},
			"Nested Hardware-Assisted Virtualization is not supported on a virtual machine with a PCI passthrough device.")
	}
	return nil
}
