package recipe

import (
	"cmp"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/nic"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
	"github.com/rdma-setup/rdma-setup/wizard/plan/draft"
	"github.com/rdma-setup/rdma-setup/wizard/plan/driver"
)

// sriov plans the hosts' part of mode sriov: VFs on the RDMA pNIC of each (tools, firmware, driver, reboot; RoCE SR-IOV Setup and
// Performance Study on vSphere 7.x, VMware, 2022).
func (b *builder) sriov() {
	for _, h := range b.Hosts {
		if h.Chosen == nil {
			continue
		}
		b.powerPolicy(h)
		driver.Plan(b.Draft, h)
		b.enoughVFs(h)
	}
}

// powerPolicy plans High Performance, by its short name: keys differ between versions.
func (b *builder) powerPolicy(h *draft.Host) {
	switch {
	case h.PowerPolicy == "":
		b.NoteEach(h.Name, "[its power policy could not be read and stays as it is|their power policies could not be read and stay as they are]")
	case h.PowerPolicy != "static" && len(h.PowerPolicies) == 0:
		b.NoteEach(h.Name, "[its|their] BIOS controls power: choose the profile Performance Per Watt (OS) or OS Control to let ESXi control it")
	default:
		s := backends.Setting{Target: backends.HostRef(h.Name), Kind: backends.KindPower}
		b.Add(plan.Change{Setting: s, From: b.Now(s), To: backends.ValueOf("static"),
			Why: "the High Performance policy keeps CPU clocks high, which keeps latency low"})
	}
}

// trusts refuses a VF for a VM that the answers mark as untrusted, if the card's firmware is not known to be free of
// vulnerabilities that a user of a VF can exploit (NVIDIA security bulletins); other VMs get it with a note.
func (b *builder) trusts(v *draft.VM, port *backends.NIC) {
	const check = "HOST-PNIC-CVE-018"
	list, known := nic.Vulnerable(port)
	untrusted := v.Wish.Trust == answers.Untrusted
	update, updated := b.Part(v.Host).Updates[nic.CardAddress(port.PCI)]
	file, left := update.Unsafe()
	switch {
	case untrusted && updated && nic.Listed(port) && file == "":
		b.NoteEach(v.Host,
			"VMs that are not trusted get VFs of %s once its firmware %s is updated; a card that the named files do not free of its published "+
				"vulnerabilities is refused",
			port.Device, port.Firmware)
		return
	case untrusted && updated && file != "":
		b.Refuse(backends.VMRef(v.Name), check, "name newer firmware under sriov.firmware, or set trust: trusted",
			"is untrusted, and the firmware that %s on %s would get from %s is vulnerable to users of a VF: %s", port.Device, v.Host, file,
			nic.Named(left, port))
		return
	}
	switch {
	case untrusted && !nic.Listed(port):
		b.NoteEach(v.Host,
			"%s goes to VMs whose users are not trusted (vms[].trust); the security bulletins that this program holds do not name its card",
			port.Device)
	case untrusted && !known:
		b.Refuse(backends.VMRef(v.Name), check, "The firmware of ports in InfiniBand mode is known once they speak Ethernet. "+
			"If you know that it is fixed (esxcli network nic get), set trust: trusted",
			"is untrusted, and whether the firmware of %s on %s has a published vulnerability is not known: its version was not read", port.Device,
			v.Host)
	case untrusted && len(list) > 0:
		b.Refuse(backends.VMRef(v.Name), check,
			"name newer firmware under sriov.firmware (an OEM's card: that of the server's vendor), or set trust: trusted",
			"is untrusted, and firmware %s of %s on %s is vulnerable to users of a VF: %s", port.Firmware, port.Device, v.Host,
			nic.Named(list, port))
	case len(list) > 0 && !slices.Contains(b.Options.Skip, check):
		b.NoteEach(v.Host, "firmware %s of %s is vulnerable to users of a VF, whom the answers trust (vms[].trust): %s", port.Firmware,
			port.Device, nic.Named(list, port))
	}
}

func (b *builder) enoughVFs(h *draft.Host) {
	for i, n := range h.Ports {
		if n != nil {
			b.enoughOf(h, i, n)
		}
	}
}

func (b *builder) enoughOf(h *draft.Host, rail int, port *backends.NIC) {
	need, others := 0, 0
	var ours, theirs []string
	for i := range b.Inventory.VMs {
		v := &b.Inventory.VMs[i]
		if v.Host != h.Name {
			continue
		}
		if p := b.ByVM[v.Name]; p != nil {
			for _, n := range p.Nets {
				if b.RailOf(n) == rail {
					need++
					b.trusts(p, port)
				}
			}
			ours = append(ours, v.Name)
			continue
		}
		for _, a := range v.Adapters {
			if a.Type == "sriov" && strings.EqualFold(a.PF, port.PCI) && v.Power == "poweredOn" {
				others++
				theirs = append(theirs, v.Name)
			}
		}
	}
	if need+others > b.Rails[rail].SRIOV.VFs {
		b.Refuse(backends.HostRef(h.Name), "HOST-VF-FREE-011", "raise sriov.vfs, or move VMs to other hosts",
			"%d VFs are needed on %s (by %s; in use by VMs that the answers do not list: %s), %d asked for", need+others, port.Device,
			cmp.Or(strings.Join(ours, ", "), "none of vms"), cmp.Or(strings.Join(theirs, ", "), "none"), b.Rails[rail].SRIOV.VFs)
	}
}
