package plan

import (
	"cmp"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
)

// sriov is the hosts' part of mode sriov: VFs on the RDMA pNIC of each (tools, firmware, driver, reboot; guide 002).
func (b *builder) sriov() {
	for _, h := range b.hosts {
		if h.nic == nil {
			continue
		}
		b.powerPolicy(h)
		planDriver(b.draft, h)
		b.enoughVFs(h)
	}
}

// powerPolicy plans High Performance, by its short name: keys differ between versions.
func (b *builder) powerPolicy(h *hostPart) {
	switch {
	case h.PowerPolicy == "":
		b.each(h.Name, "its power policy could not be read and stays as it is")
	case h.PowerPolicy != "static" && len(h.PowerPolicies) == 0:
		b.each(h.Name, "its BIOS keeps control of power: choose the profile Performance Per Watt (OS), or OS Control, for ESXi to have a say")
	default:
		s := backends.Setting{Target: backends.HostRef(h.Name), Kind: backends.KindPower}
		b.add(Change{Setting: s, From: Current(b.inv, s), To: backends.ValueOf("static"), Why: "High Performance: clocks that stay up keep latency low (guide 002)"})
	}
}

// enoughVFs refuses VMs that would find no VF at power-on.
func (b *builder) enoughVFs(h *hostPart) {
	need, others := 0, 0
	var ours, theirs []string
	for i := range b.inv.VMs {
		v := &b.inv.VMs[i]
		if v.Host != h.Name {
			continue
		}
		if p := b.byVM[v.Name]; p != nil {
			need += len(p.nets)
			ours = append(ours, v.Name)
			continue
		}
		for _, a := range v.Adapters {
			if a.Type == "sriov" && strings.EqualFold(a.PF, h.nic.PCI) && v.Power == "poweredOn" {
				others++
				theirs = append(theirs, v.Name)
			}
		}
	}
	if need+others > b.a.SRIOV.VFs {
		b.refuse(backends.HostRef(h.Name), "HOST-VF-FREE-011", "raise sriov.vfs, or move VMs to other hosts",
			"%d VFs are needed on %s (by %s; in use by VMs that take no part: %s), %d asked for", need+others, h.nic.Device,
			cmp.Or(strings.Join(ours, ", "), "none of vms"), cmp.Or(strings.Join(theirs, ", "), "none"), b.a.SRIOV.VFs)
	}
}
