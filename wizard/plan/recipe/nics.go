package recipe

import (
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/nic"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
	"github.com/rdma-setup/rdma-setup/wizard/plan/draft"
	"github.com/rdma-setup/rdma-setup/wizard/sizing"
)

// chooseNIC returns the one pNIC of a host that the answers describe and the facts allow (backends.ChoosePNIC), nil after a
// refusal. The HCA is the only uplink of a PVRDMA switch (VMware "PVRDMA Support").
func (r *rail) chooseNIC(h *draft.Host) *backends.NIC {
	n, forced := r.forced(h)
	if !forced {
		n = r.fitting(h)
	}
	if n != nil && r.Virtual() && (n.SRIOV == nil || !n.SRIOV.Capable) {
		r.NoteEach(h.Name, "%s does not offer SR-IOV yet; if the firmware is not the reason: %s", n.Device, nic.BIOSHelp(h.Vendor))
	}
	return n
}

func (r *rail) fitting(h *draft.Host) *backends.NIC {
	wish := sizing.PNICWish(r.view, h.Name)
	choice := backends.ChoosePNIC(h.Host, wish)
	if choice.Chosen != nil {
		if choice.Nearest.Unlisted {
			r.NoteEach(h.Name,
				"%s has driver %s, which is not listed among those that support RoCE v2; the host reports RoCE for it, so it is used (unverified)",
				choice.Chosen.Device, choice.Chosen.Driver)
		}
		return choice.Chosen
	}
	if choice.Nearest == nil {
		r.Refuse(backends.HostRef(h.Name), wish.PresentCheck(), "check the host: vCenter lists no pNIC at all",
			"no pNIC matches%s: it has no pNIC", r.label())
		return nil
	}
	near := choice.Nearest.Main()
	if eligible := choice.Eligible(); len(eligible) > 1 && near.Check == "" {
		r.Refuse(backends.HostRef(h.Name), "", "choose one by nic.device or nic.macs", "several pNICs match%s: %s", r.label(),
			strings.Join(devices(eligible), ", "))
		return nil
	}
	if near.Fault == backends.SwitchedOff {
		var names []string
		for _, v := range choice.Verdicts {
			if v.Main().Fault == near.Fault {
				names = append(names, v.NIC.Device+" ("+v.Why()+")")
			}
		}
		r.Refuse(backends.HostRef(h.Name), "", "choose one by nic.device", "several ports match%s, and the plan can change what each lacks: %s",
			r.label(), strings.Join(names, ", "))
		return nil
	}
	if n := choice.Nearest.NIC; len(choice.Eligible()) > 0 {
		r.Refuse(backends.HostRef(h.Name), near.Check, near.Remedy+"; to take another pNIC, name it by nic.macs", "%s, the uplink of %s, %s",
			n.Device, n.Switch, near.Why)
		return nil
	}
	var seen []string
	for _, v := range choice.Verdicts {
		if v.Meant() || len(choice.Verdicts) <= 8 {
			seen = append(seen, v.NIC.Device+" "+v.Why())
		}
	}
	if near.Fault == backends.InUse && !r.WholeCard() {
		near.Remedy += "; --force-nic HOST/" + choice.Nearest.NIC.Device + " selects it anyway"
	}
	if wish.AllowNoHCA = r.Answers.MayLackHCA(); backends.NoHCA(h.Host, wish) {
		near.Remedy += "; or set pvrdma.allow_no_hca: true for a host without an RDMA card, whose VMs use TCP to other hosts"
	}
	r.Refuse(backends.HostRef(h.Name), near.Check, near.Remedy, "no pNIC matches%s: %s", r.label(), strings.Join(seen, "; "))
	return nil
}

// forced returns the pNIC that the operator forces: only its use can rule it out.
func (r *rail) forced(h *draft.Host) (*backends.NIC, bool) {
	for _, spec := range r.Options.ForceNIC {
		i := strings.LastIndex(spec, "/")
		if i < 0 || spec[:i] != h.Name {
			continue
		}
		if r.elsewhere(h, spec[i+1:]) {
			continue
		}
		n, wish := h.NIC(spec[i+1:]), sizing.PNICWish(r.view, h.Name)
		if n == nil {
			names := backends.Each(h.NICs, func(n backends.NIC) string { return n.Device })
			r.Refuse(backends.HostRef(h.Name), wish.PresentCheck(), "name one of: "+strings.Join(names, ", "),
				"--force-nic names %q, which the host does not have", spec[i+1:])
			return nil, true
		}
		wish.MAC, wish.Device, wish.Driver, wish.SpeedMbps = "", n.Device, n.Driver, 0
		all := backends.ChoosePNIC(h.Host, wish).Verdicts
		v := all[slices.IndexFunc(all, func(v backends.PNICVerdict) bool { return v.NIC.Device == n.Device })]
		switch main := v.Main(); {
		case v.Choosable():
		case !v.Eligible() && main.Fault != backends.InUse:
			r.Refuse(backends.HostRef(h.Name), main.Check, main.Remedy, "--force-nic %s: it %s", n.Device, main.Why)
			return nil, true
		case !v.Eligible() && r.WholeCard():
			r.Refuse(backends.HostRef(h.Name), main.Check, main.Remedy, "--force-nic %s: it %s; a card that the host uses cannot be passed through",
				n.Device, main.Why)
			return nil, true
		case n.Use.Opaque:
			r.Refuse(backends.HostRef(h.Name), main.Check, "take it out of "+n.Switch+" in NSX Manager first",
				"--force-nic %s: it %s; vCenter cannot remove it", n.Device, main.Why)
			return nil, true
		case lastOfManagement(h, n):
			r.Refuse(backends.HostRef(h.Name), main.Check,
				"give "+n.Switch+" another uplink with link, make sure that the host stays reachable over it, then try again",
				"--force-nic %s: it %s, where no other uplink has link: vCenter would lose the host", n.Device, main.Why)
			return nil, true
		case !v.Eligible():
			r.Note("%s: %s is used because of --force-nic; it %s, and that traffic on it stops", h.Name, n.Device, main.Why)
		}
		return n, true
	}
	return nil, false
}

// lastOfManagement reports whether taking this pNIC would cut off the host's management: that cannot be forced. vCenter reverts
// such a change only if its network rollback is enabled (vSphere Networking, Networking Rollback).
func lastOfManagement(h *draft.Host, n *backends.NIC) bool {
	return slices.Contains(n.Roles, "management") && !slices.ContainsFunc(h.NICs, func(o backends.NIC) bool {
		return o.Device != n.Device && o.Switch == n.Switch && o.SpeedMbps > 0
	})
}

func devices(ns []*backends.NIC) []string {
	out := backends.Each(ns, func(n *backends.NIC) string { return n.Device })
	slices.Sort(out)
	return out
}

// Choose returns the pNIC that the answers select on each named host (device by host name), by the same rule as Build. Hosts
// without a unique choice are left out.
func Choose(a *answers.Answers, inv *backends.Inventory) map[string]string {
	picks := map[string]string{}
	for _, name := range a.Hosts.Names {
		h := inv.Host(name)
		if h == nil {
			continue
		}
		b := newBuilder(a, inv, plan.Options{})
		if n := b.rail(0).chooseNIC(&draft.Host{Host: h}); n != nil {
			picks[name] = n.Device
		}
	}
	return picks
}
