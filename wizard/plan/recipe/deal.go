package recipe

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/plan/draft"
)

// Deal distributes the cards for passthrough of a host with several rails over its VMs whose adapters are not in the answers: a
// card goes to one VM only, and cards of VMs with adapters in the answers are left out. Each VM keeps the cards that it has, and
// gets its share of the others in the order of the PCI tree, so that cards below one switch, root port or socket stay together. It
// returns the answers with these adapters, or the same answers if there is nothing to distribute. A VM for which no card is left is
// not changed.
func Deal(a *answers.Answers, inv *backends.Inventory) *answers.Answers {
	out, _ := deal(a, inv)
	return out
}

// deal also returns the VMs for which no card is left, in the order of the answers.
func deal(a *answers.Answers, inv *backends.Inventory) (dealt *answers.Answers, without []string) {
	if !a.Several() || !a.WholeCard() {
		return a, nil
	}
	on, written := map[string][]int{}, map[string]map[string]bool{} // by host: indexes in a.VMs, and the rails that the VMs name
	for i, v := range a.VMs {
		vm := inv.VM(v.Name)
		if vm == nil || inv.Host(vm.Host) == nil {
			continue
		}
		if len(v.Adapters) == 0 {
			on[vm.Host] = append(on[vm.Host], i)
			continue
		}
		if written[vm.Host] == nil {
			written[vm.Host] = map[string]bool{}
		}
		for _, n := range v.Adapters {
			written[vm.Host][n.Rail] = true
		}
	}
	out := *a
	out.VMs = slices.Clone(a.VMs)
	got := false
	for host, list := range on {
		if len(list) < 2 && len(written[host]) == 0 {
			continue
		}
		share := dealOn(a, inv, inv.Host(host), list, written[host])
		for _, i := range list {
			v := &out.VMs[i]
			nets := slices.DeleteFunc(a.Networks(*v), func(n answers.Adapter) bool {
				owner, dealt := share[n.Rail]
				return !dealt || owner != i
			})
			if len(nets) == 0 {
				without = append(without, v.Name)
				continue
			}
			v.IP, v.Adapters, got = answers.Address{}, nets, true
		}
	}
	slices.SortFunc(without, func(x, y string) int {
		place := func(name string) int {
			return slices.IndexFunc(a.VMs, func(v answers.VM) bool { return v.Name == name })
		}
		return place(x) - place(y)
	})
	if !got {
		return a, without
	}
	return &out, without
}

// dealOn returns by rail which of the listed VMs of a host gets its card; written contains the rails whose cards other VMs of the
// host have.
func dealOn(a *answers.Answers, inv *backends.Inventory, h *backends.Host, list []int, written map[string]bool) map[string]int {
	var rails []answers.Rail
	for _, r := range a.AllRails() {
		there := slices.ContainsFunc(h.PCI, func(d backends.PCIDevice) bool { return strings.EqualFold(d.Address, r.Card()) })
		if (there || !r.Optional) && !written[r.Name] {
			rails = append(rails, r)
		}
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
	free := slices.DeleteFunc(rails, func(r answers.Rail) bool { _, taken := share[r.Name]; return taken })
	more := map[int]int{} // how many of the free cards each VM gets; VMs with the fewest cards come first
	for range free {
		more[slices.MinFunc(list, func(x, y int) int { return has[x] + more[x] - has[y] - more[y] })]++
	}
	for _, r := range free {
		i := list[slices.IndexFunc(list, func(i int) bool { return more[i] > 0 })]
		share[r.Name] = i
		more[i]--
	}
	return share
}

// shares describes which VM has which cards of a host: "vm-01 has rail-1, rail-2".
func (b *builder) shares(h *draft.Host) (parts []string) {
	for _, v := range b.VMs {
		if v.Host == h.Name && len(v.Cards) > 0 {
			rails := backends.Each(v.Nets, func(n answers.Adapter) string { return n.Rail })
			parts = append(parts, fmt.Sprintf("%s has %s", v.Name, strings.Join(rails, ", ")))
		}
	}
	return parts
}

// tellDeal notes which VM has which cards of a host.
func (b *builder) tellDeal(h *draft.Host) {
	if parts := b.shares(h); b.dealt && len(parts) > 1 {
		b.NoteEach(h.Name,
			"[its VMs share its|their VMs share their] cards by PCI path, each card for one VM: %s; write adapters under vms to decide it",
			strings.Join(parts, "; "))
	}
}

func (b *builder) noneLeft(h *draft.Host) {
	for _, v := range b.VMs {
		if v.Host == h.Name && slices.Contains(b.without, v.Name) {
			b.Refuse(backends.VMRef(v.Name), "HOST-PT-FREE-014",
				"move it to another host, remove it from vms, or write adapters under vms, with rails of its own for each VM",
				"no card of %s is left for it: %s; a whole card can be given to one VM only", h.Name, strings.Join(b.shares(h), "; "))
		}
	}
}
