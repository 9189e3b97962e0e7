package entry

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/ui/plain"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// An Offer is one possible answer in a list, with an explanation.
type Offer struct{ Value, About string }

// Values returns the answers of a list of offers.
func Values(offers []Offer) []string {
	return plain.Mapped(offers, func(o Offer) string { return o.Value })
}

// Switches are the distributed switches in the datacenter of the chosen hosts.
func Switches(a *answers.Answers, inv *backends.Inventory) []Offer {
	var out []Offer
	for _, s := range inv.Switches {
		if backends.Within(a.Hosts.Datacenter, s.Datacenter, s.Path) {
			about := fmt.Sprintf("version %s, MTU %d, %s, %s", s.Version, s.MTU, plain.Counted(len(s.Members), "host"),
				plain.Counted(len(s.VMs), "VM"))
			if s.NSX {
				about += ", prepared for NSX"
			}
			out = append(out, Offer{s.Name, about})
		}
	}
	return sorted(out)
}

// PortGroups are those of a distributed switch that VMs can be connected to.
func PortGroups(name string, inv *backends.Inventory) []Offer {
	var out []Offer
	for _, g := range inv.PortGroups {
		if g.Switch == name && !g.Uplink {
			out = append(out, Offer{g.Name, "VLAN " + g.VLAN + ", " + plain.Counted(g.Ports, "port")})
		}
	}
	return sorted(out)
}

// VMKNics are the vmknics that every chosen host has, with the services and the network of the first host.
func VMKNics(a *answers.Answers, inv *backends.Inventory) []Offer {
	var out []Offer
	first := true
	member := Members(a)
	for _, h := range inv.Hosts {
		switch {
		case !member[h.Name]:
		case first:
			first = false
			for _, k := range h.VMKs {
				out = append(out, Offer{k.Device, aboutVMKNic(k)})
			}
		default:
			out = slices.DeleteFunc(out, func(o Offer) bool { return h.VMK(o.Value) == nil })
		}
	}
	return sorted(out)
}

func aboutVMKNic(k backends.VMKernelNIC) string {
	words := []string{cmp.Or(strings.Join(k.Roles, ", "), "no service")}
	if ip, err := netip.ParseAddr(k.IP); err == nil && k.PrefixLen > 0 {
		words = append(words, "network "+netip.PrefixFrom(ip, k.PrefixLen).Masked().String())
	}
	if k.PortGroup != "" {
		words = append(words, k.PortGroup)
	}
	return strings.Join(words, ", ")
}

func sorted(offers []Offer) []Offer {
	slices.SortFunc(offers, func(a, b Offer) int { return plain.Natural(a.Value, b.Value) })
	return offers
}
