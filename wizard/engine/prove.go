package engine

import (
	"context"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/engine/journal"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
)

// A ProofError lists the hosts, and the guests of Job.Refused, whose login failed. No change was started.
type ProofError struct{ Refused plan.Refused }

// Error implements error.
func (e *ProofError) Error() string { return e.Refused.Error() }

// Unwrap returns the hosts, each with its reason and remedy.
func (e *ProofError) Unwrap() error { return &e.Refused }

// prove opens and closes the shell of every host that the plan logs in to, on all hosts concurrently, before anything else: the
// bracket logs in once the SSH service runs. It is journalled like any other bracket, so that the next attempt closes what a
// killed one leaves open.
func (r *runner) prove(ctx context.Context, p plan.Plan) error {
	shells := r.shells(p)
	failed := plan.Refused{Refusals: slices.Clone(r.job.Refused)}
	if len(shells) == 0 && len(failed.Refusals) == 0 {
		return nil
	}
	s, err := newStage(r, &plan.Plan{Mode: p.Mode, Brackets: shells})
	if err != nil {
		return err
	}
	s.run(ctx)
	if ctx.Err() != nil {
		s.putBack(ctx)
	}
	r.account(p, s)
	if r.halted {
		r.unverified = true
		return r.broken
	}
	of := map[string]bool{}
	for _, n := range s.nodes {
		of[n.id] = true
		if i, known := r.known[n.id]; known && n.state == NodeFailed {
			err := r.result.Nodes[i].Err
			if r.phase == journal.PhaseRollback && away(err) {
				of[n.id] = false
				continue
			}
			failed.Refusals = append(failed.Refusals, plan.Refusal{
				Target: n.target, Why: strings.TrimPrefix(err.Error(), n.target.Name+": "), Remedy: backends.HintOf(err), Kind: backends.KindOf(err),
			})
		}
	}
	if len(failed.Refusals) > 0 {
		r.unproven = true
		return &ProofError{failed}
	}
	r.drop(func(n NodeResult) bool { return of[n.ID] })
	return nil
}

// away reports whether a host does not answer, which another password or key would not fix. A rollback continues without it: its
// changes are blocked, and the same command reverts them later.
func away(err error) bool {
	kind := backends.KindOf(err)
	return kind == backends.KindUnreachable || kind == backends.KindTransient
}

// putBack closes the brackets that a cancelled proof has left open. Brackets that cannot be closed in time stay open in the
// journal.
func (s *stage) putBack(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.limits.PutBack)
	defer cancel()
	over := make(chan struct{})
	close(over)
	var g errgroup.Group
	for _, n := range s.nodes {
		if n.closes && n.around.tried && n.state == NodePending {
			g.Go(func() error {
				d := &operation{runner: s.runner, nodes: []*node{n}, msgs: s.msgs, over: over}
				d.shut(ctx, n.around)
				return nil
			})
		}
	}
	_ = g.Wait() // the journal shows what is still open
}

// shells returns an empty bracket for each host in whose shell the plan will work. A bracket that an earlier attempt left open,
// and that the plan does not need, is only closed.
func (r *runner) shells(p plan.Plan) []plan.Bracket {
	var out []plan.Bracket
	for _, b := range p.Brackets {
		proven := slices.ContainsFunc(out, func(o plan.Bracket) bool { return o.Target == b.Target })
		if was := r.open[b.ID()]; b.Kind != backends.BracketSSH || proven || was != nil && was.leftover {
			continue
		}
		if slices.ContainsFunc(p.Changes, func(c plan.Change) bool { return slices.Contains(c.Within, b.ID()) && !r.skip[c.ID()] }) {
			out = append(out, plan.Bracket{Kind: b.Kind, Target: b.Target, Round: b.Round, Leave: b.Leave, Proof: true,
				Why: "the log-in is tested before anything changes"})
		}
	}
	return out
}
