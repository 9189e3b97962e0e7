package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/engine/journal"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
	"github.com/rdma-setup/rdma-setup/wizard/plan/current"
)

// Resume continues the run of job.Journal, or its rollback if that was started. It reads the world and plans again (job.Replan),
// closes brackets that were left open even if no change is left, and keeps the priors of the first attempt. Another vCenter or
// other answers are refused before anything is done. A finished run returns StatusDone.
func Resume(ctx context.Context, job Job) (Result, error) {
	return carryOn(ctx, job, job.Journal.State().Phase())
}

// Rollback restores the priors of the first attempt of job.Journal's run. job.Replan returns the plan towards
// Priors(job.Journal.State()); it is called after the results of unfinished operations have been read.
func Rollback(ctx context.Context, job Job) (Result, error) {
	return carryOn(ctx, job, journal.PhaseRollback)
}

func carryOn(ctx context.Context, job Job, phase journal.Phase) (Result, error) {
	st := job.Journal.State()
	r := newRunner(job, phase)
	ctx, quiet := r.speaking(ctx)
	defer quiet()
	r.again, r.before = true, st.Changed()
	if err := st.Same(job.VCenter, job.Answers); err != nil {
		return r.refuse(err)
	}
	// A finished rollback may have kept changes of others, or missed a target that did not answer, so it plans again.
	if phase == journal.PhaseApply && st.Finished() && st.Phase() == phase {
		r.job.Remote.end()
		r.result.Status = StatusDone
		r.emit(Event{Type: EventResult, Status: StatusDone, Text: "the run is finished: nothing to do"})
		return r.result, nil
	}
	if job.Replan == nil {
		return r.refuse(backends.Permanentf("", "", "a run is continued only with a new plan"))
	}
	if phase == journal.PhaseApply {
		// The earlier consent still holds, including what today's plan cannot show about a VM that was left off; an unreadable
		// header means no consent.
		var first plan.Ceiling
		if err := json.Unmarshal(st.Header.Ceiling, &first); err != nil && len(st.Header.Ceiling) > 0 {
			first = plan.Ceiling{Changes: map[string]bool{}}
		}
		r.job.Ceiling = first.With(job.Ceiling)
	}
	if phase == journal.PhaseRollback && r.job.Ceiling.Changes != nil {
		// Undoing what the journal records needs no further consent, including what a first plan cannot show about a VM that is
		// still off.
		all := plan.Ceiling{Changes: map[string]bool{}}
		for _, e := range st.Entries() {
			all.Changes[e.Node] = true
		}
		r.job.Ceiling = all.With(r.job.Ceiling)
	}
	for _, e := range st.Entries() {
		if e.Kept != nil {
			r.kept[e.Node] = record{e.Kept, e.To}
		}
	}
	if err := r.begin(); err != nil {
		return r.end(err)
	}
	r.expectAway(&job.Plan)
	unsettled, err := r.settleIntents(ctx, st, func(t backends.Ref) bool { return !r.isAway(t) })
	if err != nil {
		return r.end(err)
	}
	r.open, r.back, r.earlier = leftovers(st), returnedBefore(st), switchedOn(st, phase)
	r.readEffects(ctx)
	if unsettled != nil { // hosts and VMs return to service all the same
		return r.end(cmp.Or(r.closeFirst(ctx, r.withLeftovers(plan.Plan{})), unsettled))
	}
	p, err := r.planOn(ctx)
	if err != nil || r.halted {
		return r.end(err)
	}
	if p.Empty() && len(p.Brackets) == 0 && len(r.awaited(&p)) == 0 {
		return r.end(nil)
	}
	return r.end(r.stages(ctx, p))
}

// refuse ends an attempt that was not started: the journal stays unchanged.
func (r *runner) refuse(err error) (Result, error) {
	err = r.phase.Err(r.job.run(), err)
	r.job.Remote.end()
	r.result.Status = StatusFailed
	r.emit(Event{Type: EventResult, Status: StatusFailed, Err: err.Error(), Hint: backends.HintOf(err), ErrKind: backends.KindOf(err)})
	return r.result, err
}

