package engine

import (
	"slices"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
)

// A powerGroup is a group of power cycles of VMs that are off together, whatever the order of the rest: see plan.Together.
type powerGroup struct {
	members []*bracket
	started bool // one of them was opened: the slots of all are taken
}

// outage reports whether the bracket keeps a VM off that was on.
func (b *bracket) outage() bool {
	return b.Kind == backends.BracketVMPower && (b.Effect == plan.VMPowerCycle || b.inherited)
}

// powerGroups assigns every power cycle to its group. Those that an earlier attempt has opened already use slots.
func powerGroups(p *plan.Plan, byID map[string]*bracket) {
	for _, ids := range plan.Together(p.Brackets, p.Changes) {
		g := &powerGroup{}
		for _, id := range ids {
			b := byID[id]
			b.group = g
			g.members = append(g.members, b)
			g.started = g.started || b.inherited
		}
	}
}

// off returns the number of members that are off, or will be: closing one frees its slot.
func (g *powerGroup) off() int {
	n := 0
	for _, b := range g.members {
		if b.outage() && b.shut.state == "" {
			n++
		}
	}
	return n
}

// mayGoOff reports whether a VM may be powered off now: Limits.VMsOff counts over all hosts. A group that exceeds the limit is
// powered off on its own, as the plan says. VMs that must not be off together wait for each other.
func (s *stage) mayGoOff(b *bracket) bool {
	if b.group == nil || b.group.started || !slices.ContainsFunc(b.group.members, (*bracket).outage) {
		return true
	}
	if s.powerFailed != "" {
		return false
	}
	off := 0
	s.off = slices.DeleteFunc(s.off, func(g *powerGroup) bool { return g.off() == 0 })
	for _, g := range s.off {
		if g.sharesApart(b.group) {
			return false
		}
		off += g.off()
	}
	return s.limits.VMsOff <= 0 || off == 0 || off+b.group.off() <= s.limits.VMsOff
}

// sharesApart reports whether a member that is off must not be off together with one of another group.
func (g *powerGroup) sharesApart(other *powerGroup) bool {
	for _, b := range g.members {
		if !b.outage() || b.shut.state != "" {
			continue
		}
		for _, o := range other.members {
			if slices.ContainsFunc(b.Apart, func(name string) bool { return slices.Contains(o.Apart, name) }) {
				return true
			}
		}
	}
	return false
}
