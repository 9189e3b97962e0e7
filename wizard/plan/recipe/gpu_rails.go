package recipe

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/plan/draft"
)

// cardsOf are the PCI addresses of the ports through which a VM does RDMA, and the rails that they serve, in the order of its
// adapters.
func (b *builder) cardsOf(h *draft.Host, v *draft.VM) (pci, rails []string) {
	for _, n := range v.Nets {
		if p := b.Port(h, n); p != nil {
			pci, rails = append(pci, p.PCI), append(rails, n.Rail)
		}
	}
	return pci, rails
}

// share deals the free GPUs of a host with several rails out to its VMs: each VM gets its part of them, those first that are
// nearest to its cards.
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

// reachRails says which card each GPU of a VM on several rails is used with, and refuses a VM none of whose GPUs reaches any.
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
		b.Each(v.Name, "the host's list of PCI devices has no card of its rails: it is not known whether its GPUs reach them by peer-to-peer")
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
			"name GPUs below the root ports of the cards in gpudirect.gpus (rdma-setup discover shows the matrix), or give it adapters on other rails; with --skip HOST-GPU-ROOT-016 "+
				"the GPUs are assigned anyway, and their data goes through host memory",
			"no GPU of this VM can reach a card of its rails by peer-to-peer: %s (NVIDIA GPU Operator, GPUDirect RDMA: both below one PCIe root complex)", strings.Join(far, ", "))
		return
	}
	if len(near) > 0 {
		b.Each(v.Name, "pairs by PCI path: %s", strings.Join(near, ", "))
	}
	if len(far) > 0 {
		b.Each(v.Name, "no card of its rails is close enough for peer-to-peer to these GPUs; their data goes through host memory: %s", strings.Join(far, ", "))
	}
}
