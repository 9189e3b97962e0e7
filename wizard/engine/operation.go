package engine

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/engine/journal"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
	"github.com/rdma-setup/rdma-setup/wizard/plan/current"
)

// An outcome is the result of a node's operation.
type outcome struct {
	state   NodeState
	prior   *backends.Value
	found   *backends.Value
	err     error
	text    string
	begun   bool  // the world may have been changed
	journal error // the journal accepts no more records
	quiet   bool  // not worth reporting
	// recalled means that an opening was cancelled at the gate.
	recalled bool
	bars     admission // of an opening that did not pass the gate: what happens to the rest of its wave
}

// read returns what was read after the operation, as the journal stores it.
func (o outcome) read() []backends.Value {
	if o.found == nil {
		return nil
	}
	return []backends.Value{*o.found}
}

// already is the reason why nothing has to be set: an earlier step or somebody else has set the value since the plan was made.
func already(c *plan.Change, now backends.Value) string {
	if c.From.Known() && !current.Same(c.Kind, now, c.From) {
		return "it reached this state after the plan was made"
	}
	return "it is already in this state"
}

// An operation is one call that changes something: a Set, a SetMany, an Open or a Close, with its reads and its records.
type operation struct {
	*runner
	nodes  []*node
	moved  []bool           // per change: an own operation may have changed the value
	to     []backends.Value // per change: the value to set, computed from the read value if the change is late
	gate   *Wave            // of an opening that starts a wave
	gates  context.Context  // ends when the run is stopped
	needs  time.Duration    // estimated duration of the wave
	effect bool             // of a closing: the bracket's effect is needed
	msgs   chan<- message
	over   chan struct{}
	last   atomic.Int64 // percentage last reported, plus one
}

func (d *operation) do(ctx context.Context) []outcome {
	if d.nodes[0].wait {
		return []outcome{d.answer(ctx)}
	}
	if b := d.nodes[0].around; b != nil {
		if d.nodes[0].closes {
			return []outcome{d.shut(ctx, b)}
		}
		return []outcome{d.openUp(ctx, b)}
	}
	return d.change(ctx)
}

// progress reports a percentage to the stage; after the operation it does nothing.
func (d *operation) progress(percent int) {
	percent = min(max(percent, 0), 100)
	if d.last.Swap(int64(percent)+1) == int64(percent)+1 {
		return
	}
	select {
	case d.msgs <- message{nodes: d.nodes, percent: percent}:
	case <-d.over:
	}
}

func (d *operation) say(text string) {
	select {
	case d.msgs <- message{nodes: d.nodes, text: text}:
	case <-d.over:
	}
}

// change reads, compares, journals, sets, reads back and journals again.
func (d *operation) change(ctx context.Context) []outcome {
	ctx = backends.WithReads(ctx)
	out := make([]outcome, len(d.nodes))
	setter := d.job.Setters[d.nodes[0].change.Kind]
	var all []int
	for i, n := range d.nodes {
		if keeper, kept := d.recorded(n); keeper != nil {
			out[i] = d.restore(ctx, n, d.moved[i], keeper, *kept)
		} else {
			all = append(all, i)
		}
	}
	var todo []int
	var recs []journal.Record
	kept := map[int]*backends.Kept{}
	d.to = make([]backends.Value, len(d.nodes))
	for k, a := range d.read(ctx, setter, all) {
		i := all[k]
		n := d.nodes[i]
		c := n.change
		if a.err == nil {
			d.to[i], a.err = plan.Resolve(*c, a.value)
		}
		if r, ok := backends.As[backends.Resolver](setter); ok && a.err == nil {
			d.to[i], a.err = guard(ctx, d.limits.Operation, d.limits.Grace, n.target.Name, "find what "+n.id+" names",
				func(ctx context.Context) (backends.Value, error) {
					return r.Resolve(ctx, c.Setting, d.to[i])
				})
		}
		switch {
		case a.err != nil:
			out[i] = outcome{state: NodeFailed, err: a.err}
		case current.Same(c.Kind, a.value, d.to[i]):
			out[i] = outcome{state: NodeSkipped, prior: &a.value, found: &a.value, text: already(c, a.value)}
		// A survey cannot distinguish an incomplete object from a missing one. The setter finds and completes it.
		case c.From.Known() && !current.Same(c.Kind, a.value, c.From) && !c.State && !d.moved[i] && !a.value.IsPartial():
			out[i] = outcome{state: NodeFailed, prior: &a.value, found: &a.value, err: backends.Conflictf(n.target.Name,
				"Somebody else is working on this target. Agree with them who continues, then run rdma-setup resume.",
				"%s: changed since the plan was made: it was %s and is %s", n.title, c.From, a.value)}
		default:
			keep, err := d.keepAside(ctx, n, d.to[i])
			if err != nil {
				out[i] = outcome{state: NodeFailed, prior: &a.value, err: err}
				continue
			}
			kept[i] = keep
			out[i].prior = &a.value
			todo = append(todo, i)
			recs = append(recs, journal.Record{
				Type: journal.TypeIntent, Node: n.id, Target: n.target, Kind: string(c.Kind), Name: c.Name,
				Prior: a.value, To: d.to[i], Kept: keep,
			})
		}
	}
	if len(todo) == 0 {
		return out
	}
	if err := d.append(recs...); err != nil {
		for _, i := range todo {
			out[i] = outcome{state: NodePending, prior: out[i].prior, journal: err}
		}
		return out
	}
	errs := d.set(ctx, setter, todo)
	d.readBack(ctx, setter, todo, errs, d.observe(ctx, setter, todo, kept), out)
	return out
}

