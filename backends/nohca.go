package backends

import (
	"slices"
	"strings"
)

// NoHCA reports whether a host has no RDMA card that matches the wish, and the wish allows that: no pNIC has an RDMA device or a
// driver that is known to support RoCE, and no port is hidden. Cards that the host itself uses do not count. A card that should
// support RDMA but does not is a fault, never a host without an HCA. VMware allows such hosts: "For virtual machines on the same
// ESXi hosts or virtual machines using the TCP-based fallback, the HCA is not required" (vSphere Networking 7.0, PVRDMA Support).
func NoHCA(h *Host, w PNICWish) bool {
	if !w.AllowNoHCA || w.Purpose != SharedNIC || len(h.Hidden) > 0 {
		return false
	}
	return !slices.ContainsFunc(h.NICs, func(n NIC) bool {
		rdma := n.RDMADevice != "" || w.Drivers != nil && (w.Drivers.RoCE(n.Driver) || w.Drivers.RDMAOff(h, &n))
		return rdma && n.Usage(w) == ""
	})
}

// PlainUplinks returns the ordinary pNICs that a host without an HCA could use as uplink of the wish's switch: its current
// uplink, else the pNIC that the wish names, else all free pNICs with link.
func PlainUplinks(h *Host, w PNICWish) []*NIC {
	var out []*NIC
	for i := range h.NICs {
		n := &h.NICs[i]
		switch {
		case w.own(n):
			return []*NIC{n}
		case n.SpeedMbps == 0, n.DPU != "", n.Usage(w) != "", w.MAC != "" && !strings.EqualFold(n.MAC, w.MAC):
		default:
			out = append(out, n)
		}
	}
	if i := slices.IndexFunc(out, func(n *NIC) bool { return w.Device != "" && n.Device == w.Device }); i >= 0 {
		return out[i : i+1]
	}
	return out
}