// settleIntents reads the results of operations without an outcome, on some targets. What cannot be read now stays uncertain, and so does a
// target that is missing while a task may still create it. A task of this program may still be running in vCenter, which a read does not
// show: Busy waits for it. If it is still running after that, or could not be read, the stages of a resume do not change a target
// that is in use; a rollback would end without removing it, so unsettled says why it cannot continue. err is the journal's.
func (r *runner) settleIntents(ctx context.Context, st *journal.State, which func(backends.Ref) bool) (unsettled, err error) {
	not := func(rec journal.Record) bool { return !which(rec.Target) }
	open := slices.DeleteFunc(st.OpenIntents(), not)
	all := slices.Concat(open, slices.DeleteFunc(uncertain(st), not))
	busy, failure := r.others(ctx, Unsettled(st))
	if failure != nil {
		r.note("the tasks of the earlier attempt could not be read: %v", failure)
	}
	causes := make([]error, len(all))
	var g errgroup.Group
	g.SetLimit(r.limits.Parallel)
	for i, rec := range all {
		setter := r.job.Setters[backends.Kind(rec.Kind)]
		cause := failure
		for _, t := range entities(rec) {
			cause = cmp.Or(cause, busy[t])
		}
		mayCome := cause != nil && creates(rec)
		if setter == nil || i >= len(open) && !mayCome { // the plan reads the targets of operations that have ended
			continue
		}
		g.Go(func() error {
			found, err := readOne(ctx, r.limits, setter, rec.Setting())
			switch {
			case mayCome && (err != nil || found.IsAbsent()):
				causes[i] = cause
				return nil
			case err != nil || i >= len(open):
				return nil
			}
			return r.append(journal.Record{
				Type: journal.TypeOutcome, Node: rec.Node, Target: rec.Target, Kind: rec.Kind, Name: rec.Name,
				Found: []backends.Value{found}, OK: current.Same(backends.Kind(rec.Kind), found, rec.To),
			})
		})
	}
	err = g.Wait()
	if r.phase == journal.PhaseRollback {
		unsettled = cmp.Or(causes...)
	}
	return unsettled, err
}

// Unsettled returns the targets on which an earlier attempt may still be working: of operations without an outcome, and of those that
// have ended but may still have an effect.
func Unsettled(st *journal.State) []backends.Ref {
	var out []backends.Ref
	for _, rec := range slices.Concat(st.OpenIntents(), uncertain(st)) {
		for _, t := range entities(rec) {
			if !slices.Contains(out, t) {
				out = append(out, t)
			}
		}
	}
	return out
}

// uncertain returns the operations that have ended but may still have an effect: those without a result, as the run was interrupted
// or the target did not answer, and creations that were given up before the target existed.
func uncertain(st *journal.State) []journal.Record {
	var out []journal.Record
	for _, e := range st.Entries() {
		rec := journal.Record{Node: e.Node, Target: e.Setting.Target, Kind: string(e.Setting.Kind), Name: e.Setting.Name, Prior: e.Prior,
			To: e.To}
		if !e.Open && (len(e.Found) == 0 || creates(rec) && e.Found[0].IsAbsent()) {
			out = append(out, rec)
		}
	}
	return out
}

func creates(rec journal.Record) bool {
	kind := backends.Kind(rec.Kind)
	return (kind == backends.KindSwitch || kind == backends.KindPortGroup) && rec.Prior.IsAbsent() && !rec.To.IsAbsent()
}

// entities returns what the task of an operation runs on: members and port groups are reconfigured through their switch
// (ReconfigureDvs_Task, AddDVPortgroup_Task of DistributedVirtualSwitch in the vSphere Web Services API). For a switch that does not
// exist, Busy also returns tasks that may create it.
func entities(rec journal.Record) []backends.Ref {
	out := []backends.Ref{machine(rec.Target)}
	var spec backends.PortGroupSpec
	switch backends.Kind(rec.Kind) {
	case backends.KindMember:
		out = append(out, backends.SwitchRef(rec.Name))
	case backends.KindPortGroup:
		if rec.To.Decode(&spec) == nil || rec.Prior.Decode(&spec) == nil {
			out = append(out, backends.SwitchRef(spec.Switch))
		}
	}
	return out
}

// planOn plans again and adds the brackets that were left open. If no plan is possible in the current state (a VM that is off, a
// host in maintenance mode), these are closed first. They are also closed first if a host has rebooted or is about to: settings
// made now would wait for a reboot that is already over.
func (r *runner) planOn(ctx context.Context) (plan.Plan, error) {
	p, err := r.replan(ctx)
	open := slices.Collect(maps.Values(r.open))
	rebooting := slices.ContainsFunc(open,
		func(b *bracket) bool { return b.closing && b.Kind == backends.BracketReboot && !r.isAway(b.Target) })
	if err == nil && !rebooting {
		return r.withLeftovers(*p), nil
	}
	if len(open) == 0 || ctx.Err() != nil {
		return plan.Plan{}, err
	}
	only := r.withLeftovers(plan.Plan{})
	if err == nil { // what is away is closed beside the rest
		only.Brackets = slices.DeleteFunc(only.Brackets, func(b plan.Bracket) bool { return r.isAway(b.Target) })
	}
	evacuated := slices.ContainsFunc(open, func(b *bracket) bool { return b.Kind == backends.BracketMaintenance })
	if err == nil && evacuated { // only the reboot is waited for: the host stays out of service for the remaining changes
		only.Brackets = slices.DeleteFunc(only.Brackets,
			func(b plan.Bracket) bool { return b.Kind != backends.BracketReboot || !r.open[b.ID()].closing })
	}
	if bad := r.closeFirst(ctx, only); bad != nil {
		return plan.Plan{}, cmp.Or(r.broken, err, bad)
	}
	if r.halted {
		return plan.Plan{}, nil
	}
	if p, err = r.replan(ctx); err != nil {
		return plan.Plan{}, err
	}
	return r.withLeftovers(*p), nil
}

