package checks

import (
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

func (f *Facts) vcenter() backends.Ref {
	return backends.Ref{Type: backends.TypeVCenter, Name: f.Inventory.VCenter.URL}
}

func (f *Facts) cluster() backends.Ref {
	return backends.Ref{Type: backends.TypeCluster, Name: orNone(f.Answers.Hosts.Cluster)}
}

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

// shellCall asks about the firmware of the RDMA pNIC's card, which only tools in the ESXi shell read.
func shellCall(ask func(f *Facts, h *backends.Host, n *backends.NIC, card CardFirmware) Answer) func(*Facts) []Answer {
	return nicCall(func(f *Facts, h *backends.Host, n *backends.NIC, facts HostFacts) Answer {
		t := backends.HostRef(h.Name)
		card, read := facts.Firmware[function0(n.PCI)]
		switch {
		case read:
			return ask(f, h, n, card)
		case facts.ShellErr != nil && f.Answers.Mode != answers.PVRDMA:
			return unknown(t, "the firmware of %s could not be read: %v", n.Device, facts.ShellErr)
		}
		return waiting(t, "the firmware of %s was not read: that takes the ESXi shell and MFT (check --esxi-shell)", n.Device)
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

// adapter is the RDMA adapter of a VM on the answers' port groups; nil when there is none.
func (f *Facts) adapter(v *backends.VM, types ...string) *backends.Adapter {
	for i := range v.Adapters {
		if slices.Contains(types, v.Adapters[i].Type) {
			return &v.Adapters[i]
		}
	}
	return nil
}

// same compares a value over hosts and names who differs from the most; hosts of which nothing is known are left out.
func same(f *Facts, what string, of func(*backends.Host) string) []Answer {
	count := map[string]int{}
	for _, h := range f.connected() {
		if v := of(h); v != "" {
			count[v]++
		}
	}
	most := ""
	for v, n := range count {
		if n > count[most] || n == count[most] && v < most {
			most = v
		}
	}
	var out []Answer
	for _, h := range f.connected() {
		if v := of(h); v != "" {
			out = append(out, warnIf(v != most, backends.HostRef(h.Name), "%s %s, most have %s", what, v, most))
		}
	}
	return out
}
