package checks

import (
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
)

// eachHost asks about every selected host that is connected. An empty answer says nothing of that host.
func eachHost(ask func(f *Facts, h *backends.Host) Answer) func(*Facts) []Answer {
	return func(f *Facts) []Answer {
		var out []Answer
		for _, h := range f.connected() {
			out = said(out, ask(f, h))
		}
		return out
	}
}

func said(out []Answer, a Answer) []Answer {
	if a.Status == "" {
		return out
	}
	return append(out, a)
}

// hostCall asks about what only a call per host tells.
func hostCall(ask func(f *Facts, h *backends.Host, facts HostFacts) Answer) func(*Facts) []Answer {
	return eachHost(func(f *Facts, h *backends.Host) Answer {
		t := backends.HostRef(h.Name)
		facts, asked := f.HostFacts[h.Name]
		switch {
		case !asked:
			return waiting(t, "the host was not asked by esxcli")
		case facts.Err != nil:
			return unknown(t, "esxcli could not be asked: %v", facts.Err)
		}
		return ask(f, h, facts)
	})
}

// nicCall is hostCall for the RDMA pNIC; a host without one has its own row.
func nicCall(ask func(f *Facts, h *backends.Host, n *backends.NIC, facts HostFacts) Answer) func(*Facts) []Answer {
	return hostCall(func(f *Facts, h *backends.Host, facts HostFacts) Answer {
		if n := f.nic(h); n != nil {
			return ask(f, h, n, facts)
		}
		return Answer{}
	})
}

// function0 is the address of a card's first function, which stands for the card.
func function0(pci string) string {
	if i := strings.LastIndexByte(pci, '.'); i > 0 {
		return pci[:i] + ".0"
	}
	return pci
}

// eachVM asks about every selected VM. An empty answer says nothing of that VM.
func eachVM(ask func(f *Facts, v *backends.VM) Answer) func(*Facts) []Answer {
	return func(f *Facts) []Answer {
		found, missing := f.vms()
		var out []Answer
		for _, v := range found {
			out = said(out, ask(f, v))
		}
		for _, name := range missing {
			out = append(out, unknown(backends.VMRef(name), "there is no VM of this name"))
		}
		return out
	}
}

// eachPeer asks how each host reaches its peers, and tells the worst of them.
func eachPeer(ask func(f *Facts, t backends.Ref, peer string, p Peer) Answer) func(*Facts) []Answer {
	return hostCall(func(f *Facts, h *backends.Host, facts HostFacts) Answer {
		t := backends.HostRef(h.Name)
		var worst Answer
		for _, peer := range f.connected() {
			p, tried := facts.Peers[peer.Name]
			if !tried || peer.Name == h.Name {
				continue
			}
			if a := ask(f, t, peer.Name, p); worst.Status == "" || a.Status.Weight() > worst.Status.Weight() {
				worst = a
			}
		}
		if worst.Status == "" {
			return waiting(t, "no peer's vmknic was tried from here")
		}
		return worst
	})
}
