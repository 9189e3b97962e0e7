// Package engine executes a plan: it orders changes, works on targets in parallel, opens and closes the brackets around changes,
// writes the journal before each operation and reads back after it, and reports everything as events. A stopped, failed or killed
// run is resumed or rolled back from its journal. The engine knows only changes and brackets: no terminal, no vCenter, no kind of
// setting.
package engine

import (
	"context"
	"encoding/json"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/engine/journal"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
)

// maxStages bounds a plan that never becomes empty.
const maxStages = 12

// Run executes the plan of a job. The error says why the run as a whole could not continue (the journal cannot be written, the
// world cannot be read again, a later stage exceeds the consent); failures of targets are only in the result.
func Run(ctx context.Context, job Job) (Result, error) {
	r := newRunner(job, journal.PhaseApply)
	ctx, quiet := r.speaking(ctx)
	defer quiet()
	if job.Plan.Empty() && len(job.Plan.Brackets) == 0 {
		return r.end(nil)
	}
	if err := r.begin(); err != nil {
		return r.end(err)
	}
	return r.end(r.stages(ctx, job.Plan))
}

// A runner is one attempt at a run.
type runner struct {
	job    Job
	limits Limits
	now    func() time.Time
	phase  journal.Phase

	skip        map[string]bool
	kept        map[string]record        // by change, from earlier attempts
	open        map[string]*bracket      // open since an earlier attempt
	made        map[string]made          // changes done in this attempt
	number      int                      // of the stage, from 1
	failed      map[backends.Ref]string  // targets that failed or were skipped in this attempt, and why nothing is started on them
	powerFailed string                   // VM that did not start again: no other is powered off
	late        bool                     // a wave was not started because it would have ended after the window
	left        []string                 // hosts and VMs that were not started for that reason
	took        map[string]time.Duration // longest step of each kind in this attempt
	earlier     []backends.Ref           // VMs that earlier attempts have powered on again
	back        []backends.Ref           // hosts and VMs that the run has taken out of service and returned to service
	wave        string                   // host that failed while it was down: no other goes down
	used        plan.Ceiling             // reboots and power cycles of earlier stages
	known       map[string]int           // index in results
	stop        <-chan struct{}          // nil after it was closed
	halted      bool                     // no new operations: stopped, cancelled, or the journal is broken
	broken      error                    // of the journal
	before      bool                     // an earlier attempt has changed something
	unverified  bool                     // stopped before a further stage
	unproven    bool                     // stopped because a login that the plan needs failed: no change was started
	again       bool                     // a resume or a rollback
	result      Result
	voice       *backends.Voice
	emits       sync.Mutex
	virtual     *virtual // nil in a run; see Forecast

	away    map[backends.Ref]plan.Refusal // targets that did not answer when the plan was made
	gone    map[backends.Ref]bool         // those, in any plan of this attempt
	last    bool                          // targets that have come back late were tried again
	paused  bool                          // by an operator
	retries map[backends.Ref]bool         // targets that the next plan retries
	stopper backends.Ref                  // target whose failure has stopped the waves of hosts
}

// A record is what a Keeper recorded, and the value it was recorded for.
type record struct {
	kept *backends.Kept
	to   backends.Value
}

// made is the value that a change has set, and the stage in which it was set.
type made struct {
	to    backends.Value
	stage int
}

func newRunner(job Job, phase journal.Phase) *runner {
	r := &runner{
		job: job, limits: job.Limits.withDefaults(), now: job.Clock, phase: phase, stop: job.Stop,
		skip: map[string]bool{}, kept: map[string]record{}, open: map[string]*bracket{},
		took: map[string]time.Duration{}, made: map[string]made{}, failed: map[backends.Ref]string{}, known: map[string]int{},
		retries: map[backends.Ref]bool{}, gone: map[backends.Ref]bool{},
	}
	if r.now == nil {
		r.now = time.Now
	}
	for _, id := range job.Skip {
		r.skip[id] = true
	}
	r.result.Run = job.run()
	if job.Remote != nil {
		job.Remote.again = phase.Continue(r.result.Run)
	}
	return r
}

func (j *Job) run() string {
	if j.Journal == nil {
		return ""
	}
	return j.Journal.Run()
}

func (r *runner) begin() error {
	if r.job.Journal == nil {
		return backends.Permanentf("", "", "a run that changes something needs a journal")
	}
	return r.job.Journal.Append(journal.Record{Type: journal.TypeBegin, Phase: r.phase, PID: os.Getpid()})
}