// keepAside makes a Keeper record what the change may touch. What an earlier attempt recorded stays, even if this one sets
// something else and touches more.
func (d *operation) keepAside(ctx context.Context, n *node, to backends.Value) (*backends.Kept, error) {
	k, ok := backends.As[backends.Keeper](d.job.Setters[n.change.Kind])
	if !ok || d.phase != journal.PhaseApply {
		return nil, nil
	}
	earlier := d.kept[n.id]
	if earlier.kept != nil && earlier.to == to {
		return earlier.kept, nil
	}
	now, err := guard(ctx, d.limits.Operation, d.limits.Grace, n.target.Name, "record the current state",
		func(ctx context.Context) (backends.Kept, error) {
			now, err := k.Keep(ctx, n.change.Setting, to)
			return now, cmp.Or(err, now.Err())
		})
	if err == nil && earlier.kept != nil {
		now = earlier.kept.With(now)
	}
	return &now, err
}

// observe returns the current state of the recorded items, nil if nothing was recorded or it could not be observed.
func (d *operation) observe(ctx context.Context, setter backends.Setter, todo []int, kept map[int]*backends.Kept) []*backends.Kept {
	out := make([]*backends.Kept, len(todo))
	keeper, ok := backends.As[backends.Keeper](setter)
	if !ok || ctx.Err() != nil {
		return out
	}
	for k, i := range todo {
		n, was := d.nodes[i], kept[i]
		if was == nil {
			continue
		}
		left, err := guard(ctx, d.limits.Operation, d.limits.Grace, n.target.Name, "observe "+n.id,
			func(ctx context.Context) (backends.Kept, error) {
				left, err := keeper.Observe(ctx, n.change.Setting, was.Bare())
				return left, cmp.Or(err, left.Err())
			})
		if err == nil {
			left = left.Bare()
			out[k] = &left
		}
	}
	return out
}

// set makes the changes and returns one error each.
func (d *operation) set(ctx context.Context, setter backends.Setter, todo []int) []error {
	first := d.nodes[todo[0]]
	if many, ok := backends.As[backends.ManySetter](setter); ok && len(todo) > 1 {
		as := backends.Each(todo, func(i int) backends.Assignment {
			return backends.Assignment{Setting: d.nodes[i].change.Setting, To: d.to[i]}
		})
		errs, err := guard(ctx, d.limits.Operation, d.limits.Grace, first.target.Name, first.title, func(ctx context.Context) ([]error, error) {
			errs := many.SetMany(ctx, as, d.progress)
			if len(errs) != len(as) {
				return nil, fmt.Errorf("%d results for %d settings", len(errs), len(as))
			}
			return errs, nil
		})
		if err != nil {
			return slices.Repeat([]error{err}, len(todo))
		}
		return errs
	}
	errs := make([]error, len(todo))
	for k, i := range todo {
		n := d.nodes[i]
		_, errs[k] = guard(ctx, d.limits.Operation, d.limits.Grace, n.target.Name, n.title, func(ctx context.Context) (struct{}, error) {
			return struct{}{}, setter.Set(ctx, n.change.Setting, d.to[i], d.progress)
		})
	}
	return errs
}

