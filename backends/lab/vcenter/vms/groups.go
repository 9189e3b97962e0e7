package vms

import (
	"slices"

	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter/frame"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

// deviceGroups compares the vendor device groups of a changed VM with those in a spec. A group is added or removed with all its
// devices in one request, and cannot be changed. A new group has a negative key, which is replaced by a new one (vSphere Web
// Services API, VirtualMachineVirtualDeviceGroups and VirtualMachineVirtualDeviceGroupsDeviceGroup).
func deviceGroups(h *world.Host, before, v *world.VM, spec *types.VirtualMachineVirtualDeviceGroups) error {
	refused := frame.BadArgument("configSpec.deviceGroups")
	had := members(before)
	wanted := map[int32]string{}
	for key, list := range had {
		wanted[key] = list[0].Group.Name
	}
	if spec != nil {
		clear(wanted)
		for _, base := range spec.DeviceGroup {
			g, is := base.(*types.VirtualMachineVirtualDeviceGroupsVendorDeviceGroup)
			if !is || g.GroupInstanceKey >= 0 && (had[g.GroupInstanceKey] == nil || had[g.GroupInstanceKey][0].Group.Name != g.DeviceGroupName) {
				return refused
			}
			wanted[g.GroupInstanceKey] = g.DeviceGroupName
		}
	}
	now := members(v)
	for key, list := range now {
		name, is := wanted[key]
		if !is || key >= 0 && len(list) != len(had[key]) || key >= 0 && slices.ContainsFunc(list, func(d *world.Passthrough) bool { return d.Group.Name == "" }) {
			return refused
		}
		if key < 0 && !whole(h, name, list) {
			return refused
		}
	}
	for key, name := range wanted {
		if len(now[key]) == 0 {
			return refused
		}
		if key >= 0 {
			continue
		}
		own := int32(0)
		for members(v)[own] != nil {
			own++
		}
		for _, d := range now[key] {
			d.Group.Key, d.Group.Name = own, name
		}
	}
	return nil
}

// members returns the devices in a VM's groups by group key.
func members(v *world.VM) map[int32][]*world.Passthrough {
	out := map[int32][]*world.Passthrough{}
	for _, d := range v.Devices {
		if d.Group != (world.Place{}) {
			out[d.Group.Key] = append(out[d.Group.Key], d)
		}
	}
	return out
}

// whole reports whether a list contains exactly the devices of a group of the host.
func whole(h *world.Host, name string, list []*world.Passthrough) bool {
	i := slices.IndexFunc(h.Groups, func(g world.DeviceGroup) bool { return g.Name == name })
	if i < 0 || len(list) != len(h.Groups[i].VGPUs) {
		return false
	}
	for n, profile := range h.Groups[i].VGPUs {
		if !slices.ContainsFunc(list, func(d *world.Passthrough) bool { return d.Group.Sequence == int32(n+1) && d.Profile == profile }) {
			return false
		}
	}
	return true
}
