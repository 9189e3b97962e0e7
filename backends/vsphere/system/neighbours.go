package system

import (
	"context"
	"fmt"
	"strings"

	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/wire"
)

// Neighbours returns the switch port connected to each pNIC of a host, by device name, as announced by the physical switch over
// LLDP or CDP. A pNIC without an announcement has no entry; ESXi listens only on uplinks of a switch that is configured to. It
// costs one call once the host's managers are known.
func (s *System) Neighbours(ctx context.Context, host string) (map[string]backends.Neighbour, error) {
	const what = "ask for the switch ports of the pNICs"
	_, network, err := s.places.Part(ctx, backends.HostRef(host), func(m types.HostConfigManager) *types.ManagedObjectReference {
		return m.NetworkSystem
	})
	if err != nil {
		return nil, wire.Explain(err, host, what)
	}
	res, err := methods.QueryNetworkHint(ctx, s.conn.VIM(), &types.QueryNetworkHint{This: network})
	if err != nil {
		return nil, wire.Explain(err, host, what)
	}
	out := map[string]backends.Neighbour{}
	for _, hint := range res.Returnval {
		if n, ok := neighbour(hint); ok {
			out[hint.Device] = n
		}
	}
	return out, nil
}

// neighbour prefers LLDP, because switches of makers other than Cisco use it.
func neighbour(hint types.PhysicalNicHintInfo) (backends.Neighbour, bool) {
	if l := hint.LldpInfo; l != nil && l.PortId != "" {
		n := backends.Neighbour{Switch: l.ChassisId, Port: l.PortId}
		for _, p := range l.Parameter {
			if name := fmt.Sprint(p.Value); p.Key == "System Name" && name != "" {
				n.Switch = name
			}
		}
		return n, true
	}
	if p := hint.ConnectedSwitchPort; p != nil && p.PortId != "" {
		n := backends.Neighbour{Switch: p.SystemName, Port: p.PortId}
		if n.Switch == "" {
			n.Switch = p.DevId
		}
		return n, true
	}
	return backends.Neighbour{}, false
}

// RDMADevices reads the RDMA devices of a host with esxcli, in two calls. It is for hosts before ESXi 7.0, whose API does not
// have them.
func (s *System) RDMADevices(ctx context.Context, host string) ([]backends.RDMADevice, error) {
	rows, err := s.cli.Ask(ctx, host, "rdma device list")
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	protocols, err := s.cli.Ask(ctx, host, "rdma device protocol list")
	if err != nil {
		return nil, err
	}
	var out []backends.RDMADevice
	for _, r := range rows {
		d := backends.RDMADevice{Name: field(r, "Name"), Driver: field(r, "Driver"), State: strings.ToLower(field(r, "State")),
			NIC: field(r, "Paired Uplink")}
		for _, p := range protocols {
			if field(p, "Device") == d.Name {
				d.RoCEv1, d.RoCEv2, d.IWARP = field(p, "RoCE v1") == "true", field(p, "RoCE v2") == "true", field(p, "iWARP") == "true"
			}
		}
		out = append(out, d)
	}
	return out, nil
}