// readBack reads the results of the changes, also after a failure, and journals them.
func (d *operation) readBack(ctx context.Context, setter backends.Setter, todo []int, errs []error, left []*backends.Kept, out []outcome) {
	var back []answer[backends.Value]
	if ctx.Err() == nil {
		back = d.read(ctx, setter, todo)
	}
	recs := make([]journal.Record, len(todo))
	for k, i := range todo {
		n, o := d.nodes[i], &out[i]
		o.err, o.begun = errs[k], true
		if back != nil && back[k].err == nil {
			o.found = &back[k].value
		}
		switch {
		case o.found != nil && current.Same(n.change.Kind, *o.found, d.to[i]):
			if o.err != nil {
				o.text = "done, though the other side reported: " + o.err.Error()
			}
			o.err = nil
		case o.err != nil:
		case o.found != nil:
			o.err = backends.Permanentf(n.target.Name, "", "%s: it was accepted, but reads back as %s", n.title, *o.found)
		case back != nil:
			o.err = backends.Errorf(backends.KindOf(back[k].err), n.target.Name, "Run rdma-setup resume.",
				"%s: it was accepted, but cannot be read back: %w", n.title, back[k].err)
		default:
			o.err = backends.Interruptedf(n.target.Name, "Run rdma-setup resume.", "%s: interrupted before it was read back",
				n.title)
		}
		o.state = NodeDone
		if o.err != nil {
			o.state = NodeFailed
		}
		recs[k] = journal.Record{
			Type: journal.TypeOutcome, Node: n.id, Target: n.target, Kind: string(n.change.Kind), Name: n.change.Name,
			Found: o.read(), Left: left[k], OK: o.err == nil, Err: text(o.err), Hint: backends.HintOf(o.err), Grounds: d.grounds(ctx, n, o.err),
		}
	}
	if err := d.append(recs...); err != nil {
		for _, i := range todo {
			out[i].journal = err
		}
	}
}

func (d *operation) read(ctx context.Context, setter backends.Setter, which []int) []answer[backends.Value] {
	out := make([]answer[backends.Value], len(which))
	if many, ok := backends.As[backends.ManyReader](setter); ok && len(which) > 1 {
		ss := backends.Each(which, func(i int) backends.Setting { return d.nodes[i].change.Setting })
		type answers struct {
			values []backends.Value
			errs   []error
		}
		a, err := guard(ctx, d.limits.Operation, d.limits.Grace, ss[0].Target.Name, "read "+string(ss[0].Kind),
			func(ctx context.Context) (answers, error) {
				values, errs := many.ReadMany(ctx, ss)
				if len(values) != len(ss) || len(errs) != len(ss) {
					return answers{}, fmt.Errorf("%d values and %d errors for %d settings", len(values), len(errs), len(ss))
				}
				return answers{values, errs}, nil
			})
		for k := range out {
			if err != nil {
				out[k].err = err
			} else {
				out[k] = answer[backends.Value]{a.values[k], cmp.Or(a.errs[k], a.values[k].Err())}
			}
		}
		return out
	}
	var g errgroup.Group
	g.SetLimit(d.limits.Parallel)
	for k, i := range which {
		g.Go(func() error {
			out[k].value, out[k].err = readOne(ctx, d.limits, setter, d.nodes[i].change.Setting)
			return nil
		})
	}
	_ = g.Wait() // the errors are in out
	return out
}

func readOne(ctx context.Context, l Limits, setter backends.Setter, s backends.Setting) (backends.Value, error) {
	return guard(ctx, l.Operation, l.Grace, s.Target.Name, "read "+s.ID(), func(ctx context.Context) (backends.Value, error) {
		v, err := setter.Read(ctx, s)
		return v, cmp.Or(err, v.Err())
	})
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
