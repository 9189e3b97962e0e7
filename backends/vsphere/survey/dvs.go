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

type switchRow struct {
	ref     place.Ref
	dvs     backends.Switch
	members map[place.Ref]backends.Member

	mismatches []mismatch
}

type groupRow struct {
	ref, dvs place.Ref
	group    backends.PortGroup
}

func switchOf(o wire.Object) *switchRow {
	r := &switchRow{ref: o.Ref, members: map[place.Ref]backends.Member{}}
	r.dvs = backends.Switch{UUID: text(o, "uuid"), Uplinks: []string{}, Members: map[string]backends.Member{}}
	config, _ := o.Props["config"].(types.VMwareDVSConfigInfo)
	if base, ok := o.Props["config"].(types.DVSConfigInfo); ok {
		config.DVSConfigInfo = base
	}
	r.dvs.Version, r.dvs.MTU = config.ProductInfo.Version, int(config.MaxMtu)
	r.dvs.NIOC, r.dvs.Note = config.NetworkResourceManagementEnabled, config.Description
	r.dvs.Uplinks = append(r.dvs.Uplinks, UplinkNames(config.UplinkPortPolicy)...)
	r.dvs.Discovery = Discovery(config.LinkDiscoveryProtocolConfig)
	r.dvs.LAGs, r.dvs.OffloadID = len(config.LacpGroupConfig), config.NetworkOffloadSpecId
	if strings.EqualFold(r.dvs.OffloadID, "None") {
		r.dvs.OffloadID = ""
	}
	for _, m := range config.Host {
		if m.Config.Host == nil {
			continue
		}
		r.members[*m.Config.Host] = backends.Member{PNICs: BackingPNICs(m.Config.Backing), Status: m.Status, ENS: yes(m.Config.EnsEnabled),
			Interrupt: m.Config.EnsInterruptEnabled}
		r.dvs.NSX = r.dvs.NSX || yes(m.Config.NsxSwitch)
	}
	for _, m := range wire.Value[types.ArrayOfHostMemberRuntimeInfo](o, "runtime.hostMemberRuntime").HostMemberRuntimeInfo {
		if member, ok := r.members[m.Host]; ok && m.Status != "" {
			member.Status = m.Status
			r.members[m.Host] = member
		}
		for _, what := range mismatchesOf(m.HealthCheckResult) {
			r.mismatches = append(r.mismatches, mismatch{m.Host, what})
		}
	}
	r.dvs.Health = &backends.SwitchHealth{Enabled: checksHealth(config.HealthCheckConfig)}
	r.dvs.MTUMax = 9000 // vSphere Networking 6.7, p. 162; since 7.0.2 the switch reports it
	if f, ok := o.Props["capability.featuresSupported"].(types.VMwareDVSFeatureCapability); ok && f.MtuCapability != nil {
		r.dvs.MTUMax = int(f.MtuCapability.MaxMtuSupported)
	}
	return r
}

// UplinkNames returns the uplink port names of a switch, in order.
func UplinkNames(p types.BaseDVSUplinkPortPolicy) []string {
	if names, ok := p.(*types.DVSNameArrayUplinkPortPolicy); ok {
		return names.UplinkPortName
	}
	return nil
}

// Discovery returns "lldp listen", "cdp both", or "none".
func Discovery(c *types.LinkDiscoveryProtocolConfig) string {
	if c == nil || c.Operation == "" || c.Operation == "none" {
		return "none"
	}
	return c.Protocol + " " + c.Operation
}

// BackingPNICs returns the pNICs of a host on a switch, in uplink order.
func BackingPNICs(b types.BaseDistributedVirtualSwitchHostMemberBacking) []string {
	out := []string{}
	if p, ok := b.(*types.DistributedVirtualSwitchHostMemberPnicBacking); ok {
		for _, spec := range p.PnicSpec {
			out = append(out, spec.PnicDevice)
		}
	}
	return out
}

func groupOf(o wire.Object) *groupRow {
	c := wire.Value[types.DVPortgroupConfigInfo](o, "config")
	r := &groupRow{ref: o.Ref}
	if c.DistributedVirtualSwitch != nil {
		r.dvs = *c.DistributedVirtualSwitch
	}
	r.group = backends.PortGroup{Key: text(o, "key"), Uplink: yes(c.Uplink), Binding: c.Type, Ports: int(c.NumPorts), Active: []string{},
		VLAN: "0"}
	if r.group.Key == "" {
		r.group.Key = o.Ref.Value
	}
	if port, ok := c.DefaultPortConfig.(*types.VMwareDVSPortSetting); ok {
		r.group.VLAN = VLAN(port.Vlan)
		r.group.Security = securityOf(port)
		if t := port.UplinkTeamingPolicy; t != nil && t.UplinkPortOrder != nil {
			r.group.Active = append(r.group.Active, t.UplinkPortOrder.ActiveUplinkPort...)
			r.group.Standby = t.UplinkPortOrder.StandbyUplinkPort
		}
	}
	return r
}

// VLAN returns "0" for untagged, an id, "0-4094" for a trunk, or "pvlan 5".
func VLAN(spec types.BaseVmwareDistributedVirtualSwitchVlanSpec) string {
	switch v := spec.(type) {
	case *types.VmwareDistributedVirtualSwitchVlanIdSpec:
		return fmt.Sprint(v.VlanId)
	case *types.VmwareDistributedVirtualSwitchPvlanSpec:
		return fmt.Sprintf("pvlan %d", v.PvlanId)
	case *types.VmwareDistributedVirtualSwitchTrunkVlanSpec:
		return ranges(v.VlanId)
	}
	return "0"
}

func ranges(list []types.NumericRange) string {
	var parts []string
	for _, r := range list {
		if r.Start == r.End {
			parts = append(parts, fmt.Sprint(r.Start))
		} else {
			parts = append(parts, fmt.Sprintf("%d-%d", r.Start, r.End))
		}
	}
	return strings.Join(parts, ",")
}

// vendorGroups reads the vendor device groups of hosts that offer vGPUs (HostAssignableHardwareManager,
// RetrieveVendorDeviceGroupInfo, since vSphere API 8.0.0.1), and the names of those that VMs have. It costs one call, one more for
// each such host, and one for VMs with groups.
func (rd *reading) vendorGroups(ctx context.Context, conn *wire.Conn) []backends.Gap {
	list := rd.groupsOfVMs(ctx, conn)
	hosts := map[place.Ref]*hostRow{}
	spec := types.PropertyFilterSpec{
		PropSet: []types.PropertySpec{{Type: "HostSystem", PathSet: []string{"configManager.assignableHardwareManager"}}}}
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
		res, err := methods.RetrieveVendorDeviceGroupInfo(wire.On(ctx, rd.index.Name(ref)), conn.VIM(),
			&types.RetrieveVendorDeviceGroupInfo{This: managers[ref]})
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
