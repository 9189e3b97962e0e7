package nic

import (
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
)

// RDMAOff reports whether a port has no RDMA device because RDMA is not enabled in its driver. It is false if the driver's
// parameters were not read.
func RDMAOff(h *backends.Host, n *backends.NIC) bool {
	f := Of(n.Driver)
	if n.RDMADevice != "" || f == nil || h.System == nil {
		return false
	}
	on, m := f.RoCE().Enable, h.System.Modules[f.Driver()]
	if on == "" || !m.Known() || !slices.Contains(m.Value.Known, on) {
		return false
	}
	list, at := strings.Split(Param(h.System, f.Driver(), on), ","), slices.Index(Addresses(h, f), n.PCI)
	return at >= len(list) || Number(list[at]) != 1
}

// MayBeOff reports whether a host has a port without an RDMA device for which only the driver's parameters show why.
func MayBeOff(h *backends.Host) bool {
	return slices.ContainsFunc(h.NICs, func(n backends.NIC) bool {
		f := Of(n.Driver)
		return n.RDMADevice == "" && f != nil && f.RoCE().Enable != ""
	})
}

// WithRDMA returns the parameters of the ports' driver with RDMA enabled for these ports: one number for each of its ports in PCI
// order. Other ports keep their entry, or if the list has none, their current state.
func WithRDMA(h *backends.Host, on ...*backends.NIC) map[string]string {
	f := Of(on[0].Driver)
	params := h.System.Module(f.Driver()).Params
	now := strings.Split(Param(h.System, f.Driver(), f.RoCE().Enable), ",")
	var list []string
	for i, p := range Ports(h, f) {
		switch {
		case slices.ContainsFunc(on, func(n *backends.NIC) bool { return n.PCI == p.PCI }), p.RDMADevice != "":
			list = append(list, "1")
		case i < len(now) && now[i] != "":
			list = append(list, now[i])
		default:
			list = append(list, "0")
		}
	}
	return with(params, map[string]string{f.RoCE().Enable: strings.Join(list, ",")})
}
