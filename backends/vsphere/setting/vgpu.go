package setting

import (
	"context"
	"slices"
	"strings"

	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/place"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/wire"
)

func (v *vmView) vgpus(profile string) []types.BaseVirtualDevice {
	var out []types.BaseVirtualDevice
	for _, d := range v.devices {
		p, is := d.(*types.VirtualPCIPassthrough)
		if !is {
			continue
		}
		if b, is := p.Backing.(*types.VirtualPCIPassthroughVmiopBackingInfo); is && b.Vgpu == profile {
			out = append(out, d)
		}
	}
	return out
}

// vgpus adds vGPUs of a profile, or removes the last ones, until a VM has the requested number.
func vgpus(spec *types.VirtualMachineConfigSpec, v *vmView, a backends.Assignment) error {
	want := 0
	if !a.To.IsAbsent() {
		var err error
		if want, err = backends.Decoded[int](a.To, a.Target.Name, "set the vGPUs "+a.Name); err != nil {
			return err
		}
	}
	have := v.vgpus(a.Name)
	alone := slices.DeleteFunc(slices.Clone(have), func(d types.BaseVirtualDevice) bool { return d.GetVirtualDevice().DeviceGroupInfo != nil })
	if over := len(have) - want; over > len(alone) {
		return backends.Refusedf("", "remove the group in the vSphere Client: VM, Edit Settings",
			"vGPUs %s are in a vendor device group, whose devices are removed together only", a.Name)
	} else if over > 0 {
		for _, d := range slices.Backward(alone[len(alone)-over:]) {
			change(spec, types.VirtualDeviceConfigSpecOperationRemove, d)
		}
	}
	for n := len(have); n < want; n++ {
		dev := &types.VirtualPCIPassthrough{}
		dev.Backing = &types.VirtualPCIPassthroughVmiopBackingInfo{Vgpu: a.Name}
		change(spec, types.VirtualDeviceConfigSpecOperationAdd, dev)
	}
	return nil
}

// group returns the vendor device group of a VM with a name; nil if it has none.
func (v *vmView) group(name string) *types.VirtualMachineVirtualDeviceGroupsVendorDeviceGroup {
	for _, g := range v.groups {
		if is, ok := g.(*types.VirtualMachineVirtualDeviceGroupsVendorDeviceGroup); ok && is.DeviceGroupName == name {
			return is
		}
	}
	return nil
}

// newGroup is the temporary key of a group that is added: negative, vCenter assigns its own (vSphere Web Services API,
// VirtualMachineVirtualDeviceGroupsDeviceGroup.groupInstanceKey).
const newGroup = -1

// deviceGroup adds a vendor device group of the VM's host with all its devices, or removes the group with all of them: neither is
// accepted for some devices alone (vSphere Web Services API, VirtualMachineVirtualDeviceGroups; a client that adds groups in this way:
// cloudfoundry/bosh-vsphere-cpi-release, resources/pci_passthrough.rb).
func (s *vmSetter) deviceGroup(ctx context.Context, spec *types.VirtualMachineConfigSpec, v *vmView, a backends.Assignment) error {
	spec.DeviceGroups = &types.VirtualMachineVirtualDeviceGroups{}
	if is := v.group(a.Name); a.To.IsAbsent() {
		for _, g := range v.groups {
			if g.GetVirtualMachineVirtualDeviceGroupsDeviceGroup().GroupInstanceKey != is.GroupInstanceKey {
				spec.DeviceGroups.DeviceGroup = append(spec.DeviceGroups.DeviceGroup, g)
			}
		}
		for _, d := range v.devices {
			if in := d.GetVirtualDevice().DeviceGroupInfo; in != nil && in.GroupInstanceKey == is.GroupInstanceKey {
				change(spec, types.VirtualDeviceConfigSpecOperationRemove, d)
			}
		}
		return nil
	}
	parts, err := s.groupOf(ctx, v.host, a.Name)
	if err != nil {
		return err
	}
	add := &types.VirtualMachineVirtualDeviceGroupsVendorDeviceGroup{DeviceGroupName: a.Name}
	add.GroupInstanceKey = newGroup
	spec.DeviceGroups.DeviceGroup = append(append(spec.DeviceGroups.DeviceGroup, v.groups...), add)
	for i, c := range parts {
		template, is := c.Device.(*types.VirtualPCIPassthrough)
		if !is {
			return backends.Refusedf("", "add the group in the vSphere Client: VM, Edit Settings, Add New Device, PCI Device",
				"the group holds %s, which is neither a vGPU nor a device that is passed through", c.DeviceName)
		}
		dev := &types.VirtualPCIPassthrough{}
		dev.Backing = template.Backing
		dev.DeviceGroupInfo = &types.VirtualDeviceDeviceGroupInfo{GroupInstanceKey: newGroup, SequenceId: int32(i)}
		if template.DeviceGroupInfo != nil {
			dev.DeviceGroupInfo.SequenceId = template.DeviceGroupInfo.SequenceId
		}
		change(spec, types.VirtualDeviceConfigSpecOperationAdd, dev)
	}
	return nil
}

// groupOf returns the devices that make up a vendor device group of a host.
func (s *vmSetter) groupOf(ctx context.Context, host place.Ref,
	name string) ([]types.VirtualMachineVendorDeviceGroupInfoComponentDeviceInfo, error) {
	const path = "configManager.assignableHardwareManager"
	o, err := s.conn.One(ctx, host, path)
	if err != nil {
		return nil, err
	}
	res, err := methods.RetrieveVendorDeviceGroupInfo(ctx, s.conn.VIM(),
		&types.RetrieveVendorDeviceGroupInfo{This: wire.Value[place.Ref](o, path)})
	if err != nil {
		return nil, err
	}
	var listed []string
	for _, g := range res.Returnval {
		if g.DeviceGroupName == name && len(g.ComponentDeviceInfo) > 0 {
			return g.ComponentDeviceInfo, nil
		}
		listed = append(listed, g.DeviceGroupName)
	}
	slices.Sort(listed)
	return nil, backends.Permanentf("", "name one of: "+strings.Join(listed, ", "),
		"the VM's host lists no vendor device group %s with devices", name)
}
