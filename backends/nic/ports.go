package nic

import (
	"cmp"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
)

// Ports returns the pNICs whose functions a family's driver has claimed, in the order of its list parameters: ascending
// segment:bus:device.function (Broadcom KB 309346), never that of vmnic numbers.
func Ports(h *backends.Host, f Family) []*backends.NIC {
	var list []*backends.NIC
	for i := range h.NICs {
		if h.NICs[i].Driver == f.Driver() {
			list = append(list, &h.NICs[i])
		}
	}
	slices.SortFunc(list, func(a, b *backends.NIC) int { return cmp.Compare(strings.ToLower(a.PCI), strings.ToLower(b.PCI)) })
	return list
}

// Addresses are the addresses of the ports, in the same order.
func Addresses(h *backends.Host, f Family) []string {
	var out []string
	for _, n := range Ports(h, f) {
		out = append(out, n.PCI)
	}
	return out
}

// Card returns the ports of the card that a port belongs to, in the same order.
func Card(h *backends.Host, f Family, pci string) []*backends.NIC {
	return slices.DeleteFunc(Ports(h, f), func(n *backends.NIC) bool { return device(n.PCI) != device(pci) })
}

// CardAddress is the address by which a card is known: that of its function 0.
func CardAddress(pci string) string { return device(pci) + ".0" }

// device is a PCI address without its function.
func device(pci string) string {
	if i := strings.LastIndexByte(pci, '.'); i >= 0 {
		pci = pci[:i]
	}
	return strings.ToLower(pci)
}

// Others returns what the ports beside the chosen ones are and carry: "vmnic0 (management)". The driver's parameters for
// PFC, trust and ECN act on them too.
func Others(h *backends.Host, f Family, chosen ...*backends.NIC) []string {
	var out []string
	for _, n := range Ports(h, f) {
		if slices.ContainsFunc(chosen, func(c *backends.NIC) bool { return c.Device == n.Device }) {
			continue
		}
		out = append(out, n.Device+" ("+Carries(n)+")")
	}
	return out
}

// Carries says what runs over a port.
func Carries(n *backends.NIC) string {
	switch {
	case len(n.Roles) > 0:
		return strings.Join(n.Roles, ", ")
	case n.Switch != "":
		return "uplink of " + n.Switch
	case n.SpeedMbps == 0:
		return "no link"
	}
	return "nothing"
}

// Pausing returns the other ports whose traffic may rely on global pause, which PFC puts out of force: storage of vSAN and
// NVMe (Mellanox DOC-2581).
func Pausing(h *backends.Host, f Family, chosen ...*backends.NIC) []string {
	var out []string
	for _, n := range Ports(h, f) {
		if slices.ContainsFunc(chosen, func(c *backends.NIC) bool { return c.Device == n.Device }) {
			continue
		}
		for _, role := range n.Roles {
			if r := strings.ToLower(role); strings.HasPrefix(r, "vsan") || strings.HasPrefix(r, "nvme") || strings.Contains(r, "iser") {
				out = append(out, n.Device+" ("+role+")")
				break
			}
		}
	}
	return out
}
