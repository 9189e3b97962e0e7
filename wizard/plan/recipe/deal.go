package recipe

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/plan/draft"
)

// Deal shares out the whole cards of a host with several rails among its VMs that write no adapters of their own: a card goes to one
// VM only. Each VM keeps the cards that it has, and gets its part of the others in the order of the PCI tree, so that cards below one
// switch, root port or socket stay together. It returns the answers with the adapters written out; the same answers where there is
// nothing to deal.
func Deal(a *answers.Answers, inv *backends.Inventory) *answers.Answers {
	if !a.Several() || !a.WholeCard() {
		return a
	}
	on := map[string][]int{} // by host: places in a.VMs
	for i, v := range a.VMs {
		if vm := inv.VM(v.Name); vm != nil && len(v.Adapters) == 0 {
			on[vm.Host] = append(on[vm.Host], i)
		}
	}
	out := *a
	out.VMs = slices.Clone(a.VMs)
	dealt := false
	for host, list := range on {
		h := inv.Host(host)
		if h == nil || len(list) < 2 {
			continue
		}
		share := dealOn(a, inv, h, list)
		for _, i := range list {
			v := &out.VMs[i]
			nets := slices.DeleteFunc(a.Networks(*v), func(n answers.Adapter) bool { return share[n.Rail] != i })
			if share != nil {
				v.IP, v.Adapters, dealt = answers.Address{}, nets, true
			}
		}
	}
	if !dealt {
		return a
	}
	return &out
}

// dealOn tells by rail which of the listed VMs of a host gets its card; nil where there are fewer cards than VMs.
func dealOn(a *answers.Answers, inv *backends.Inventory, h *backends.Host, list []int) map[string]int {
	var rails []answers.Rail
	for _, r := range a.AllRails() {
		if !r.Optional || slices.ContainsFunc(h.PCI, func(d backends.PCIDevice) bool { return strings.EqualFold(d.Address, r.Card()) }) {
			rails = append(rails, r)
		}
	}
	if len(rails) < len(list) {
		return nil
	}
	path := func(r answers.Rail) []string {
		above := h.Bridges(strings.ToLower(r.Card()))
		slices.Reverse(above)
		return append(above, r.Card())
	}
	slices.SortStableFunc(rails, func(x, y answers.Rail) int { return slices.Compare(path(x), path(y)) })
	share, has := map[string]int{}, map[int]int{}
	for _, r := range rails {
		for _, i := range list {
			vm := inv.VM(a.VMs[i].Name)
			if _, taken := share[r.Name]; !taken && slices.Contains(vm.Passthrough, strings.ToLower(r.Card())) {
				share[r.Name] = i
				has[i]++
			}
		}
	}
	most := (len(rails) + len(list) - 1) / len(list)
	for k, r := range rails {
		if _, taken := share[r.Name]; taken {
			continue
		}
		i := list[k*len(list)/len(rails)]
		if has[i] >= most {
			i = slices.MinFunc(list, func(x, y int) int { return has[x] - has[y] })
		}
		share[r.Name] = i
		has[i]++
	}
	return share
}

// tellDeal says which VM has which cards of a host that its VMs share.
func (b *builder) tellDeal(h *draft.Host) {
	var parts []string
	for _, v := range b.VMs {
		if v.Host != h.Name || len(v.Cards) == 0 {
			continue
		}
		var rails []string
		for _, n := range v.Nets {
			rails = append(rails, n.Rail)
		}
		parts = append(parts, fmt.Sprintf("%s has %s", v.Name, strings.Join(rails, ", ")))
	}
	if b.dealt && len(parts) > 1 {
		b.Each(h.Name, "its VMs share its cards by PCI path, each card for one VM: %s; write adapters under vms to decide it", strings.Join(parts, "; "))
	}
}
