package checks

import (
	"cmp"

	"github.com/rdma-setup/rdma-setup/backends"
)

// eachGuest asks about every guest that could be asked; the others are unknown with the reason, quietly where nobody
// tried (a check without answers asks no guest). Guests of VMs that are off before a run are asked once they are on.
func eachGuest(ask func(f *Facts, g *backends.Guest) Answer) func(*Facts) []Answer {
	return func(f *Facts) []Answer {
		found, _ := f.vms()
		var out []Answer
		for _, v := range found {
			t := backends.GuestRef(v.Name)
			switch g := f.guest(v.Name); {
			case g == nil && v.Power != "poweredOn":
				a := unknown(t, "the VM is %s", v.Power)
				a.Quiet = f.Before || f.Inventory.Guests == nil
				out = append(out, a)
			case g == nil:
				out = append(out, waiting(t, "the guest was not asked"))
			case g.Error != "":
				out = append(out, unknown(t, "the guest could not be asked: %s", g.Error))
			default:
				out = said(out, ask(f, g))
			}
		}
		return out
	}
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

// eachVerbs asks about the RDMA device behind every adapter. Where the guest has none, row id says so and the others
// keep still.
func eachVerbs(id string, ask func(f *Facts, t backends.Ref, d *backends.VerbsDevice) Answer) func(*Facts) []Answer {
	return eachPort(func(f *Facts, g *backends.Guest, p port) Answer {
		t, d := backends.GuestRef(g.VM), p.verbs(g)
		switch {
		case d != nil:
			return ask(f, t, d)
		case id == "GST-PORT-010":
			return fail(t, "no RDMA device belongs to the adapter %s", cmp.Or(p.mac, "none"))
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
			return fail(t, "no interface belongs to the adapter %s, wanted %s", cmp.Or(p.mac, "none"), p.cidr)
		}
		return Answer{}
	})
}
