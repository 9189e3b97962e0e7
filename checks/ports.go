package checks

import (
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// A Port is an RDMA adapter as seen in a guest. MAC is "" if the card itself is passed through; CIDR is "" if the answers name no
// address, backends.DHCP for an address from DHCP.
type Port struct {
	MAC, CIDR string
	Shared    bool // another adapter of the VM, on this rail or another, is in its subnet
}

// Ports returns the RDMA adapters of a VM, those of the answers first. A VM that lacks one has its own row in vCenter
// (VM-NIC-DVS-019, VM-SRIOV-PF-021), so that its guest is not blamed.
func (f *Facts) Ports(v *backends.VM) []Port {
	var out []Port
	var all []answers.Adapter // of all rails
	for _, rail := range f.Rails() {
		all = append(all, rail.Networks(v.Name)...)
	}
	shared := func(n answers.Adapter) bool { return answers.Table(all, n) != 0 }
	for _, n := range f.Networks(v.Name) {
		if a := rdmaAdapter(v, n.PortGroup); a != nil {
			port := Port{MAC: strings.ToLower(a.MAC), Shared: shared(n)}
			if n.IP.Given() {
				port.CIDR = n.IP.String()
			}
			out = append(out, port)
		} else if f.Answers.Mode == answers.GPUDirect && len(v.Passthrough) > 0 {
			p := Port{CIDR: n.IP.String(), Shared: shared(n)}
			if at, _ := backends.OfHCA(n.PortGroup); at != "" { // one of several
				if g := f.Inventory.Guest(v.Name); g != nil && g.CardAt(v, n.PortGroup) != nil {
					p.MAC = g.CardAt(v, n.PortGroup).MAC
				}
			}
			out = append(out, p)
		}
	}
	if len(out) > 0 {
		return out
	}
	if a := f.Adapter(v, "pvrdma", "sriov"); a != nil {
		return []Port{{MAC: strings.ToLower(a.MAC)}}
	}
	return nil
}

func rdmaAdapter(v *backends.VM, group string) *backends.Adapter {
	for i := range v.Adapters {
		if a := &v.Adapters[i]; (a.Type == "pvrdma" || a.Type == "sriov") && a.PortGroup == group {
			return a
		}
	}
	return nil
}

// RDMAMAC returns the MAC of a VM's first RDMA adapter, "" if it has none.
func (f *Facts) RDMAMAC(vm string) string {
	if v := f.Inventory.VM(vm); v != nil {
		if all := f.Ports(v); len(all) > 0 {
			return all[0].MAC
		}
	}
	return ""
}

// Netdev returns the interface of a port: by its MAC, else by its address, else that of the only mlx5 device; nil if there is
// none.
func (p Port) Netdev(g *backends.Guest) *backends.Interface {
	if p.MAC != "" {
		return g.Interface(p.MAC)
	}
	for i := range g.Interfaces {
		if slices.Contains(g.Interfaces[i].Addresses, p.CIDR) {
			return &g.Interfaces[i]
		}
	}
	if d := p.Verbs(g); d != nil {
		return g.Interface(d.MAC)
	}
	return nil
}

// Verbs returns the RDMA device of a port, found in the same ways.
func (p Port) Verbs(g *backends.Guest) *backends.VerbsDevice {
	if p.MAC != "" {
		return g.Verbs(p.MAC)
	}
	for i := range g.Interfaces {
		if slices.Contains(g.Interfaces[i].Addresses, p.CIDR) {
			return g.Verbs(g.Interfaces[i].MAC)
		}
	}
	for i := range g.RDMA {
		if strings.HasPrefix(g.RDMA[i].Driver, "mlx5") {
			return &g.RDMA[i]
		}
	}
	return nil
}

// Adapter returns the RDMA adapter of a VM on the answers' port groups; nil if there is none.
func (f *Facts) Adapter(v *backends.VM, types ...string) *backends.Adapter {
	for i := range v.Adapters {
		if slices.Contains(types, v.Adapters[i].Type) {
			return &v.Adapters[i]
		}
	}
	return nil
}
