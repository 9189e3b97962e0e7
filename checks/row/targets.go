package row

import (
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks"
)

// EachHost evaluates every selected host that is connected. An empty answer is left out.
func EachHost(ask func(f *checks.Facts, t backends.Ref, h *backends.Host) checks.Answer) func(*checks.Facts) []checks.Answer {
	return func(f *checks.Facts) []checks.Answer {
		var out []checks.Answer
		for _, h := range f.Connected() {
			out = Said(out, ask(f, backends.HostRef(h.Name), h))
		}
		return out
	}
}

// Said adds an answer, unless it is empty.
func Said(out []checks.Answer, a checks.Answer) []checks.Answer {
	if a.Status == "" {
		return out
	}
	return append(out, a)
}

// HostCall evaluates facts that need a call per host.
func HostCall(ask func(f *checks.Facts, t backends.Ref, h *backends.Host,
	sys *backends.HostSystem) checks.Answer) func(*checks.Facts) []checks.Answer {
	return EachHost(func(f *checks.Facts, t backends.Ref, h *backends.Host) checks.Answer {
		if h.System == nil {
			return Waiting(t, "esxcli was not run on the host")
		}
		return ask(f, t, h, h.System)
	})
}

// Unread returns the answer for a fact without a value: it is not quiet if the host was queried and did not report it.
func Unread[T any](t backends.Ref, what string, f backends.Fact[T]) checks.Answer {
	if f.State == backends.FactUnreadable {
		return Unknown(t, "%s could not be read: %s", what, strings.TrimPrefix(f.Why, t.Name+": "))
	}
	return Waiting(t, "%s was not read", what)
}

// NICCall is HostCall for the RDMA pNIC; a host without one has its own row.
func NICCall(ask func(f *checks.Facts, t backends.Ref, h *backends.Host, n *backends.NIC,
	sys *backends.HostSystem) checks.Answer) func(*checks.Facts) []checks.Answer {
	return HostCall(func(f *checks.Facts, t backends.Ref, h *backends.Host, sys *backends.HostSystem) checks.Answer {
		if n := f.NIC(h); n != nil {
			return ask(f, t, h, n, sys)
		}
		return checks.Answer{}
	})
}

// Traffic returns the increases of the counters of a pNIC; unread is the answer if they are not known.
func Traffic(t backends.Ref, n *backends.NIC, sys *backends.HostSystem) (s backends.PortStats, unread *checks.Answer) {
	fact := sys.Stats[n.Device]
	if fact.Known() && fact.Value.Over > 0 {
		return fact.Value, nil
	}
	a := Unread(t, "the growth of the counters of "+n.Device, fact)
	return s, &a
}

// EachVM evaluates every selected VM. An empty answer is left out.
func EachVM(ask func(f *checks.Facts, t backends.Ref, v *backends.VM) checks.Answer) func(*checks.Facts) []checks.Answer {
	return func(f *checks.Facts) []checks.Answer {
		found, missing := f.VMs()
		var out []checks.Answer
		for _, v := range found {
			out = Said(out, ask(f, backends.VMRef(v.Name), v))
		}
		for _, name := range missing {
			out = append(out, Unknown(backends.VMRef(name), "vCenter has no VM of this name"))
		}
		return out
	}
}

// EachPeer evaluates how each host reaches its peers, and reports the worst result.
func EachPeer(ask func(f *checks.Facts, t backends.Ref, peer string, p backends.Peer) checks.Answer) func(*checks.Facts) []checks.Answer {
	return HostCall(func(f *checks.Facts, t backends.Ref, h *backends.Host, sys *backends.HostSystem) checks.Answer {
		var worst checks.Answer
		for _, peer := range f.Connected() {
			p, tried := sys.Peers[peer.Name]
			if !tried || peer.Name == h.Name {
				continue
			}
			a := Unread(t, "the way to "+peer.Name, p)
			if p.Known() {
				a = ask(f, t, peer.Name, p.Value)
			}
			if worst.Status == "" || a.Status.Weight() > worst.Status.Weight() {
				worst = a
			}
		}
		if worst.Status == "" {
			return Waiting(t, "no peer was tested from this host: it has no such vmknic, or no peer has one")
		}
		return worst
	})
}
