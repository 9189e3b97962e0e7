package recipe

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/plan/draft"
)

// cardsOf returns the PCI addresses of a VM's RDMA ports, and the rails that they serve, in the order of its adapters.
func (b *builder) cardsOf(h *draft.Host, v *draft.VM) (pci, rails []string) {
	for _, n := range v.Nets {
		if at, passthrough := backends.OfHCA(n.PortGroup); passthrough {
			pci, rails = append(pci, at), append(rails, n.Rail)
		} else if p := b.Port(h, n); p != nil {
			pci, rails = append(pci, p.PCI), append(rails, n.Rail)
		}
	}
	return pci, rails
}

// share distributes the free GPUs of a host with several rails over its VMs: each VM gets its share, preferably those nearest to
// its cards.
func (b *builder) share(h *draft.Host, on []*draft.VM, free []*backends.GPU) {
	if len(on) == 0 {
		return
	}
	type choice struct {
		gpu *backends.GPU
		vm  *draft.VM
		way backends.Nearness
	}
	total := len(free)
	var all []choice
	for _, v := range on {
		total += len(v.GPUs)
	}
	for _, g := range free {
		for _, v := range on {
			cards, _ := b.cardsOf(h, v)
			if m := h.Match([]*backends.GPU{g}, cards, map[string]int{}); len(m) > 0 {
				all = append(all, choice{g, v, m[0].Path})
			} else {
				all = append(all, choice{g, v, backends.PathUnknown})
			}
		}
	}
	most := (total + len(on) - 1) / len(on)
	for len(all) > 0 {
		next := slices.MinFunc(all, func(x, y choice) int {
			if c := x.way.Compare(y.way); c != 0 || x.gpu != y.gpu {
				return c
			}
			return len(x.vm.GPUs) - len(y.vm.GPUs)
		})
		next.vm.GPUs = append(next.vm.GPUs, next.gpu)
		all = slices.DeleteFunc(all, func(c choice) bool { return c.gpu == next.gpu || len(c.vm.GPUs) >= most })
	}
}

// reachRails notes which card each GPU of a VM on several rails is used with, and refuses a VM if none of its GPUs can reach any.
func (b *builder) reachRails(v *draft.VM) {
	h := b.Part(v.Host)
	cards, rails := b.cardsOf(h, v)
	if len(cards) == 0 || len(v.GPUs) == 0 {
		return
	}
	if h.Paired == nil {
		h.Paired = map[string]int{}
	}
	matches := h.Match(v.GPUs, cards, h.Paired)
	if len(matches) == 0 {
		b.NoteEach(v.Name, "[the host's list of PCI devices has|their hosts' lists of PCI devices have] no card of [its|their] rails: "+
			"it is not known whether [its|their] GPUs reach them by peer-to-peer")
		return
	}
	var near, far []string
	hopeless := true
	for _, m := range matches {
		rail := rails[slices.Index(cards, m.NIC)]
		p := m.Path.PeerToPeer()
		if hopeless = hopeless && p == "no"; p == "yes" {
			near = append(near, fmt.Sprintf("GPU %s with %s at %s (%s)", m.GPU.PCI, rail, m.NIC, m.Path))
		} else {
			far = append(far, fmt.Sprintf("GPU %s and %s at %s (%s)", m.GPU.PCI, rail, m.NIC, m.Path))
		}
	}
	assigned := !slices.ContainsFunc(v.GPUs, func(g *backends.GPU) bool { return !b.has(v, g.PCI) })
	if hopeless && !assigned {
		b.Object(backends.VMRef(v.Name), "HOST-GPU-ROOT-016",
			"name GPUs below the root ports of the cards in gpudirect.gpus (rdma-setup discover shows the matrix), or give it adapters on other "+
				"rails; with --skip HOST-GPU-ROOT-016 "+
				"the GPUs are assigned anyway, and their data goes through host memory",
			"no GPU of this VM can reach a card of its rails by peer-to-peer: %s (NVIDIA GPU Operator, GPUDirect RDMA: both below one PCIe "+
				"root complex)", strings.Join(far, ", "))
		return
	}
	if len(near) > 0 {
		b.NoteEach(v.Name, "pairs by PCI path: %s", strings.Join(near, ", "))
	}
	if len(far) > 0 {
		b.NoteEach(v.Name, "no card of [its|their] rails is close enough for peer-to-peer to these GPUs; their data goes through host memory: %s",
			strings.Join(far, ", "))
	}
}