// closeFirst executes a plan that contains nothing but brackets that were left open.
func (r *runner) closeFirst(ctx context.Context, only plan.Plan) error {
	if len(only.Brackets) == 0 {
		return nil
	}
	s, err := newStage(r, &only)
	if err != nil {
		return err
	}
	r.result.Reread = false
	s.run(ctx)
	for _, n := range s.nodes {
		if n.closes && n.state == NodeDone {
			delete(r.open, n.id)
		}
	}
	return r.broken
}

// readEffects marks open brackets whose effect has already occurred as being closed: a host that rebooted before its bracket was
// closed needs another reboot for new settings.
func (r *runner) readEffects(ctx context.Context) {
	for _, b := range r.open {
		if world, is := backends.As[backends.EffectReader](r.job.Brackets[b.Kind]); is && !b.closing {
			happened, err := guard(ctx, r.limits.Bracket, r.limits.Grace, b.Target.Name, "read whether it has rebooted",
				func(ctx context.Context) (bool, error) {
					return world.Happened(ctx, b.Target, b.leave)
				})
			b.closing = err == nil && happened // an error shows when the bracket is closed
		}
	}
}

// withLeftovers adds the open brackets that the plan does not contain. Changes of the same machine are made before such a bracket
// is closed, changes inside the VM after it.
func (r *runner) withLeftovers(p plan.Plan) plan.Plan {
	with := p
	with.Changes = append([]plan.Change(nil), p.Changes...)
	with.Brackets = append([]plan.Bracket(nil), p.Brackets...)
	planned := map[string]bool{}
	for _, b := range p.Brackets {
		planned[b.ID()] = true
	}
	bare := with.Brackets
	var hosts, there []string // brackets of all hosts, and of those that answer
	for _, id := range slices.Sorted(maps.Keys(r.open)) {
		if b := r.open[id]; b.down() {
			hosts = append(hosts, id)
			if !r.isAway(b.Target) {
				there = append(there, id)
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(r.open)) {
		b := r.open[id]
		if b.leftover = !planned[id]; !b.leftover {
			continue
		}
		if b.Target.Type == backends.TypeVM {
			b.Around = there // a VM needs its host to be back to start
			if r.isAway(b.Target) {
				b.Around = hosts
			}
		}
		bare = append(bare[:len(bare):len(bare)], b.Bracket)
		for i := range with.Changes {
			c := &with.Changes[i]
			switch {
			case c.Target == b.Target:
				c.Within = append(c.Within[:len(c.Within):len(c.Within)], id)
			case b.Target.Type == backends.TypeVM && c.Target == backends.GuestRef(b.Target.Name):
				c.After = append(c.After[:len(c.After):len(c.After)], id)
			}
		}
	}
	for i := range bare { // a host leaves maintenance mode after its last reboot
		m := &bare[i]
		if m.Kind != backends.BracketMaintenance {
			continue
		}
		m.Around = slices.Clone(m.Around)
		for _, b := range bare {
			if b.Kind == backends.BracketReboot && b.Target == m.Target && !slices.Contains(m.Around, b.ID()) {
				m.Around = append(m.Around, b.ID())
			}
		}
	}
	with.Brackets = bare
	if _, err := with.Graph(); err != nil {
		with.Changes = p.Changes // the plan requires another order: the brackets are closed as they come
	}
	return with
}

// Priors returns the settings in a journal that its run wanted to change, for rollback.Build: the value before the first attempt,
// and the value that the run left.
func Priors(s *journal.State) []plan.Prior {
	var out []plan.Prior
	stages := map[int]map[string]plan.Change{}
	for _, e := range s.Entries() {
		changes := stages[e.Stage]
		if changes == nil {
			changes = changesOf(e.Plan)
			stages[e.Stage] = changes
		}
		prior := plan.Prior{Prior: e.Prior, Kept: e.Kept, Left: e.Left, Back: e.Back}
		if c, known := changes[e.Node]; known {
			prior.Change = c
		} else {
			prior.Change = plan.Change{Setting: e.Setting, From: e.Prior, To: e.To}
		}
		if len(e.Found) > 0 {
			prior.Found = e.Found[0]
		} else {
			prior.Found, prior.Uncertain = backends.Absent, true
		}
		out = append(out, prior)
	}
	return out
}

// changesOf reads the plan of a stage; an unreadable one has no changes, which are then known only by their settings.
func changesOf(stage []byte) map[string]plan.Change {
	out := map[string]plan.Change{}
	var p plan.Plan
	if err := json.Unmarshal(stage, &p); err != nil {
		return out
	}
	for _, c := range p.Changes {
		out[c.ID()] = c
	}
	return out
}
