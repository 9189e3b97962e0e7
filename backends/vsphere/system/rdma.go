package system

import (
	"context"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
)

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
		d := backends.RDMADevice{Name: field(r, "Name"), Driver: field(r, "Driver"), State: strings.ToLower(field(r, "State")), NIC: field(r, "Paired Uplink")}
		for _, p := range protocols {
			if field(p, "Device") == d.Name {
				d.RoCEv1, d.RoCEv2, d.IWARP = field(p, "RoCE v1") == "true", field(p, "RoCE v2") == "true", field(p, "iWARP") == "true"
			}
		}
		out = append(out, d)
	}
	return out, nil
}