// cardsOfRails assigns the cards of the VMs of a host with several rails: the card of each rail goes to the one VM that has an
// adapter on that rail.
func (b *builder) cardsOfRails(h *draft.Host) {
	owner := map[int]*draft.VM{} // by rail
	for _, v := range b.vmsOn(h) {
		if slices.Contains(b.without, v.Name) {
			continue
		}
		for _, n := range slices.Clone(v.Nets) {
			i := b.RailOf(n)
			if o := owner[i]; o != nil {
				b.Refuse(backends.HostRef(h.Name), "HOST-PT-FREE-014",
					"write adapters under vms, with rails of its own for each VM, or set gpudirect.nic to sriov, so that each gets a VF",
					"%s and %s both request the card of %s at %s, but a whole card can be assigned to one VM only", o.Name, v.Name, n.Rail,
					b.Rails[i].Card())
				continue
			}
			c, found := b.rail(i).wholeCard(h, v)
			if found {
				owner[i] = v
				v.Cards = append(v.Cards, c)
			}
		}
	}
	b.tellDeal(h)
	b.noneLeft(h)
	if len(owner) == 0 {
		b.NoteEach(h.Name, "the answers list no VM on [it|them]: nothing is passed through")
	}
}

// wholeCard returns the card of the rail on a host for a VM: the VM's own, one that is free and passed through, or an unused
// pNIC. A host without it is allowed for an optional rail.
func (r *rail) wholeCard(h *draft.Host, v *draft.VM) (c backends.PCIDevice, found bool) {
	pci, ref := r.want.Card(), backends.HostRef(h.Name)
	cards := h.Cards()
	i := slices.IndexFunc(cards, func(d backends.PCIDevice) bool { return strings.EqualFold(d.Address, pci) })
	pnic := slices.ContainsFunc(h.NICs, func(n backends.NIC) bool { return strings.EqualFold(n.PCI, pci) })
	switch o := r.owner(h, pci); {
	case r.leadsToNVSwitch(h, pci):
		return c, false
	case r.has(v, pci) && i >= 0:
		return cards[i], true
	case o != nil:
		r.Refuse(ref, "HOST-PT-FREE-014", takeFrom(o)+", or name another card by the nic.device of "+r.want.Name,
			"the card of %s at %s belongs to %s", r.want.Name, pci, ownerName(o))
		return c, false
	case i >= 0 && !pnic && cards[i].Enabled:
		return cards[i], true
	}
	n := r.port(h)
	switch {
	case n == nil:
		if r.mayLack(h, r.want) {
			r.withoutCard(v)
		}
		return c, false
	case i < 0:
		r.Refuse(ref, "HOST-PT-ACTIVE-013", "choose a port of a ConnectX card", "%s at %s (%s) is not in the host's list of PCI devices",
			n.Device, n.PCI, r.want.Name)
		return c, false
	}
	h.SetPort(r.index, len(r.Rails), n)
	return cards[i], true
}

// withoutCard removes the adapter for an optional rail that the host of a VM does not have.
func (r *rail) withoutCard(v *draft.VM) {
	v.Nets = slices.DeleteFunc(v.Nets, func(n answers.Adapter) bool { return r.RailOf(n) == r.index })
	if len(v.Nets) == 0 {
		r.Refuse(backends.VMRef(v.Name), "", "move it to a host that has the rail, or remove it from vms", "its host has none of its rails")
	}
}
