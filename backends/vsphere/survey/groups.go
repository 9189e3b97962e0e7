package survey

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/place"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/wire"
)

// vendorGroups reads the vendor device groups of hosts that offer vGPUs (HostAssignableHardwareManager,
// RetrieveVendorDeviceGroupInfo, since vSphere API 8.0.0.1), and the names of those that VMs have. It costs one call, one more for
// each such host, and one for VMs with groups.
func (rd *reading) vendorGroups(ctx context.Context, conn *wire.Conn) []backends.Gap {
	list := rd.groupsOfVMs(ctx, conn)
	hosts := map[place.Ref]*hostRow{}
	spec := types.PropertyFilterSpec{PropSet: []types.PropertySpec{{Type: "HostSystem", PathSet: []string{"configManager.assignableHardwareManager"}}}}
	for _, h := range rd.hosts {
		if len(h.host.Profiles) > 0 && h.host.State == "connected" && !old(h.host.Version) {
			hosts[h.ref] = h
			spec.ObjectSet = append(spec.ObjectSet, types.ObjectSpec{Obj: h.ref})
		}
	}
	if len(hosts) == 0 {
		return list
	}
	managers := map[place.Ref]place.Ref{}
	if _, err := conn.Retrieve(ctx, []types.PropertyFilterSpec{spec}, func(o wire.Object) {
		managers[o.Ref] = wire.Value[place.Ref](o, "configManager.assignableHardwareManager")
	}); err != nil {
		return append(list, backends.Gap{Target: backends.Ref{Type: backends.TypeVCenter}, What: "vendor device groups", Why: wire.Text(err)})
	}
	gaps := make(chan backends.Gap, len(hosts))
	backends.InParallel(maps.All(hosts), parallel, func(ref place.Ref, h *hostRow) {
		if managers[ref].Value == "" {
			return
		}
		res, err := methods.RetrieveVendorDeviceGroupInfo(ctx, conn.VIM(), &types.RetrieveVendorDeviceGroupInfo{This: managers[ref]})
		if err != nil {
			gaps <- backends.Gap{Target: backends.HostRef(rd.index.Name(ref)), What: "vendor device groups", Why: wire.Text(err)}
			return
		}
		for _, group := range res.Returnval {
			h.host.DeviceGroups = append(h.host.DeviceGroups, group.DeviceGroupName)
			if profiles, only := vgpusOf(group); only {
				if h.host.GroupVGPUs == nil {
					h.host.GroupVGPUs = map[string][]string{}
				}
				h.host.GroupVGPUs[group.DeviceGroupName] = profiles
			}
		}
		slices.Sort(h.host.DeviceGroups)
	})
	return append(list, sorted(gaps)...)
}

// vgpusOf returns the profiles of the vGPUs of a group, and whether it holds nothing else.
func vgpusOf(group types.VirtualMachineVendorDeviceGroupInfo) (profiles []string, only bool) {
	for _, c := range group.ComponentDeviceInfo {
		p, is := c.Device.(*types.VirtualPCIPassthrough)
		if !is {
			return nil, false
		}
		b, is := p.Backing.(*types.VirtualPCIPassthroughVmiopBackingInfo)
		if !is {
			return nil, false
		}
		profiles = append(profiles, b.Vgpu)
	}
	return profiles, len(profiles) > 0
}

// groupKey names a vendor device group whose name is not known.
func groupKey(key int32) string { return fmt.Sprintf("group %d", key) }

// groupsOfVMs reads the names of the vendor device groups of VMs whose devices are in one (VirtualMachineConfigInfo.deviceGroups,
// since vSphere API 8.0.0.1: older servers have no such devices).
func (rd *reading) groupsOfVMs(ctx context.Context, conn *wire.Conn) []backends.Gap {
	rows := map[place.Ref]*vmRow{}
	spec := types.PropertyFilterSpec{PropSet: []types.PropertySpec{{Type: "VirtualMachine", PathSet: []string{"config.deviceGroups"}}}}
	for _, r := range rd.vms {
		if slices.ContainsFunc(r.vm.Devices, func(d backends.AssignedDevice) bool { return d.Group != "" }) {
			rows[r.ref] = r
			spec.ObjectSet = append(spec.ObjectSet, types.ObjectSpec{Obj: r.ref})
		}
	}
	if len(rows) == 0 {
		return nil
	}
	if _, err := conn.Retrieve(ctx, []types.PropertyFilterSpec{spec}, func(o wire.Object) {
		names := map[string]string{}
		for _, g := range wire.Value[types.VirtualMachineVirtualDeviceGroups](o, "config.deviceGroups").DeviceGroup {
			if v, is := g.(*types.VirtualMachineVirtualDeviceGroupsVendorDeviceGroup); is {
				names[groupKey(v.GroupInstanceKey)] = v.DeviceGroupName
			}
		}
		vm := &rows[o.Ref].vm
		for i, d := range vm.Devices {
			if name := names[d.Group]; name != "" {
				vm.Devices[i].Group = name
			}
		}
	}); err != nil {
		return []backends.Gap{{Target: backends.Ref{Type: backends.TypeVCenter}, What: "vendor device groups of VMs", Why: wire.Text(err)}}
	}
	return nil
}

// old reports whether an error means a release before groups were added to HostAssignableHardwareManager.
func old(version string) bool {
	return strings.HasPrefix(version, "6.") || strings.HasPrefix(version, "7.")
}
