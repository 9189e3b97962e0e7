package engine

import (
	"slices"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/engine/journal"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
)

// gated gives the wave that an opening begins, nil where it begins none or nobody is asked.
func (s *stage) gated(n *node) *Wave {
	b := n.around
	if s.job.Gate == nil || n.closes || b.inherited {
		return nil
	}
	w := &Wave{Back: slices.Clone(s.runner.back)}
	add := func(t backends.Ref) {
		if !slices.Contains(w.Next, t) {
			w.Next = append(w.Next, t)
		}
		w.Back = slices.DeleteFunc(w.Back, func(back backends.Ref) bool { return back == t })
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

func hostOf(n *node) (backends.Ref, bool) {
	if n.around == nil || !n.closes {
		return backends.Ref{}, false
	}
	return n.around.host()
}

// returned remembers a host that is back in service, or a VM that is on again.
func (r *runner) returned(b *bracket) {
	if !b.down() && (!b.outage() || b.leave == backends.ValueOf("poweredOff")) || slices.Contains(r.back, b.Target) {
		return
	}
	r.back = append(r.back, b.Target)
}

// returnedBefore gives the hosts that attempts before have taken out of service and brought back.
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