// stages executes p, plans again, and repeats until nothing is left that can be done.
func (r *runner) stages(ctx context.Context, p plan.Plan) error {
	if r.job.Ceiling.Changes == nil {
		r.job.Ceiling = p.Ceiling()
	}
	for n := 1; ; n++ {
		r.number = n
		s, err := newStage(r, &p)
		if err != nil {
			return err
		}
		if !s.viable() && n > 1 && r.returnedLate(&p) {
			if s, err = newStage(r, &p); err != nil {
				return err
			}
		}
		if !s.viable() && n > 1 {
			r.result.Differs = p.Changes
			for _, c := range p.Changes {
				if _, known := r.known[c.ID()]; !known {
					r.note("%s: %s was not done: what it depends on could not be read to the end", c.Target.Name, plan.Title(c))
				}
			}
			return r.notPersistent(p)
		}
		if (n > 1 || r.again) && !r.consent(ctx, p) {
			r.result.Differs = p.Changes
			return nil
		}
		if n == 1 {
			if err := r.prove(ctx, p); err != nil || r.halted {
				return err
			}
			if s, err = newStage(r, &p); err != nil {
				return err
			}
		}
		if err := r.record(n, p); err != nil {
			return err
		}
		r.result.Reread = false
		s.run(ctx)
		r.account(p, s)
		if r.halted {
			r.unverified = p.Stages > 0
			return r.broken
		}
		if r.job.Replan == nil {
			return nil
		}
		for t := range r.retries { // the next plan retries them
			r.forgive(t)
		}
		clear(r.retries)
		if err := r.settleReturned(ctx, s); err != nil {
			return err
		}
		next, err := r.replan(ctx)
		if err != nil {
			return err
		}
		r.forget()
		if next.Empty() && len(r.awaited(next)) == 0 {
			return nil
		}
		if n == maxStages {
			r.note("after %d stages the plan still contains changes", n)
			r.result.Differs = next.Changes
			return nil
		}
		p = *next
	}
}

// notPersistent returns the error of a run whose changes were made and read back, but are missing according to the next survey; nil
// if each of them failed or was never started, and has an error of its own.
func (r *runner) notPersistent(p plan.Plan) error {
	for _, c := range p.Changes {
		i, known := r.known[c.ID()]
		if known && c.From.Known() && !r.skip[c.ID()] && (r.result.Nodes[i].State == NodeDone || r.result.Nodes[i].State == NodeSkipped) {
			return backends.Permanentf(c.Target.Name,
				"Run rdma-setup resume; if it ends like this again, check the setting manually.",
				"%s: the change succeeded, but a later read shows %s", plan.Title(c), c.From)
		}
	}
	return nil
}

func (r *runner) replan(ctx context.Context) (*plan.Plan, error) {
	next, err := guard(ctx, r.limits.Operation, r.limits.Grace, "", "read the inventory and replan", r.job.Replan)
	if err == nil && next == nil {
		next = &plan.Plan{}
	}
	if err == nil {
		r.expectAway(next)
		r.result.Conflicts = next.Conflicts
	}
	r.halted = r.halted || ctx.Err() != nil
	r.result.Reread = err == nil
	return next, err
}

// consent asks the operator if a later stage exceeds the consent.
func (r *runner) consent(ctx context.Context, p plan.Plan) bool {
	left := r.job.Ceiling
	left.HostReboots -= r.used.HostReboots
	left.PowerCycles -= r.used.PowerCycles
	p.Brackets = slices.DeleteFunc(slices.Clone(p.Brackets), r.wasGone) // the first plan could not show what they need
	for _, b := range p.Brackets {
		// An open bracket was consented to when it was opened.
		if was := r.open[b.ID()]; was != nil && b.Kind == backends.BracketReboot {
			left.HostReboots++
		} else if was != nil && b.Kind == backends.BracketVMPower {
			left.PowerCycles++
		}
	}
	what := left.Exceeds(p)
	if what == "" {
		return true
	}
	if r.job.AskBeyond != nil && r.job.AskBeyond(ctx, what, p) {
		more := p.Ceiling()
		all := plan.Ceiling{Changes: map[string]bool{}, HostReboots: r.used.HostReboots + more.HostReboots,
			PowerCycles: r.used.PowerCycles + more.PowerCycles}
		for _, m := range []map[string]bool{r.job.Ceiling.Changes, more.Changes} {
			for id := range m {
				all.Changes[id] = true
			}
		}
		r.job.Ceiling = all
		return true
	}
	r.note("stopped before a change that you have not accepted: %s", what)
	return false
}

func (r *runner) account(p plan.Plan, s *stage) {
	for _, n := range s.nodes {
		if n.closes && n.state == NodeDone {
			delete(r.open, n.id)
		}
		if n.closes && n.around.tried && !n.around.inherited {
			switch n.around.Kind {
			case backends.BracketReboot:
				r.used.HostReboots++
			case backends.BracketVMPower:
				r.used.PowerCycles++
			}
		}
	}
}

func (r *runner) record(n int, p plan.Plan) error {
	b, err := json.Marshal(p)
	if err != nil {
		return backends.Permanentf("", "", "save the plan of stage %d: %w", n, err)
	}
	return r.append(journal.Record{Type: journal.TypeStage, Stage: n, Plan: b})
}

func (r *runner) append(recs ...journal.Record) error {
	for i := range recs {
		recs[i].Phase, recs[i].Hint = r.phase, r.phase.Text(r.job.run(), recs[i].Hint)
	}
	return r.job.Journal.Append(recs...)
}

func (r *runner) emit(e Event) {
	if r.job.Sink == nil {
		return
	}
	r.emits.Lock()
	defer r.emits.Unlock()
	e.Time, e.Run = r.now(), r.job.run()
	e.Text, e.Hint = r.phase.Text(e.Run, e.Text), r.phase.Text(e.Run, e.Hint)
	r.job.Sink(e)
	if e.Type != EventForecast && (e.Type != EventProgress || e.Text != "") {
		r.voice.Spoke()
	}
}
