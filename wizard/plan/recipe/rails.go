package recipe

import (
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/plan/draft"
	"github.com/rdma-setup/rdma-setup/wizard/sizing"
)

// A rail plans one rail: its switch and port groups, and the pNIC of each host. PVRDMA needs a DVS for each, because the RDMA
// uplink must be the only one of its port group (VMware "PVRDMA Support").
type rail struct {
	*builder
	index int
	want  answers.Rail
	view  *answers.Answers // the answers for this rail only
}

func (b *builder) rail(i int) *rail {
	return &rail{builder: b, index: i, want: b.Rails[i], view: b.Answers.ForRail(i)}
}

// label returns the name of the rail for messages if there are several.
func (r *rail) label() string { return r.Answers.RailLabel(r.want.Name) }

func (b *builder) fabrics() {
	for i := range b.Rails {
		b.rail(i).fabric()
	}
	for _, h := range b.Hosts {
		b.apartOn(h)
		b.forcedForNone(h)
	}
	for _, v := range b.VMs {
		b.withoutRails(v)
	}
}

// port returns the pNIC of a host for the rail. A host without one is allowed for an optional rail and otherwise refused. It is
// also refused if it is on the rail's switch already: its VMs have adapters there, and its port was lost since.
func (r *rail) port(h *draft.Host) *backends.NIC {
	if !r.mayLack(h, r.want) {
		return r.chooseNIC(h)
	}
	before := len(r.Refusals)
	n := r.chooseNIC(h)
	if n == nil && len(r.Refusals) > before {
		why := r.Refusals[before].Why
		r.Refusals = r.Refusals[:before]
		r.NoteEach(h.Name, "[leaves|leave] the optional rail %s out: %s", r.want.Name, why)
	}
	return n
}

// elsewhere reports whether a pNIC that the operator forces belongs to another rail: the one whose description it matches.
func (r *rail) elsewhere(h *draft.Host, device string) bool {
	if !r.Answers.Several() {
		return false
	}
	i := slices.IndexFunc(h.NICs, func(n backends.NIC) bool { return n.Device == device })
	return i >= 0 && !backends.ChoosePNIC(h.Host, sizing.PNICWish(r.view, h.Name)).Verdicts[i].Meant()
}

func (b *builder) mayLack(h *draft.Host, r answers.Rail) bool {
	if !r.Optional {
		return false
	}
	sw := b.Inventory.Switch(r.Switch.Name)
	if sw == nil {
		return true
	}
	_, on := sw.Members[h.Name]
	return !on
}

// forcedForNone refuses a pNIC that the operator forces and that matches none of several rails.
func (b *builder) forcedForNone(h *draft.Host) {
	for _, spec := range b.Options.ForceNIC {
		i := strings.LastIndex(spec, "/")
		if i < 0 || spec[:i] != h.Name {
			continue
		}
		none := true
		for k := range b.Rails {
			none = none && b.rail(k).elsewhere(h, spec[i+1:])
		}
		if none {
			b.Refuse(backends.HostRef(h.Name), "", "describe it by the nic of a rail", "--force-nic %s: none of the rails describes it", spec[i+1:])
		}
	}
}

// apartOn refuses a host if two rails select the same pNIC.
func (b *builder) apartOn(h *draft.Host) {
	for i, n := range h.Ports {
		j := slices.IndexFunc(h.Ports[:i], func(o *backends.NIC) bool { return n != nil && o != nil && o.Device == n.Device })
		if j >= 0 {
			b.Refuse(backends.HostRef(h.Name), "", "tell them apart by rails[].nic: device, slot, numa, position or macs",
				"%s matches the rails %s and %s; rails never share a pNIC", n.Device, b.Rails[j].Name, b.Rails[i].Name)
		}
	}
}

// withoutRails removes the adapters of a VM for rails that its host lacks.
func (b *builder) withoutRails(v *draft.VM) {
	h := b.Part(v.Host)
	var out []string
	nets := slices.DeleteFunc(slices.Clone(v.Nets), func(n answers.Adapter) bool {
		i := b.RailOf(n)
		without := b.mayLack(h, b.Rails[i]) && b.Port(h, n) == nil
		if without {
			out = append(out, b.Rails[i].Name)
		}
		return without
	})
	switch {
	case len(out) == 0:
		return
	case len(nets) == 0:
		b.Refuse(backends.VMRef(v.Name), "", "move it to a host that has the rail, or remove it from vms",
			"%s leaves %s out, and it has no adapter on "+
				"another rail", h.Name, strings.Join(out, " and "))
	default:
		b.NoteEach(v.Name, "[gets|get] no adapter on %s, which %s leaves out", strings.Join(out, " and "), h.Name)
	}
	v.Nets = nets
}
