package guest

import (
	"cmp"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/row"
)

// eachGuest evaluates every guest that was read; the others are unknown with the reason, quietly if no attempt was made (a check
// without answers reads no guest). Guests of VMs that are off before a run are read once they are on.
func eachGuest(ask func(f *checks.Facts, t backends.Ref, g *backends.Guest) checks.Answer) func(*checks.Facts) []checks.Answer {
	return func(f *checks.Facts) []checks.Answer {
		found, _ := f.VMs()
		var out []checks.Answer
		for _, v := range found {
			t := backends.GuestRef(v.Name)
			switch g := f.Guest(v.Name); {
			case !f.Managed(v.Name):
			case g == nil && v.Power != "poweredOn":
				a := row.Unknown(t, "the VM is %s", v.Power)
				a.Remedy = "Power the VM on, then check again."
				a.Quiet = f.Before || f.Inventory.Guests == nil
				out = append(out, a)
			case g == nil:
				out = append(out, row.Waiting(t, "the guest was not read"))
			case g.Error != "":
				a := row.Unknown(t, "the guest could not be read: %s", g.Error)
				a.Remedy = "Let this machine log in to the guest (address, user, key or password, host key), then check again."
				out = append(out, a)
			default:
				out = row.Said(out, ask(f, t, g))
			}
		}
		return out
	}
}

// eachPort evaluates every RDMA adapter of every guest, and reports an unreadable guest once.
func eachPort(ask func(f *checks.Facts, t backends.Ref, g *backends.Guest,
	p checks.Port) checks.Answer) func(*checks.Facts) []checks.Answer {
	return func(f *checks.Facts) []checks.Answer {
		var out []checks.Answer
		for _, a := range eachGuest(func(*checks.Facts, backends.Ref, *backends.Guest) checks.Answer {
			return checks.Answer{Status: checks.Pass}
		})(f) {
			if a.Status != checks.Pass {
				out = append(out, a)
			}
		}
		found, _ := f.VMs()
		for _, v := range found {
			g := f.Guest(v.Name)
			if g == nil || g.Error != "" {
				continue
			}
			for _, p := range f.Ports(v) {
				out = row.Said(out, ask(f, backends.GuestRef(v.Name), g, p))
			}
		}
		return out
	}
}

// eachVerbs evaluates the RDMA device of every adapter. If the guest has none, only row id reports it.
func eachVerbs(id string,
	ask func(f *checks.Facts, t backends.Ref, d *backends.VerbsDevice) checks.Answer) func(*checks.Facts) []checks.Answer {
	return eachPort(func(f *checks.Facts, t backends.Ref, g *backends.Guest, p checks.Port) checks.Answer {
		d := p.Verbs(g)
		switch {
		case d != nil:
			return ask(f, t, d)
		case id == "GST-PORT-010":
			return row.Fail(t, "no RDMA device belongs to the adapter %s", cmp.Or(p.MAC, "none"))
		}
		return checks.Answer{}
	})
}

// eachNetdev does the same for the network interface; without addresses in the answers there is nothing to compare.
func eachNetdev(id string, ask func(f *checks.Facts, t backends.Ref, i *backends.Interface,
	want string) checks.Answer) func(*checks.Facts) []checks.Answer {
	return eachPort(func(f *checks.Facts, t backends.Ref, g *backends.Guest, p checks.Port) checks.Answer {
		i := p.Netdev(g)
		switch {
		case p.CIDR == "":
			return checks.Answer{}
		case i != nil:
			return ask(f, t, i, p.CIDR)
		case id == "GST-IP-014":
			return row.Fail(t, "no interface belongs to the adapter %s, wanted %s", cmp.Or(p.MAC, "none"), p.CIDR)
		}
		return checks.Answer{}
	})
}
