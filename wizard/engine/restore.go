package engine

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/engine/journal"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
)

// Observe makes the Keepers observe the current state of the recorded items in a journal: one setting of a target at a time, for
// at most parallel targets. It returns the observations by the ids of the changes.
func Observe(ctx context.Context, setters map[backends.Kind]backends.Setter, priors []plan.Prior,
	parallel int) map[string]plan.Observation {
	targets := map[backends.Ref][]plan.Prior{}
	for _, p := range priors {
		if _, ok := backends.As[backends.Keeper](setters[p.Change.Kind]); ok && p.Kept != nil && len(p.Kept.Items) > 0 {
			targets[p.Change.Target] = append(targets[p.Change.Target], p)
		}
	}
	out := map[string]plan.Observation{}
	var mu sync.Mutex
	var g errgroup.Group
	g.SetLimit(max(parallel, 1))
	for _, settings := range targets {
		g.Go(func() error {
			for _, p := range settings {
				s := p.Change.Setting
				keeper, _ := backends.As[backends.Keeper](setters[s.Kind])
				now, err := guard(ctx, 0, Limits{}.withDefaults().Grace, s.Target.Name, "observe "+s.ID(),
					func(ctx context.Context) (backends.Kept, error) {
						return keeper.Observe(ctx, s, p.Kept.Bare())
					})
				mu.Lock()
				out[s.ID()] = plan.Observation{Now: now, Err: err}
				mu.Unlock()
			}
			return nil
		})
	}
	_ = g.Wait() // the errors are in out
	return out
}

// recorded returns the Keeper of a change and what it recorded before the run, if a rollback restores from that.
func (d *operation) recorded(n *node) (backends.Keeper, *backends.Kept) {
	if d.phase != journal.PhaseRollback {
		return nil, nil
	}
	keeper, ok := backends.As[backends.Keeper](d.job.Setters[n.change.Kind])
	kept := d.kept[n.id].kept
	if !ok || kept == nil {
		return nil, nil
	}
	return keeper, kept
}

// restore restores a recorded setting: it observes, journals what it is about to restore, restores, and observes again. It
// succeeds only if no item differs from the record, except for those that the operator keeps.
func (d *operation) restore(ctx context.Context, n *node, moved bool, keeper backends.Keeper, kept backends.Kept) outcome {
	c := n.change
	part := kept.Without(c.Leave)
	observe := func() (backends.Kept, error) {
		return guard(ctx, d.limits.Operation, d.limits.Grace, n.target.Name, "observe "+n.id, func(ctx context.Context) (backends.Kept, error) {
			return keeper.Observe(ctx, c.Setting, part.Bare())
		})
	}
	before, err := observe()
	if err != nil {
		return outcome{state: NodeFailed, err: err}
	}
	differ := backends.Differences(part, before)
	if len(differ) == 0 {
		return outcome{state: NodeSkipped, prior: &c.To, found: &c.To, text: "it is already in this state"}
	}
	planned := func(d backends.Difference) bool { return slices.Contains(c.Restore, d) }
	if other := slices.DeleteFunc(slices.Clone(differ), planned); len(other) > 0 && !moved {
		return outcome{state: NodeFailed, err: backends.Conflictf(n.target.Name,
			"Agree with whoever changed it, then run rdma-setup rollback again.", "%s: changed since the plan was made: %s", n.title, list(other))}
	}
	touched := part.Bare()
	if err := d.append(journal.Record{
		Type: journal.TypeIntent, Node: n.id, Target: n.target, Kind: string(c.Kind), Name: c.Name, Prior: c.From, To: c.To, Kept: &touched,
	}); err != nil {
		return outcome{state: NodePending, prior: &c.From, journal: err}
	}
	o := outcome{state: NodeDone, prior: &c.From, begun: true}
	_, o.err = guard(ctx, d.limits.Operation, d.limits.Grace, n.target.Name, n.title, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, keeper.Restore(ctx, c.Setting, part, d.progress)
	})
	var left *backends.Kept
	if ctx.Err() == nil {
		if after, err := observe(); err == nil {
			after = after.Bare()
			left = &after
		} else if o.err == nil {
			o.err = err
		}
	}
	var lost backends.Unobtainable
	yield := c.Yield && left != nil && errors.As(o.err, &lost) && lost.Only(backends.Differences(part, *left))
	if yield {
		o.text, o.err = "kept: "+o.err.Error(), nil
	} else {
		o.err = d.judge(n, part, left, o.err)
	}
	switch {
	case yield:
	case o.err != nil:
		o.state = NodeFailed
	case len(c.Leave) == 0:
		o.found = &c.To
	}
	o.journal = d.append(journal.Record{
		Type: journal.TypeOutcome, Node: n.id, Target: n.target, Kind: string(c.Kind), Name: c.Name,
		Found: o.read(), Left: left, OK: o.err == nil, Err: text(o.err), Hint: backends.HintOf(o.err),
	})
	return o
}

// judge returns the error of a restored setting from what was observed afterwards, nil if everything is as recorded.
func (d *operation) judge(n *node, part backends.Kept, left *backends.Kept, err error) error {
	if left == nil {
		if err == nil {
			err = backends.Interruptedf(n.target.Name, "Run rdma-setup rollback again.",
				"%s: interrupted before the result was read", n.title)
		}
		return err
	}
	const repair = "Fix the cause, then run rdma-setup rollback again."
	remain := backends.Differences(part, *left)
	switch {
	case len(remain) == 0:
		return nil
	case err != nil:
		hint := cmp.Or(backends.HintOf(err), repair)
		return backends.Errorf(backends.KindOf(err), "", hint, "%w; different from before: %s", err, list(remain))
	}
	return backends.Permanentf(n.target.Name, repair,
		"%s: the restore succeeded, but some items still differ: %s", n.title, list(remain))
}

func list(ds []backends.Difference) string {
	return strings.Join(plan.Differences(ds), "; ")
}
