package engine

import (
	"slices"
	"strings"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/engine/journal"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
)

// class returns what steps are timed by: all openings of one kind of bracket, all changes of one kind.
func class(n *node) string {
	switch {
	case n.wait:
		return "wait"
	case n.change != nil:
		return string(n.change.Kind)
	case n.closes:
		return "close " + string(n.around.Kind)
	case n.around.InMaintenance():
		return "open in maintenance mode"
	}
	return "open " + string(n.around.Kind)
}

// expect returns the estimated duration of a step: that of the longest of its kind in this attempt, else the plan's.
func (s *stage) expect(n *node) time.Duration {
	took, known := s.took[class(n)]
	switch {
	case known:
		return took
	case n.wait:
		return 0
	case n.change != nil:
		return plan.ExpectedChange(n.change.Kind)
	case n.closes:
		return plan.ExpectedClose(n.around.Bracket)
	}
	return plan.ExpectedOpen(n.around.Bracket)
}

// rest returns the estimated remaining time of a target.
func (s *stage) rest(t backends.Ref) time.Duration {
	sum := time.Duration(0)
	if l := s.lanes[t]; l != nil {
		for _, n := range l.nodes {
			if n.state == "" && !s.deferred(n) {
				sum += s.expect(n)
			}
		}
	}
	return sum
}

// hostWave returns how long a host and the VMs that are off for it are expected to be out of service.
func (s *stage) hostWave(host backends.Ref) time.Duration {
	if s.limits.Until.IsZero() {
		return 0
	}
	vms := time.Duration(0)
	for _, n := range s.nodes {
		if n.closes && n.around.Kind == backends.BracketVMPower {
			if h, wave := n.around.host(); wave && h == host {
				vms = max(vms, s.rest(n.target)+s.rest(backends.GuestRef(n.target.Name)))
			}
		}
	}
	return s.rest(host) + vms
}

// powerWave returns how long the VMs of a group are expected to be off, including setting up their guests.
func (s *stage) powerWave(g *powerGroup) time.Duration {
	longest := time.Duration(0)
	if s.limits.Until.IsZero() {
		return 0
	}
	for _, b := range g.members {
		longest = max(longest, s.rest(b.Target)+s.rest(backends.GuestRef(b.Target.Name)))
	}
	return longest
}

// begins reports whether opening a power cycle starts a wave.
func (s *stage) begins(b *bracket) bool {
	return b.group != nil && !b.group.started && slices.ContainsFunc(b.group.members, (*bracket).outage)
}

// needs returns the estimated duration of the wave of an opening.
func (s *stage) needs(b *bracket) time.Duration {
	if host, wave := b.host(); wave {
		return s.hostWave(host)
	}
	return s.powerWave(b.group)
}

// outlasts reports whether a wave cannot be finished and undone before the window ends: undoing takes equally long. A rollback
// needs its time only once.
func (r *runner) outlasts(wave time.Duration) bool {
	if r.phase != journal.PhaseRollback {
		wave *= 2
	}
	return !r.limits.Until.IsZero() && r.now().Add(wave).After(r.limits.Until)
}

// postpone leaves a wave for another window.
func (s *stage) postpone(n *node) {
	name := n.target.Name
	if host, wave := n.around.host(); wave {
		name = host.Name
	}
	if !slices.Contains(s.runner.left, name) {
		s.runner.left = append(s.runner.left, name)
	}
	s.late = true
	s.settle(n, outcome{state: NodePending})
}

// noteLate records the changes that are left for another window, and how to continue.
func (r *runner) noteLate() {
	if !r.late {
		return
	}
	slices.Sort(r.left)
	names, more := r.left, ""
	if len(names) > 5 {
		names, more = names[:5], ", ..."
	}
	r.note("the window ends at %s (run.window.until): not started: %s%s (%d in total); in the next window: %s",
		r.limits.Until.Format("2006-01-02 15:04 MST"), strings.Join(names, ", "), more, len(r.left), r.phase.Continue(r.result.Run))
}
