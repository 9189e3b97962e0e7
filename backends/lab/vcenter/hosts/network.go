package hosts

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter/frame"
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
