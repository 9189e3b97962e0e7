package engine

import (
	"context"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/engine/journal"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
)

// machine returns the target for which Busy is called: for a guest it is its VM.
func machine(t backends.Ref) backends.Ref {
	if t.Type == backends.TypeGuest {
		return backends.VMRef(t.Name)
	}
	return t
}

// yield fails the nodes of targets that are in use by others, before anything is changed. A target with a bracket that an earlier
// attempt has left open belongs to this run.
func (s *stage) yield(ctx context.Context) {
	if s.job.Busy == nil {
		return
	}
	held := map[backends.Ref]bool{}
	for _, b := range s.open {
		held[b.Target] = true
	}
	seen := map[backends.Ref]bool{}
	var targets []backends.Ref
	for _, n := range s.nodes {
		if n.state != "" || n.around != nil && n.around.Proof {
			continue
		}
		for _, t := range s.uses(n) {
			if !seen[t] && !held[t] {
				seen[t] = true
				targets = append(targets, t)
			}
		}
	}
	busy, err := s.runner.others(ctx, targets)
	if err != nil {
		s.note("the tasks of other users could not be read: %v", err)
		for _, n := range s.nodes {
			if _, creating := s.creation(n); creating && n.state == "" { // a task of the earlier attempt may still do it
				s.settle(n, outcome{state: NodeFailed, err: err})
			}
		}
		return
	}
	for _, n := range s.nodes {
		if n.state != "" || n.closes {
			continue
		}
		for _, t := range s.uses(n) {
			if why := busy[t]; why != nil {
				s.settle(n, outcome{state: NodeFailed, err: why})
			}
		}
	}
}

// uses returns the targets that others must not be using when a node starts. After an earlier attempt, a task on the switch may
// still create a missing port group.
func (s *stage) uses(n *node) []backends.Ref {
	if rec, creating := s.creation(n); creating {
		return entities(rec)
	}
	return []backends.Ref{machine(n.target)}
}

// creation returns the operation of a node that creates its target after an earlier attempt, which may have tried the same.
func (s *stage) creation(n *node) (rec journal.Record, is bool) {
	c := n.change
	if c == nil || !s.again {
		return rec, false
	}
	rec = journal.Record{Target: n.target, Kind: string(c.Kind), Name: c.Name, Prior: c.From, To: c.To}
	return rec, creates(rec)
}

func (r *runner) others(ctx context.Context, targets []backends.Ref) (map[backends.Ref]error, error) {
	if r.job.Busy == nil || len(targets) == 0 {
		return nil, nil
	}
	return guard(ctx, r.limits.Bracket, r.limits.Grace, "", "read the tasks of other users",
		func(ctx context.Context) (map[backends.Ref]error, error) {
			return r.job.Busy(ctx, targets)
		})
}

// mine refuses to take a VM or host out of service that someone else has moved since the plan was made, or is using.
func (d *operation) mine(ctx context.Context, b *bracket, state backends.Value) error {
	if b.inherited {
		return nil
	}
	if !b.From.IsAbsent() && b.Round < 2 && elsewhere(b.From, state) {
		return backends.Conflictf(b.Target.Name,
			"Somebody else is working on this target. Agree with them who continues, then run rdma-setup resume.",
			"%s: changed since the plan was made: it was %s and is %s", plan.OpenTitle(b.Bracket), b.From, state)
	}
	if b.Kind == backends.BracketSSH {
		return nil
	}
	busy, err := d.runner.others(ctx, []backends.Ref{b.Target})
	if err != nil {
		return err
	}
	return busy[b.Target]
}

// elsewhere reports whether a state differs from the expected one; of an object only the expected members count.
func elsewhere(expected, state backends.Value) bool {
	var want, is map[string]any
	if expected.Decode(&want) != nil || state.Decode(&is) != nil {
		return expected != state
	}
	for key, v := range want {
		if is[key] != v {
			return true
		}
	}
	return false
}

// grounds reads the facts that caused a lasting refusal; "" for other failures, and if they cannot be read.
func (d *operation) grounds(ctx context.Context, n *node, failure error) string {
	if d.job.Grounds == nil || !backends.IsLasting(failure) || ctx.Err() != nil {
		return ""
	}
	text, err := d.groundsOf(ctx, n.target)
	if err != nil {
		return ""
	}
	return text
}

func (r *runner) groundsOf(ctx context.Context, t backends.Ref) (string, error) {
	return guard(ctx, r.limits.Operation, r.limits.Grace, t.Name, "read what the refusal depends on",
		func(ctx context.Context) (string, error) {
			return r.job.Grounds(ctx, t)
		})
}

// spare fails, before anything is powered off, the changes of running VMs that an earlier attempt has powered off without success:
// the change was refused because of the configuration of the VM or its host, the same value is requested, and none of the facts
// that caused the refusal has changed. Another attempt would only repeat the outage.
func (s *stage) spare(ctx context.Context) {
	if !s.again || s.number > 1 || s.job.Grounds == nil || s.job.Insist {
		return
	}
	last := s.refusals()
	now := map[backends.Ref]string{}
	for _, n := range s.nodes {
		rec, refused := last[n.id]
		if !refused || n.state != "" || n.change == nil || rec.To != n.change.To ||
			!slices.ContainsFunc(n.within, func(b *bracket) bool { return b.outage() && !b.inherited }) {
			continue
		}
		is, read := now[n.target]
		if !read {
			var err error
			if is, err = s.groundsOf(ctx, n.target); err != nil {
				s.note("%s: whether the cause of the failure is gone could not be read: %v", n.target.Name, err)
			}
			now[n.target] = is
		}
		if is != rec.Grounds {
			continue
		}
		hint := "Remove the cause, then run it again, or add --insist to try anyway."
		if rec.Hint != "" {
			hint = strings.TrimSuffix(rec.Hint, ".") + ". Add --insist to try anyway."
		}
		s.settle(n, outcome{state: NodeFailed, err: backends.Refusedf(n.target.Name, hint,
			"not powered off again: %s failed in the attempt before, and nothing that it depends on has changed since (%s): %s", n.title, is,
			strings.TrimPrefix(rec.Err, n.target.Name+": "))})
	}
}

// refusals returns the last outcomes of changes in this phase that are lasting refusals.
func (r *runner) refusals() map[string]journal.Record {
	out := map[string]journal.Record{}
	for _, rec := range r.job.Journal.State().Records {
		switch {
		case rec.Phase != r.phase:
		case rec.Type == journal.TypeIntent:
			out[rec.Node] = journal.Record{To: rec.To}
		case rec.Type == journal.TypeOutcome && rec.Grounds != "":
			rec.To = out[rec.Node].To
			out[rec.Node] = rec
		case rec.Type == journal.TypeOutcome:
			delete(out, rec.Node)
		}
	}
	for node, rec := range out {
		if rec.Grounds == "" {
			delete(out, node)
		}
	}
	return out
}
