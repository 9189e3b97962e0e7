package engine

import (
	"context"

	"github.com/rdma-setup/rdma-setup/backends"
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
		if t := machine(n.target); n.state == "" && (n.around == nil || !n.around.Proof) && !seen[t] && !held[t] {
			seen[t] = true
			targets = append(targets, t)
		}
	}
	busy, err := s.runner.others(ctx, targets)
	if err != nil {
		s.note("the tasks of other users could not be read: %v", err)
		return
	}
	for _, n := range s.nodes {
		if why := busy[machine(n.target)]; why != nil && n.state == "" && !n.closes {
			s.settle(n, outcome{state: NodeFailed, err: why})
		}
	}
}

func (r *runner) others(ctx context.Context, targets []backends.Ref) (map[backends.Ref]error, error) {
	if r.job.Busy == nil || len(targets) == 0 {
		return nil, nil
	}
	return guard(ctx, r.limits.Bracket, r.limits.Grace, "", "read the tasks of other users", func(ctx context.Context) (map[backends.Ref]error, error) {
		return r.job.Busy(ctx, targets)
	})
}

// mine refuses to take a VM or host out of service that someone else has moved since the plan was made, or is using.
func (d *operation) mine(ctx context.Context, b *bracket, state backends.Value) error {
	if b.inherited {
		return nil
	}
	if !b.From.IsAbsent() && b.Round < 2 && elsewhere(b.From, state) {
		return backends.Errorf(backends.KindConflict, b.Target.Name, "Somebody else is working on this target. Agree with them who continues, then run rdma-setup resume.",
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
