package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/engine/journal"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
)

// A target that does not answer is a conflict of KindUnreachable in the plan, which has no changes for it. What an earlier attempt
// has left open on it is closed when it answers, beside the work on all others. If it comes back after its limit, the rest of it is
// tried once more at the end.

// expectAway notes which targets of a plan do not answer.
func (r *runner) expectAway(p *plan.Plan) {
	r.away = map[backends.Ref]plan.Refusal{}
	for _, c := range p.Conflicts {
		if c.Kind == backends.KindUnreachable {
			r.away[c.Target], r.gone[c.Target] = c, true
		}
	}
}

func (r *runner) isAway(t backends.Ref) bool {
	_, is := r.away[t]
	return is
}

// wasGone reports whether a bracket is for a target that did not answer at some time, or around the reboot of one.
func (r *runner) wasGone(b plan.Bracket) bool {
	return r.gone[b.Target] || slices.ContainsFunc(b.Around, func(id string) bool {
		return slices.ContainsFunc(slices.Collect(maps.Keys(r.gone)), func(t backends.Ref) bool { return strings.HasPrefix(id, t.String()+"/") })
	})
}

func waitID(t backends.Ref) string { return journal.WaitPrefix + t.String() }

// awaited returns the targets that a plan waits for and that were not waited for in this attempt yet.
func (r *runner) awaited(p *plan.Plan) []plan.Refusal {
	if r.job.Return == nil || r.job.SkipUnreachable {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(p.Conflicts), func(c plan.Refusal) bool {
		_, failed := r.failed[c.Target]
		_, tried := r.known[waitID(c.Target)]
		return c.Await <= 0 || failed || tried
	})
}

// withWaits adds a node for each target that the plan waits for, unless the closing of a bracket that is left over waits for it: that
// of a reboot for its host, that of a power cycle for its guest.
func (r *runner) withWaits(nodes []*node, p *plan.Plan) []*node {
	var waits []*node
	for _, c := range r.awaited(p) {
		closed := slices.ContainsFunc(nodes, func(n *node) bool {
			return n.closes && n.around.inherited && n.target == machine(c.Target) &&
				(c.Target.Type == backends.TypeGuest || n.around.Kind == backends.BracketReboot)
		})
		if !closed {
			waits = append(waits, &node{id: waitID(c.Target), target: c.Target, title: "wait until it answers", wait: true, most: c.Await})
		}
	}
	all := append(waits, nodes...)
	for i, n := range all {
		n.index = i
	}
	return all
}

func (d *operation) answer(ctx context.Context) outcome {
	n := d.nodes[0]
	_, err := guard(ctx, d.limits.within(n.most), d.limits.Grace, n.target.Name, n.title, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, d.job.Return(ctx, n.target)
	})
	if err != nil {
		return outcome{state: NodeFailed, err: err}
	}
	return outcome{state: NodeDone}
}

// within returns a limit, or the shorter one of the operator.
func (l Limits) within(limit time.Duration) time.Duration {
	if l.Operation > 0 {
		return min(limit, l.Operation)
	}
	return limit
}

// waitsForTarget reports whether a node only waits for a target that does not answer. It changes nothing meanwhile, so that a stop or a
// skip ends it at once.
func (s *stage) waitsForTarget(n *node) bool { return n.wait || n.closes && s.isAway(n.target) }

func (s *stage) stopWaits(which func(*node) bool) {
	for _, n := range s.nodes {
		if n.running && n.cancel != nil && which(n) {
			n.cancel()
		}
	}
}

// afterWait returns the outcome of a wait that was ended by a stop or a skip.
func (s *stage) afterWait(n *node, o outcome) outcome {
	if n.cancel == nil {
		return o
	}
	n.cancel()
	n.cancel = nil
	switch why, skipped := s.failed[n.target]; {
	case o.state != NodeFailed || backends.KindOf(o.err) != backends.KindInterrupted:
	case s.halted:
		o.state, o.err = NodePending, nil
	case skipped:
		o.state, o.err = NodeBlocked, errors.New(why)
	}
	return o
}

// unreached says why a closing on a target that does not answer is not tried, "" if it is.
func (s *stage) unreached(n *node) string {
	if !s.isAway(n.target) || !n.around.inherited {
		return ""
	}
	if s.job.SkipUnreachable {
		return s.away[n.target].Why + "; skipped by --skip-unreachable"
	}
	if why, skipped := s.failed[n.target]; skipped && strings.HasPrefix(why, skippedBy) {
		return why
	}
	for _, in := range n.around.inner {
		if n.target.Type == backends.TypeVM && in.shut.state != NodeDone && s.isAway(in.Target) {
			return fmt.Sprintf("%s is not back", in.Target.Name)
		}
	}
	return ""
}

// settleReturned reads the results of unfinished operations on the targets that a stage has waited for.
func (r *runner) settleReturned(ctx context.Context, s *stage) error {
	back := map[backends.Ref]bool{}
	for _, n := range s.nodes {
		if (n.wait || n.closes && r.isAway(n.target)) && n.state == NodeDone {
			back[machine(n.target)] = true
		}
	}
	if len(back) == 0 {
		return nil
	}
	unsettled, err := r.settleIntents(ctx, r.job.Journal.State(), func(t backends.Ref) bool { return back[machine(t)] })
	return cmp.Or(err, unsettled)
}

// returnedLate allows, once, the changes of targets that did not answer in their time and do now, and adds what was left open.
func (r *runner) returnedLate(p *plan.Plan) bool {
	if r.last || !r.again {
		return false
	}
	for t := range r.gone {
		if _, failed := r.failed[t]; failed && !r.isAway(t) && !strings.HasPrefix(r.failed[t], skippedBy) {
			r.forgive(t)
			r.drop(func(n NodeResult) bool { return n.ID == waitID(t) })
			r.last = true
		}
	}
	if r.last {
		*p = r.withLeftovers(*p)
	}
	return r.last
}
