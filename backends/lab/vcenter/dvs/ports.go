package dvs

import (
	"slices"
	"strconv"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter/frame"
	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter/model"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

// FetchDVPorts lists ports and what is connected to each.
func (m sw) FetchDVPorts(_ *simulator.Context, req *types.FetchDVPorts) soap.HasFault {
	ports, err := m.ports(req.This, req.Criteria)
	return frame.Answer(types.FetchDVPortsResponse{Returnval: ports}, err)
}

func (m sw) ports(ref types.ManagedObjectReference,
	want *types.DistributedVirtualSwitchPortCriteria) (list []types.DistributedVirtualPort, err error) {
	m.f.World.View(func(s *world.State) {
		d := model.SwitchOf(s, ref)
		if d == nil {
			err = frame.Gone(ref)
			return
		}
		used := connectees(s, d)
		for _, up := range model.UplinkPorts(s, d) {
			g := d.UplinkGroup()
			p := types.DistributedVirtualPort{Key: up.Key, DvsUuid: d.UUID, PortgroupKey: g.Key, ProxyHost: ptr(up.Host),
				Config: types.DVPortConfigInfo{Name: up.Name, ConfigVersion: "0", Setting: model.PortSetting(d, g)},
				State:  &types.DVPortState{RuntimeInfo: &types.DVPortStatus{LinkUp: up.Device != "", Blocked: false}}}
			if up.Device != "" {
				p.Connectee = &types.DistributedVirtualSwitchPortConnectee{ConnectedEntity: ptr(up.Host), NicKey: up.Device, Type: "pnic"}
			}
			if matches(p, g, want) {
				list = append(list, p)
			}
		}
		for _, g := range d.PortGroups {
			if g.Uplink {
				continue
			}
			for i := range g.Ports {
				key := strconv.Itoa(g.First + i)
				p := types.DistributedVirtualPort{Key: key, DvsUuid: d.UUID, PortgroupKey: g.Key, Connectee: used[key],
					Config: types.DVPortConfigInfo{ConfigVersion: "0", Setting: model.PortSetting(d, g)},
					State:  &types.DVPortState{RuntimeInfo: &types.DVPortStatus{LinkUp: used[key] != nil, Blocked: false}}}
				if c := used[key]; c != nil {
					if v := model.VMOf(s, *c.ConnectedEntity); v != nil {
						p.ProxyHost = ptr(model.HostRef(s.Host(v.Host)))
					}
				}
				if matches(p, g, want) {
					list = append(list, p)
				}
			}
		}
	})
	return list, err
}

func connectees(s *world.State, d *world.DVS) map[string]*types.DistributedVirtualSwitchPortConnectee {
	used := map[string]*types.DistributedVirtualSwitchPortConnectee{}
	for _, v := range s.VMs {
		for _, a := range v.Adapters {
			if a.DVS == d.Name {
				used[a.PortKey] = &types.DistributedVirtualSwitchPortConnectee{ConnectedEntity: ptr(model.VMRef(v)), NicKey: strconv.Itoa(int(a.Key)),
					Type: "vmVnic"}
			}
		}
	}
	return used
}

func matches(p types.DistributedVirtualPort, g *world.PortGroup, want *types.DistributedVirtualSwitchPortCriteria) bool {
	if want == nil {
		return true
	}
	if want.Connected != nil && *want.Connected != (p.Connectee != nil) || want.UplinkPort != nil && *want.UplinkPort != g.Uplink {
		return false
	}
	if len(want.PortKey) > 0 && !slices.Contains(want.PortKey, p.Key) {
		return false
	}
	if len(want.Host) > 0 && (p.ProxyHost == nil || !slices.Contains(want.Host, *p.ProxyHost)) {
		return false
	}
	inside := want.Inside == nil || *want.Inside
	return len(want.PortgroupKey) == 0 || slices.Contains(want.PortgroupKey, p.PortgroupKey) == inside
}
