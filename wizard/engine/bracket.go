package engine

import (
	"context"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/engine/journal"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
)

// openUp reads the state, journals it and opens the bracket. It is safe for a bracket that an earlier attempt has opened.
func (d *operation) openUp(ctx context.Context, b *bracket) outcome {
	n := d.nodes[0]
	world := d.job.Brackets[b.Kind]
	if d.gate != nil {
		if o, may := d.await(); !may {
			return o
		}
	}
	state, err := d.state(ctx, world, b)
	if err != nil {
		return outcome{state: NodeFailed, err: err}
	}
	if err := d.mine(ctx, b, state); err != nil {
		return outcome{state: NodeFailed, prior: &state, err: err}
	}
	if !b.inherited {
		b.found = state
		if b.leave.IsAbsent() {
			b.leave = state
		}
	}
	opening := journal.Record{
		Type: journal.TypeOpening, Node: b.ID(), Target: b.Target, Kind: string(b.Kind), Prior: b.found, To: b.leave,
	}
	if b.bare() {
		opening.Name = journal.Bare
	}
	if err := d.append(opening); err != nil {
		return outcome{state: NodePending, prior: &state, journal: err}
	}
	o := outcome{state: NodeDone, prior: &state, begun: true}
	if _, o.err = guard(ctx, d.timeFor(b), d.limits.Grace, n.target.Name, n.title, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, world.Open(ctx, b.Target, d.progress)
	}); o.err != nil {
		o.state = NodeFailed
	}
	o.journal = d.append(journal.Record{
		Type: journal.TypeOpened, Node: b.ID(), Target: b.Target, Kind: string(b.Kind), OK: o.err == nil, Err: text(o.err),
		Hint: backends.HintOf(o.err),
	})
	return o
}

// shut closes a bracket, or aborts it if its effect is not needed.
func (d *operation) shut(ctx context.Context, b *bracket) outcome {
	n := d.nodes[0]
	world := d.job.Brackets[b.Kind]
	closing := journal.Record{Type: journal.TypeClosing, Node: b.ID(), Target: b.Target, Kind: string(b.Kind), To: b.leave}
	aborter, ok := backends.As[backends.Aborter](world)
	abort := ok && !d.effect
	if abort {
		closing.Name = journal.Aborting
	}
	o := outcome{state: NodeDone}
	// The journal already contains the opening and the state to restore: a broken journal must not keep a VM off.
	o.journal = d.append(closing)
	if _, o.err = guard(ctx, d.timeFor(b), d.limits.Grace, n.target.Name, n.title, func(ctx context.Context) (struct{}, error) {
		if abort {
			return struct{}{}, aborter.Abort(ctx, b.Target, b.found, d.progress)
		}
		return struct{}{}, world.Close(ctx, b.Target, b.leave, d.progress)
	}); o.err != nil {
		o.state = NodeFailed
	}
	if ctx.Err() == nil {
		if found, err := d.state(ctx, world, b); err == nil {
			o.found = &found
		}
	}
	if err := d.append(journal.Record{
		Type: journal.TypeClosed, Node: b.ID(), Target: b.Target, Kind: string(b.Kind),
		Found: o.read(), OK: o.err == nil, Err: text(o.err), Hint: backends.HintOf(o.err),
	}); err != nil {
		o.journal = err
	}
	return o
}

// stateLimit bounds reading the state of a bracket: a few calls, each of which takes two minutes at most.
const stateLimit = 5 * time.Minute

func (d *operation) state(ctx context.Context, world backends.Bracket, b *bracket) (backends.Value, error) {
	return guard(ctx, d.limits.within(stateLimit), d.limits.Grace, b.Target.Name, "read its state: "+plan.OpenTitle(b.Bracket),
		func(ctx context.Context) (backends.Value, error) { return world.State(ctx, b.Target) })
}

func (d *operation) timeFor(b *bracket) time.Duration {
	if b.Proof && !d.nodes[0].closes {
		return 0 // a person may be prompted for a password; the bracket's operations have limits of their own
	}
	limit := d.limits.Bracket
	if b.Kind == backends.BracketReboot || b.Effect == plan.HostReboot {
		limit = d.limits.Reboot
	}
	if away, is := d.away[b.Target]; is {
		if away.Await > 0 {
			limit = min(limit, away.Await+d.limits.Grace) // the bracket ends before, and says what it has seen
		}
		return d.limits.within(limit)
	}
	return limit
}
