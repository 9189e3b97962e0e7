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

// eachVerbs asks about the RDMA device behind every adapter. Where the guest has none, row id says so and the others
// keep still.
func eachVerbs(id string, ask func(f *Facts, t backends.Ref, d *backends.VerbsDevice) Answer) func(*Facts) []Answer {
	return eachPort(func(f *Facts, g *backends.Guest, p port) Answer {
		t, d := backends.GuestRef(g.VM), p.verbs(g)
		switch {
		case d != nil:
			return ask(f, t, d)
		case id == "GST-PORT-010":
			return fail(t, "no RDMA device belongs to the adapter %s", orNone(p.mac))
		}
		return Answer{}
	})
}

// eachNetdev does the same for the network interface; where the answers name no address there is nothing to hold it
// against.
func eachNetdev(id string, ask func(f *Facts, t backends.Ref, i *backends.Interface, want string) Answer) func(*Facts) []Answer {
	return eachPort(func(f *Facts, g *backends.Guest, p port) Answer {
		t, i := backends.GuestRef(g.VM), p.netdev(g)
		switch {
		case p.cidr == "":
			return Answer{}
		case i != nil:
			return ask(f, t, i, p.cidr)
		case id == "GST-IP-014":
			return fail(t, "no interface belongs to the adapter %s, wanted %s", orNone(p.mac), p.cidr)
		}
		return Answer{}
	})
}

// eachPort asks about every RDMA adapter of every guest, and tells a guest that could not be asked once.
func eachPort(ask func(f *Facts, g *backends.Guest, p port) Answer) func(*Facts) []Answer {
	return func(f *Facts) []Answer {
		var out []Answer
		for _, a := range eachGuest(func(*Facts, *backends.Guest) Answer { return Answer{Status: Pass} })(f) {
			if a.Status != Pass {
				out = append(out, a)
			}
		}
		found, _ := f.vms()
		for _, v := range found {
			g := f.guest(v.Name)
			if g == nil || g.Error != "" {
				continue
			}
			for _, p := range f.ports(v) {
				out = said(out, ask(f, g, p))
			}
		}
		return out
	}
}

// sameGuests warns where a guest differs from the most, and fails where it has nothing.
func sameGuests(what string, of func(g *backends.Guest) string) func(*Facts) []Answer {
	return func(f *Facts) []Answer {
		count, most, total := map[string]int{}, "", 0
		found, _ := f.vms()
		for _, v := range found {
			if g := f.guest(v.Name); g != nil && g.Error == "" && of(g) != "" {
				count[of(g)]++
				total++
			}
		}
		for v, n := range count {
			if n > count[most] || n == count[most] && v < most {
				most = v
			}
		}
		return eachGuest(func(_ *Facts, g *backends.Guest) Answer {
			if of(g) == "" {
				return fail(backends.GuestRef(g.VM), "%s is not there", what)
			}
			return warnIf(of(g) != most, backends.GuestRef(g.VM), "%s %s, %s on %d of %d", what, of(g), most, count[most], total)
		})(f)
	}
}
