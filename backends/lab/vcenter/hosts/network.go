package hosts

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter/frame"
	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter/model"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

type network struct{ base }

// QueryNetworkHint returns the LLDP data of the physical switch, for NICs with link up.
func (m network) QueryNetworkHint(_ *simulator.Context, req *types.QueryNetworkHint) soap.HasFault {
	host, err := m.name(req.This)
	if err != nil {
		return frame.Answer(nil, err)
	}
	var hints []types.PhysicalNicHintInfo
	m.f.World.View(func(s *world.State) {
		h := s.Host(host)
		for _, device := range req.Device {
			if h.PNIC(device) == nil {
				err = frame.Refuse(&types.NotFound{})
			}
		}
		for n, p := range h.PNICs {
			if len(req.Device) > 0 && !slices.Contains(req.Device, p.Device) {
				continue
			}
			hint := types.PhysicalNicHintInfo{Device: p.Device}
			if p.LinkUp && !p.Deaf {
				hint.LldpInfo = &types.LinkLayerDiscoveryProtocolInfo{
					ChassisId: "04:3f:72:d1:00:00", PortId: fmt.Sprintf("Eth1/%d", 4*h.Index+n+1), TimeToLive: 120,
					Parameter: []types.KeyAnyValue{{Key: "System Name", Value: p.Cable.Switch()}, {Key: "MTU", Value: strconv.Itoa(p.Cable.Largest())}, {Key: "Vlan ID", Value: "0"}},
				}
			}
			hints = append(hints, hint)
		}
	})
	return frame.Answer(types.QueryNetworkHintResponse{Returnval: hints}, err)
}

// UpdateVirtualNic changes the MTU of a vmkernel adapter.
func (m network) UpdateVirtualNic(_ *simulator.Context, req *types.UpdateVirtualNic) soap.HasFault {
	host, err := m.name(req.This)
	if err != nil {
		return frame.Answer(nil, err)
	}
	err = m.f.World.Update(func(s *world.State) ([]world.Event, error) {
		v := s.Host(host).VMK(req.Device)
		if v == nil {
			return nil, frame.Refuse(&types.NotFound{})
		}
		if mtu := int(req.Nic.Mtu); mtu != 0 {
			if mtu < model.MinMTU || mtu > model.MaxMTU {
				return nil, frame.BadArgument("nic.mtu")
			}
			v.MTU = mtu
		}
		return []world.Event{{What: world.HostNetwork, Host: host, Detail: req.Device}}, nil
	})
	return frame.Answer(types.UpdateVirtualNicResponse{}, err)
}

type nics struct{ base }

// QueryNetConfig returns the vmkernel adapters that are enabled for a type of traffic.
func (m nics) QueryNetConfig(_ *simulator.Context, req *types.QueryNetConfig) soap.HasFault {
	if _, err := m.name(req.This); err != nil {
		return frame.Answer(nil, err)
	}
	err := error(frame.BadArgument("nicType"))
	var found *types.VirtualNicManagerNetConfig
	m.f.Read(req.This, func(obj mo.Reference) {
		for _, c := range obj.(*mo.HostVirtualNicManager).Info.NetConfig {
			if c.NicType == req.NicType {
				found, err = &c, nil
			}
		}
	})
	return frame.Answer(types.QueryNetConfigResponse{Returnval: found}, err)
}

// SelectVnicForNicType enables a vmkernel adapter for a type of traffic.
func (m nics) SelectVnicForNicType(_ *simulator.Context, req *types.SelectVnicForNicType) soap.HasFault {
	return frame.Answer(types.SelectVnicForNicTypeResponse{}, m.role(req.This, req.NicType, req.Device, true))
}

// DeselectVnicForNicType disables a vmkernel adapter for a type of traffic.
func (m nics) DeselectVnicForNicType(_ *simulator.Context, req *types.DeselectVnicForNicType) soap.HasFault {
	return frame.Answer(types.DeselectVnicForNicTypeResponse{}, m.role(req.This, req.NicType, req.Device, false))
}

func (m nics) role(ref types.ManagedObjectReference, kind, device string, on bool) error {
	host, err := m.name(ref)
	if err != nil {
		return err
	}
	return m.f.World.Update(func(s *world.State) ([]world.Event, error) {
		v := s.Host(host).VMK(device)
		if v == nil {
			return nil, frame.BadArgument("device")
		}
		v.Roles = slices.DeleteFunc(slices.Clone(v.Roles), func(r string) bool { return strings.EqualFold(r, kind) })
		if on {
			v.Roles = append(v.Roles, kind)
		}
		return []world.Event{{What: world.HostNetwork, Host: host, Detail: device + " " + kind}}, nil
	})
}
