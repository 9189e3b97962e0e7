package engine

import (
	"context"
	"slices"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/engine/journal"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
)

// begun returns the wave that an opening starts, nil if it starts none or there is no gate.
func (s *stage) begun(n *node) *Wave {
	b := n.around
	if s.job.Gate == nil || n.closes || b.inherited {
		return nil
	}
	w := &Wave{Back: slices.Clone(s.runner.back), Earlier: slices.Clone(s.runner.earlier)}
	add := func(t backends.Ref) {
		if !slices.Contains(w.Next, t) {
			w.Next = append(w.Next, t)
		}
		same := func(back backends.Ref) bool { return back == t }
		w.Back, w.Earlier = slices.DeleteFunc(w.Back, same), slices.DeleteFunc(w.Earlier, same)
	}
	host, wave := b.host()
	switch {
	case wave && s.down[host] > 0 || !wave && !s.begins(b):
		return nil
	case wave:
		add(host)
		for _, m := range s.nodes {
			if h, in := hostOf(m); in && h == host && m.around.outage() {
				add(m.target)
			}
		}
	default:
		for _, m := range b.group.members {
			add(m.Target)
		}
	}
	return w
}

// waveOf returns the identity of a wave: the host, or the group of VMs that are off together.
func waveOf(b *bracket) any {
	if host, wave := b.host(); wave {
		return host
	}
	return b.group
}

// A bar keeps the rest of a wave in service after its first opening did not pass the gate.
type bar struct {
	how admission // never, tooLate
	by  string
}

// await waits for the gate. It returns the outcome of an opening that may not begin: the gate refuses, the operator has stopped
// the run, or the window has become too short.
func (d *operation) await() (o outcome, may bool) {
	n := d.nodes[0]
	_, err := guard(d.gates, 0, d.limits.Grace, n.target.Name, n.title, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, d.job.Gate(ctx, *d.gate, d.say)
	})
	switch {
	case d.gates.Err() != nil:
		return outcome{state: NodePending, recalled: true}, false
	case err != nil:
		return outcome{state: NodeFailed, err: err, bars: never}, false
	case d.outlasts(d.needs):
		return outcome{state: NodePending, bars: tooLate}, false
	}
	select {
	case d.msgs <- message{nodes: d.nodes, passed: true}:
	case <-d.over:
	}
	return outcome{}, true
}

func hostOf(n *node) (backends.Ref, bool) {
	if n.around == nil || !n.closes {
		return backends.Ref{}, false
	}
	return n.around.host()
}

// returned records a host that is back in service, or a VM that is on again.
func (r *runner) returned(b *bracket) {
	if !b.down() && (!b.outage() || b.leave == backends.ValueOf("poweredOff")) || slices.Contains(r.back, b.Target) {
		return
	}
	r.back = append(r.back, b.Target)
}

// returnedBefore returns the hosts that earlier attempts have taken out of service and brought back.
func returnedBefore(st *journal.State) []backends.Ref {
	var out []backends.Ref
	for _, rec := range st.Records {
		k := backends.BracketKind(rec.Kind)
		if rec.Type == journal.TypeClosed && rec.OK && plan.TakesHostDown(k) && !slices.Contains(out, rec.Target) {
			out = append(out, rec.Target)
		}
	}
	return out
}

// switchedOn returns the VMs that earlier attempts of the same phase have powered on after their power cycle.
func switchedOn(st *journal.State, phase journal.Phase) []backends.Ref {
	var out []backends.Ref
	for _, rec := range st.Records {
		if rec.Type != journal.TypeClosed || backends.BracketKind(rec.Kind) != backends.BracketVMPower || rec.Phase != phase {
			continue
		}
		out = slices.DeleteFunc(out, func(t backends.Ref) bool { return t == rec.Target })
		if rec.OK && slices.Contains(rec.Found, backends.ValueOf("poweredOn")) {
			out = append(out, rec.Target)
		}
	}
	return out
}

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
