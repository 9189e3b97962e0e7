package recipe

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
)

// apart notes VMs whose RDMA addresses are in different subnets of one port group: that requires a router, and is more often a
// mistake.
func (b *builder) apart() {
	groups := map[string][]netip.Prefix{}
	var order []string
	for _, v := range b.VMs {
		for _, n := range v.Nets {
			subnet := n.IP.Masked()
			if !n.IP.IsValid() || slices.Contains(groups[n.PortGroup], subnet) {
				continue
			}
			if groups[n.PortGroup] == nil {
				order = append(order, n.PortGroup)
			}
			groups[n.PortGroup] = append(groups[n.PortGroup], subnet)
		}
	}
	for _, group := range order {
		if len(groups[group]) < 2 {
			continue
		}
		names := backends.Each(groups[group], netip.Prefix.String)
		b.Note("the RDMA addresses on %s are in %d subnets (%s): a router must forward RoCE between them, or their pairs cannot be measured", group, len(names), strings.Join(names, ", "))
	}
}
