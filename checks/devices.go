package checks

import (
	"cmp"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/sizing"
)

// networkClass is the PCI class of network controllers, as written in the inventory.
const networkClass = "02"

// cards returns the PCI addresses of network cards on a host with passthrough enabled.
func (f *Facts) cards(h *backends.Host) []string {
	var out []string
	for _, d := range h.PCI {
		if d.Enabled && strings.HasPrefix(d.Class, networkClass) {
			out = append(out, d.Address)
		}
	}
	return out
}

// GPUs returns the GPUs of a host that the selected VMs have or should have; if none are named, chosen is false and it returns
// all that could be passed through.
func (f *Facts) GPUs(h *backends.Host) (list []*backends.GPU, chosen bool) {
	var named, free []*backends.GPU
	for i := range h.GPUs {
		g := &h.GPUs[i]
		if f.wanted(h, g) {
			named = append(named, g)
		} else if g.Capable {
			free = append(free, g)
		}
	}
	if len(named) > 0 {
		return named, true
	}
	return free, false
}

// NearGPUs returns GPUs (see GPUs) without those that are nearer to the card of another rail.
func (f *Facts) NearGPUs(h *backends.Host) (list []*backends.GPU, chosen bool) {
	list, chosen = f.GPUs(h)
	if len(f.all) < 2 {
		return list, chosen
	}
	cards := backends.Each(f.all, func(rail *Facts) string { return rail.HCA(h) })
	own := []string{f.HCA(h)}
	return slices.DeleteFunc(list, func(g *backends.GPU) bool {
		mine, best := h.Match([]*backends.GPU{g}, own, map[string]int{}), h.Match([]*backends.GPU{g}, cards, map[string]int{})
		return len(mine) > 0 && best[0].Path.Compare(mine[0].Path) < 0
	}), chosen
}

func (f *Facts) wanted(h *backends.Host, g *backends.GPU) bool {
	found, _ := f.VMs()
	return slices.ContainsFunc(found, func(v *backends.VM) bool {
		return v.Host == h.Name &&
			(slices.Contains(v.Passthrough, g.PCI) || slices.Contains(f.Answers.GPUDirect.GPUs[v.Name].Whole, answers.PCI(g.PCI)))
	})
}

// VGPUHost reports whether selected VMs of a host have or should have vGPUs: then its GPUs are not passed through.
func (f *Facts) VGPUHost(h *backends.Host) bool {
	found, _ := f.VMs()
	return slices.ContainsFunc(found, func(v *backends.VM) bool {
		return v.Host == h.Name && (f.Answers.GPUDirect.GPUs[v.Name].Shared() || len(v.VGPUProfiles()) > 0)
	})
}

// GPUsOf returns the GPUs that a VM has now.
func (f *Facts) GPUsOf(v *backends.VM) []*backends.GPU {
	h := f.Inventory.Host(v.Host)
	if h == nil {
		return nil
	}
	var out []*backends.GPU
	for i := range h.GPUs {
		if slices.Contains(v.Passthrough, h.GPUs[i].PCI) {
			out = append(out, &h.GPUs[i])
		}
	}
	return out
}

// Window computes the MMIO window for the GPUs that a VM has.
func (f *Facts) Window(v *backends.VM) (sizing.Window, error) {
	var list []sizing.GPUCount
	for _, g := range f.GPUsOf(v) {
		c := sizing.CountOf(g, f.Answers.GPUDirect.Models)
		c.BAR1MB = cmp.Or(f.Inventory.BAR1(g.Vendor, g.Device), c.BAR1MB)
		list = append(list, c)
	}
	for _, p := range v.VGPUProfiles() {
		list = append(list, sizing.GPUCount{Model: p, Count: 1})
	}
	return sizing.MMIO(list)
}

// HCA returns the PCI address of a host's RDMA card: the one that is passed through, else the chosen pNIC; "" if there is none.
func (f *Facts) HCA(h *backends.Host) string {
	if n := f.NIC(h); len(f.all) > 1 && f.Answers.WholeCard() {
		return f.Answers.Rails[0].Card()
	} else if len(f.all) > 1 && n != nil {
		return n.PCI
	}
	found, _ := f.VMs()
	cards := f.cards(h)
	for _, v := range found {
		for _, p := range v.Passthrough {
			if v.Host == h.Name && slices.Contains(cards, p) {
				return p
			}
		}
	}
	if len(cards) > 0 {
		return cards[0]
	}
	if n := f.NIC(h); n != nil {
		return n.PCI
	}
	return ""
}

// SharedBridge returns the bridge of the host above a VM's RDMA card and one of its GPUs, through which they reach each other; ""
// if there is none, or it is not known.
func (f *Facts) SharedBridge(vm string) string {
	v := f.Inventory.VM(vm)
	if v == nil {
		return ""
	}
	h := f.Inventory.Host(v.Host)
	if h == nil {
		return ""
	}
	path := h.Bridges(f.HCA(h))
	for _, g := range f.GPUsOf(v) {
		if near, shared := backends.Near(g.Path(), path); near.PeerToPeer() == "yes" {
			return shared
		}
	}
	return ""
}
