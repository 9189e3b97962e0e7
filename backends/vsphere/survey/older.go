package survey

import (
	"context"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/place"
)

// AskRDMA reads the RDMA devices of one host, by name. NIC is the paired pNIC.
type AskRDMA func(ctx context.Context, host string) ([]backends.RDMADevice, error)

// older reads the RDMA devices of connected hosts before ESXi 7.0, whose network info lacks them (vSphere Web Services API,
// HostRdmaDevice: since vSphere API 7.0), whatever the version of vCenter.
func (rd *reading) older(ctx context.Context, ask func(*place.Index) AskRDMA) []backends.Gap {
	var rows []*hostRow
	for _, h := range rd.hosts {
		if strings.HasPrefix(h.host.Version, "6.") && h.host.State == "connected" && len(h.host.RDMA) == 0 {
			rows = append(rows, h)
		}
	}
	if len(rows) == 0 {
		return nil
	}
	devices := ask(rd.index)
	errs := make([]error, len(rows))
	backends.InParallel(slices.All(rows), parallel, func(i int, h *hostRow) {
		var found []backends.RDMADevice
		found, errs[i] = devices(ctx, rd.index.Name(h.ref))
		h.pair(found)
	})
	var gaps []backends.Gap
	for i, err := range errs {
		if err != nil {
			gaps = append(gaps, backends.Gap{Target: backends.HostRef(rd.index.Name(rows[i].ref)), What: "RDMA devices",
				Why: "ESXi " + rows[i].host.Version + " does not report them through the API, and esxcli rdma device list failed: " + err.Error()})
		}
	}
	return gaps
}

// pair stores RDMA devices in the host and in their paired pNICs.
func (r *hostRow) pair(devices []backends.RDMADevice) {
	for _, d := range devices {
		if i := slices.IndexFunc(r.host.NICs, func(n backends.NIC) bool { return n.Device == d.NIC }); i >= 0 {
			n := &r.host.NICs[i]
			n.RDMADevice, n.RDMAState = d.Name, d.State
			n.RoCEv1, n.RoCEv2, n.IWARP = d.RoCEv1, d.RoCEv2, d.IWARP
		}
		r.host.RDMA = append(r.host.RDMA, d)
	}
}
