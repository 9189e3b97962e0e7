// Package engine carries out a plan: it orders changes, runs targets side by side, opens and closes the brackets around
// them, writes the journal before each operation and reads back after it, and tells all of it as events. Stopped, failed or
// killed, a run is resumed or rolled back from its journal. The engine knows changes, brackets and nothing else: no terminal,
// no vCenter, no kind of setting.
package engine

import (
	"context"
	"encoding/json"
	"os"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/engine/journal"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
)

// maxStages bounds a plan that never settles.
const maxStages = 12

// Run carries out the plan of a job. The error tells why the run as a whole could not go on (the journal cannot be
// written, the world cannot be read again, a later stage goes beyond what was consented to); what failed on a target
// stands in the result only.
func Run(ctx context.Context, job Job) (Result, error) {
	r := newRunner(job, journal.PhaseApply)
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
	kept        map[string]record        // by change, of the attempts before
	open        map[string]*bracket      // open since an attempt before
	made        map[string]made          // changes done in this attempt
	number      int                      // of the stage, from 1
	failed      map[backends.Ref]string  // targets that failed or were skipped in this attempt, and why nothing is begun on them
	powerFailed string                   // VM that did not start again: no other goes off
	late        bool                     // a wave was not started, because it would have ended after the window
	left        []string                 // what was not started for that reason: hosts and VMs
	took        map[string]time.Duration // longest step of each kind in this attempt
	earlier     []backends.Ref           // VMs that attempts before have switched on again
	back        []backends.Ref           // hosts and VMs that the run has taken out of service and brought back
	wave        string                   // host that failed while it was down: no other goes down
	used        plan.Ceiling             // reboots and power cycles of the stages before
	known       map[string]int           // index in results
	stop        <-chan struct{}          // nil when it has been heard
	halted      bool                     // no new operations: stopped, cancelled, or the journal is broken
	broken      error                    // of the journal
	before      bool                     // an attempt before has changed something
	unverified  bool                     // stopped before a stage that would have come
	unproven    bool                     // stopped because a log-in that the plan needs failed: no change was begun
	again       bool                     // a resume or a rollback
	result      Result
	virtual     *virtual // nil in a run; see Forecast

	paused  bool                  // by an operator
	retries map[backends.Ref]bool // targets that the next plan tries again
	stopper backends.Ref          // whose failure has stopped the waves of hosts
}

// A record is what a Keeper recorded, for which value.
type record struct {
	kept *backends.Kept
	to   backends.Value
}

// made is what a change was set to, and in which stage.
type made struct {
	to    backends.Value
	stage int
}

func newRunner(job Job, phase journal.Phase) *runner {
	r := &runner{
		job: job, limits: job.Limits.withDefaults(), now: job.Clock, phase: phase, stop: job.Stop,
		skip: map[string]bool{}, kept: map[string]record{}, open: map[string]*bracket{},
		took: map[string]time.Duration{}, made: map[string]made{}, failed: map[backends.Ref]string{}, known: map[string]int{},
		retries: map[backends.Ref]bool{},
	}
	if r.now == nil {
		r.now = time.Now
	}
	for _, id := range job.Skip {
		r.skip[id] = true
	}
	if job.Journal != nil {
		r.result.Run = job.Journal.Run()
	}
	return r
}

func (r *runner) begin() error {
	if r.job.Journal == nil {
		return backends.Errorf(backends.KindPermanent, "", "", "a run that changes something needs a journal")
	}
	return r.job.Journal.Append(journal.Record{Type: journal.TypeBegin, Phase: r.phase, PID: os.Getpid()})
}

// stages carries out p, plans again, and goes on until nothing is left that can be done.
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
		if !s.viable() && n > 1 {
			r.result.Differs = p.Changes
			return r.unsettled(p)
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
		r.forgiveLater()
		next, err := r.replan(ctx)
		if err != nil {
			return err
		}
		r.forget()
		r.result.Conflicts = next.Conflicts
		if next.Empty() {
			return nil
		}
		if n == maxStages {
			r.note("the plan does not settle: after %d stages it still wants changes", n)
			r.result.Differs = next.Changes
			return nil
		}
		p = *next
	}
}

// unsettled is the error of a run whose changes were made and read back one by one, and of which the survey afterwards
// says that they are still to be made; nil where each of them has failed or was never begun, and has its own word.
func (r *runner) unsettled(p plan.Plan) error {
	for _, c := range p.Changes {
		i, known := r.known[c.ID()]
		if known && c.From.Known() && !r.skip[c.ID()] && (r.result.Nodes[i].State == NodeDone || r.result.Nodes[i].State == NodeSkipped) {
			return backends.Errorf(backends.KindPermanent, c.Target.Name, "Run rdma-setup resume; where it ends like this again, look at the setting by hand.",
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
	r.halted = r.halted || ctx.Err() != nil
	r.result.Reread = err == nil
	return next, err
}

// consent asks where a later stage goes beyond what was consented to.
func (r *runner) consent(ctx context.Context, p plan.Plan) bool {
	left := r.job.Ceiling
	left.HostReboots -= r.used.HostReboots
	left.PowerCycles -= r.used.PowerCycles
	for _, b := range p.Brackets {
		// What was left open was consented to when it was opened.
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
		all := plan.Ceiling{Changes: map[string]bool{}, HostReboots: r.used.HostReboots + more.HostReboots, PowerCycles: r.used.PowerCycles + more.PowerCycles}
		for _, m := range []map[string]bool{r.job.Ceiling.Changes, more.Changes} {
			for id := range m {
				all.Changes[id] = true
			}
		}
		r.job.Ceiling = all
		return true
	}
	r.note("stopped before what was not consented to: %s", what)
	return false
}

// account adds the reboots and power cycles that a stage made.
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
		return backends.Errorf(backends.KindPermanent, "", "", "save the plan of stage %d: %w", n, err)
	}
	return r.append(journal.Record{Type: journal.TypeStage, Stage: n, Plan: b})
}

func (r *runner) append(recs ...journal.Record) error {
	for i := range recs {
		recs[i].Phase = r.phase
	}
	return r.job.Journal.Append(recs...)
}

func (r *runner) emit(e Event) {
	if r.job.Sink == nil {
		return
	}
	e.Time, e.Run = r.now(), r.result.Run
	r.job.Sink(e)
}
