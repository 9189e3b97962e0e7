package checks

import (
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// A port is one RDMA adapter as a guest sees it. mac is "" where the card itself is passed through; cidr is "" where the
// answers name no address.
type port struct{ mac, cidr string }

// ports are the RDMA adapters of a VM, those of the answers first. A VM that lacks one has its own row in vCenter
// (VM-NIC-DVS-019, VM-SRIOV-PF-021), and guests are not blamed for it.
func (f *Facts) ports(v *backends.VM) []port {
	var out []port
	for _, n := range f.networks(v.Name) {
		if a := rdmaAdapter(v, n.PortGroup); a != nil {
			out = append(out, port{strings.ToLower(a.MAC), n.IP.String()})
		} else if f.Answers.Mode == answers.GPUDirect && len(v.Passthrough) > 0 {
			out = append(out, port{"", n.IP.String()})
		}
	}
	if len(out) > 0 {
		return out
	}
	if a := f.adapter(v, "pvrdma", "sriov"); a != nil {
		return []port{{mac: strings.ToLower(a.MAC)}}
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

// rdmaMAC is the MAC of a VM's first RDMA adapter, "" when it has none.
func (f *Facts) rdmaMAC(vm string) string {
	if v := f.Inventory.VM(vm); v != nil {
		if all := f.ports(v); len(all) > 0 {
			return all[0].mac
		}
	}
	return ""
}

// netdev and verbs find what belongs to a port: by its MAC, else by its address, else the one device of mlx5.
func (p port) netdev(g *backends.Guest) *backends.Interface {
	if p.mac != "" {
		return g.Interface(p.mac)
	}
	for i := range g.Interfaces {
		if slices.Contains(g.Interfaces[i].Addresses, p.cidr) {
			return &g.Interfaces[i]
		}
	}
	if d := p.verbs(g); d != nil {
		return g.Interface(d.MAC)
	}
	return nil
}

func (p port) verbs(g *backends.Guest) *backends.VerbsDevice {
	if p.mac != "" {
		return g.Verbs(p.mac)
	}
	for i := range g.Interfaces {
		if slices.Contains(g.Interfaces[i].Addresses, p.cidr) {
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

// adapter is the RDMA adapter of a VM on the answers' port groups; nil when there is none.
func (f *Facts) adapter(v *backends.VM, types ...string) *backends.Adapter {
	for i := range v.Adapters {
		if slices.Contains(types, v.Adapters[i].Type) {
			return &v.Adapters[i]
		}
	}
	return nil
}
