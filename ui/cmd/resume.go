package cmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/ui/cmd/console"
	"github.com/rdma-setup/rdma-setup/ui/cmd/session"
	"github.com/rdma-setup/rdma-setup/ui/plain"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/engine"
	"github.com/rdma-setup/rdma-setup/wizard/engine/journal"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
	"github.com/rdma-setup/rdma-setup/wizard/plan/recipe"
	"github.com/rdma-setup/rdma-setup/wizard/plan/rollback"
)

func newResumeCmd(e *console.Env) *cobra.Command {
	return carryOnCmd(e, "resume [RUN]", "Continue a run that was interrupted or that failed on some targets", &carryOn{name: "resume"})
}

func newRollbackCmd(e *console.Env) *cobra.Command {
	return carryOnCmd(e, "rollback [RUN]", "Restore everything that a run changed", &carryOn{name: "rollback", back: true})
}

// carryOn contains what resume and rollback share: both continue with the journal of a run.
type carryOn struct {
	name string
	back bool

	salvage    bool               // undo what the intact records of a damaged journal show
	recovered  *journal.Recovered // these records, until they are saved
	onConflict string             // of a rollback
	breakLock  bool
	insist     bool // power VMs off again for what was refused before
	skipAway   bool // do not wait for what does not answer
	operation  time.Duration
}

func carryOnCmd(e *console.Env, use, short string, c *carryOn) *cobra.Command {
	var output, file string
	var yes bool
	cmd := &cobra.Command{
		Use:   use,
		Short: short,
		Long: short + `.

Without RUN, the last run that changed something on the vCenter of --url or the environment is taken. Every log-in that is needed is proven
before anything is changed: those to guests before the plan is shown, those to ESXi hosts after
you have accepted it.`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: completeRuns(e),
		RunE: console.WithSettings(e, func(cmd *cobra.Command, args []string, set *console.Settings) error {
			if c.salvage && len(args) == 0 {
				return resultLine(e, c.name, output, console.Usage("list the runs with: rdma-setup runs", "--salvage needs the id of a run"))
			}
			if !slices.Contains([]rollback.OnConflict{rollback.Stop, rollback.Keep, rollback.Restore}, rollback.OnConflict(c.onConflict)) && c.back {
				return resultLine(e, c.name, output,
					console.Usage("use keep to leave the setting as it is, restore to set the value from before the run, or stop to skip its target",
						"--on-conflict %q is not one of keep, restore and stop", c.onConflict))
			}
			if c.operation < 0 {
				return resultLine(e, c.name, output, console.Usage("", "--operation-timeout %s is negative", c.operation))
			}
			run, err := chosenRun(e, set, c.name, args)
			if err != nil {
				return resultLine(e, c.name, output, err)
			}
			return resultLine(e, c.name, output, console.Signalled(cmd.Context(), e, func(ctx context.Context, stop <-chan struct{}) error {
				phase := journal.PhaseApply
				if c.back {
					phase = journal.PhaseRollback
				}
				return phase.Err(run, c.do(ctx, e, cmd, set, run, file, yes, output == "json", stop))
			}))
		}),
	}
	console.OutputFlag(cmd, &output, "text", "json")
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "accept the plan as printed, without asking")
	cmd.Flags().StringVarP(&file, "file", "f", "", "answers file; refused if it differs from the answers of the run")
	cmd.Flags().BoolVar(&c.breakLock, "break-lock", false, "take over a shared lock (run.lock: shared) that has expired")
	cmd.Flags().BoolVar(&c.insist, "insist", false,
		"power VMs off again for changes that vCenter refused before, even if the cause of the refusal is still there")
	cmd.Flags().BoolVar(&c.skipAway, "skip-unreachable", false,
		"do not wait for hosts and guests that do not answer (default: each at most its own limit, while everything else continues)")
	operationFlag(cmd, &c.operation)
	if c.back {
		cmd.Flags().BoolVar(&c.salvage, "salvage", false, "roll back what the intact records of a damaged journal show, and list the rest")
		cmd.Flags().StringVar(&c.onConflict, "on-conflict", string(rollback.Stop),
			"for settings that were changed after the run: keep, restore, or stop (skip the target)")
	}
	return cmd
}

// chosenRun returns the named run, or the last that changed something on the vCenter of the settings, which may not be the one that
// has just ended. If the settings name no vCenter, the runs must be of one; those of labs that have ended do not count.
func chosenRun(e *console.Env, set *console.Settings, command string, args []string) (string, error) {
	if len(args) == 1 {
		return args[0], nil
	}
	named := set.URL != "" && !set.Lab
	if !named && !set.Lab {
		if several, err := vCenters(set); err != nil || len(several) > 1 {
			return "", cmp.Or(err, console.Usage("Name the run, or the vCenter with --url.", "there are runs of several vCenters: %s",
				strings.Join(several, "; ")))
		}
	}
	run, fruitless, err := journal.LastChanged(set.StateDir, func(s journal.Summary) bool {
		return !named || s.URL == "" || session.HostOf(s.URL) == session.HostOf(set.URL)
	})
	if named && backends.KindOf(err) == backends.KindUsage {
		if other, _, bad := journal.LastChanged(set.StateDir); bad == nil {
			return "", console.Usage("Name the run, if it is meant.", "no run has changed anything on %s yet; the last run elsewhere is %s",
				session.HostOf(set.URL), other)
		}
	}
	if err == nil && fruitless != "" {
		fmt.Fprintf(e.Stderr, "note: run %s ended before its first change; %s uses %s, the last run that changed something\n", fruitless, command,
			run)
		if command == "resume" {
			fmt.Fprintf(e.Stderr, "  to continue the latest run: rdma-setup resume %s\n", fruitless)
		}
	}
	return run, err
}

// vCenters returns the last run of each vCenter that is not rolled back, and where it is: "RUN on https://vc.example/sdk".
func vCenters(set *console.Settings) ([]string, error) {
	runs, err := journal.Runs(set.StateDir)
	var out []string
	seen := map[string]bool{}
	for _, r := range slices.Backward(runs) {
		if !r.Changed || r.Status == "rolled back" || seen[r.VCenter] || r.Simulated && !session.LabRuns(set, r.URL) {
			continue
		}
		seen[r.VCenter] = true
		out = append(out, r.Run+" on "+backends.Clean(r.URL))
	}
	return out, err
}

func (c *carryOn) do(ctx context.Context, e *console.Env, cmd *cobra.Command, set *console.Settings, run, file string, yes, asJSON bool,
	stop <-chan struct{}) error {
	st, err := c.readRun(e, set, run, file)
	if err != nil {
		return err
	}
	a, err := answers.Load(strings.NewReader(st.Header.Answers), "the journal of "+run)
	if err != nil {
		return err
	}
	f, err := recorded(st.Header.Options)
	if err != nil {
		return err
	}
	f.operation = c.operation
	f.breakLock, f.ask = c.breakLock, !yes && !asJSON
	given := ""
	if file != "" {
		f.file = file
		other, err := f.load(e, nil)
		if err != nil {
			return err
		}
		if given, err = text(other); err != nil {
			return err
		}
		if err := st.Same("", given); err != nil {
			return err
		}
	}
	if !c.back && st.Phase() == journal.PhaseApply && st.Finished() {
		fmt.Fprintf(e.Stderr, "run %s is finished: nothing to resume\n", run)
		if st.Header.Simulated {
			session.EndLab(set, st.Header.URL)
		}
		if asJSON {
			r := &runner{env: e}
			return r.writeResult(outcome{Status: engine.StatusUnchanged, Run: run, Text: "finished already"}, console.ExitOK)
		}
		return nil
	}
	if st.Header.Simulated {
		set.Lab, set.LabOf = set.Lab || set.URL == "" && session.LabRuns(set, st.Header.URL), st.Header.URL
	}
	s, err := session.Open(ctx, e, set, a)
	if err != nil {
		return endedLab(st, err)
	}
	defer s.Close()
	s.KeepLab(console.ExitPartial) // until the run is known to be finished
	r := &runner{env: e, s: s, a: a, flags: f, yes: yes, json: asJSON, stop: stop, earlier: doneChanges(st),
		onConflict: rollback.OnConflict(c.onConflict)}
	return r.carryOn(ctx, st, run, given, c)
}

// endedLab explains why a run on a lab that no longer answers cannot be continued.
func endedLab(st *journal.State, err error) error {
	if !st.Header.Simulated || backends.KindOf(err) != backends.KindUnreachable {
		return err
	}
	return backends.Unreachablef("",
		"The lab and its simulated state are gone, so nothing is left to resume or roll back. For a lab "+
			"that keeps running: rdma-setup lab --dir D",
		"the run used a lab that no longer answers: %w", err)
}

// lock takes the lock of a run and what it changes, on this machine.
func (r *runner) lock(ctx context.Context, inv *backends.Inventory, run string, changes []plan.Change) (*journal.Lock, error) {
	return journal.Acquire(ctx, r.s.Set.StateDir, inv.VCenter.InstanceUUID, journal.Holder{
		Run: run, PID: os.Getpid(), User: localUser(), Since: r.env.Now(), Targets: touched(r.a, inv, r.flags.limit, changes),
	})
}

// carryOn reads the inventory again, shows the remaining changes of a resume or rollback, and makes them.
func (r *runner) carryOn(ctx context.Context, st *journal.State, run, given string, c *carryOn) error {
	r.until, r.skipAway = windowEnd(r.env, r.a), c.skipAway
	r.untouched = r.env.Twin != nil && r.env.Twin.Guests
	inv, err := r.s.Survey(ctx, r.a)
	if err != nil {
		return err
	}
	if err := st.Same(inv.VCenter.InstanceUUID, ""); err != nil {
		return err // before anything is planned for, or waited for on, another vCenter
	}
	if cut := interruptedGuests(st); len(cut) > 0 {
		// Settling undoes what nobody has confirmed, so that no other run may be at work there. The one who is, is named below.
		if lock, err := r.lock(ctx, inv, run, recordedChanges(st)); err == nil {
			r.settle(ctx, cut)
			lock.Release()
			if inv, err = r.s.Survey(ctx, r.a); err != nil {
				return err
			}
		}
	}
	back := c.back || st.Phase() == journal.PhaseRollback
	next, err := r.planAgain(ctx, inv, st, back)
	if err != nil {
		if next, err = r.hostsToo(err, func() (*plan.Plan, error) { return r.planAgain(ctx, inv, st, back) }); err != nil {
			return err
		}
	}
	if back && !r.yes && r.env.Terminal() && len(next.Conflicts) > 0 {
		if r.decisions, err = decide(r.env, next.Conflicts); err != nil {
			return err
		}
		if next, err = r.planAgain(ctx, inv, st, back); err != nil {
			return err
		}
	}
	// hosts that an earlier attempt left out of service are brought back first, and may run VMs then
	if down, _ := downHosts(st); len(down) == 0 {
		if err := provenMoves(ctx, r.s, r.a, inv, next); err != nil {
			return err
		}
	}
	r.nameAway(next, c.skipAway)
	if r.unplanned != nil {
		_ = plain.Printf(r.env.Stderr, "note: until they answer, nothing can be planned: %s\n", r.unplanned.Error())
	}
	p := &planned{inv: inv, plan: next}
	if !back {
		p.findings = preflight(ctx, r.s, r.a, inv, r.flags)
	}
	if !next.Empty() && len(r.flags.barred) == 0 {
		if err := r.consent(p); err != nil {
			return err
		}
	}
	lock, err := r.lock(ctx, inv, run, slices.Concat(next.Changes, recordedChanges(st)))
	if err != nil {
		return err
	}
	defer lock.Release()
	shared, err := share(ctx, r.s, r.a, r.flags, run, inv)
	if err != nil {
		return err
	}
	defer shared.Release()
	if c.recovered != nil {
		if err := c.recovered.Save(r.s.Set.StateDir); err != nil {
			return err
		}
	}
	j, err := journal.Reopen(r.s.Set.StateDir, st, r.env.JournalOptions()...)
	if err != nil {
		return err
	}
	if _, ended := attempt(st.Records); ended && len(r.flags.barred) == 0 && r.env.Twin == nil {
		if err := keepPlacement(r.s, run, inv); err != nil {
			return errors.Join(err, j.Close())
		}
	}
	var saver *backups
	if !back && !next.Empty() && len(r.flags.barred) == 0 && r.env.Twin == nil {
		if saver, err = saveRest(ctx, r.stop, r.s, p, st); err != nil {
			return errors.Join(err, j.Close())
		}
	}
	sink, done := logged(r.s, run, r.sink())
	job := jobOf(r.s, r.a, r.flags, j, shared.stop(r.stop), sink)
	job.Plan, job.Ceiling, job.Limits.Until, job.Insist = *next, next.Ceiling(), r.until, c.insist
	job.Return, job.SkipUnreachable = r.returns, c.skipAway
	// Elsewhere another run may have ended between the survey and the locks, whose targets this plan has then in an older state.
	fresh := back && r.env.Twin != nil && settled(st, j.State())
	job.Replan = func(ctx context.Context) (*plan.Plan, error) {
		if fresh {
			fresh = false
			return next, nil
		}
		inv, err := r.surveyAgain(ctx, inv)
		if err != nil {
			return nil, err
		}
		own := *inv // the report shows hosts as they are, not as planned
		own.Hosts = slices.Clone(inv.Hosts)
		return r.planAgain(ctx, &own, j.State(), back) // the journal meanwhile gets the results of unfinished operations
	}
	job.Busy = busy(r.s, shared, inv.VCenter.InstanceUUID, true)
	if r.env.Twin != nil { // nobody else works on a twin, but a task of the run may not have ended
		job.Busy = among(engine.Unsettled(st), job.Busy)
	}
	job.VCenter, job.Answers = inv.VCenter.InstanceUUID, given
	job.Refused = r.flags.barred
	do := engine.Resume
	if c.back {
		do = engine.Rollback
	}
	end := heard(r.s, run, job.Remote)
	res, runErr := do(ctx, job)
	end()
	if saver != nil {
		saver.after(j)
	}
	res.Notes = append(append(res.Notes, leftBehind(j)...), movedVMs(ctx, r.s, r.a, j.State(), res, runErr, r.stop)...)
	runErr = errors.Join(runErr, j.Close(), done())
	if r.stopped(runErr) {
		return runErr
	}
	if back {
		return r.tookBack(res, runErr, remains(st))
	}
	return r.finish(ctx, p, res, runErr)
}

func (r *runner) planAgain(ctx context.Context, inv *backends.Inventory, st *journal.State, back bool) (*plan.Plan, error) {
	priors := engine.Priors(st)
	for _, p := range priors {
		// The outcome of an unfinished operation is read by its requested value, even if the new plan does not contain the change.
		if p.Change.Target.Type == backends.TypeGuest {
			r.s.Guests.Want(p.Change.Setting, p.Change.To)
		}
	}
	away := r.absent(ctx, inv, st)
	inv = away.shown(inv)
	down, evacuated := downHosts(st)
	down, evacuated = away.without(down), away.without(evacuated)
	if back {
		p, err := rollback.Build(priors, inv, rollback.Options{
			Mode: st.Header.Mode, Brackets: foundBrackets(st), Held: away.without(heldVMs(st)), Evacuated: evacuated, OnConflict: r.onConflict,
			Decisions: r.decisions,
			Canary:    r.a.Run.Power.Canary, Apart: groups(r.a, inv), Bystanders: r.a.Run.Bystanders, Listed: vmNames(r.a),
			Later:    sync.OnceValue(func() []rollback.LaterRun { return laterRuns(r.s.Set.StateDir, st) }),
			Observed: r.observed(ctx, answering(priors, inv)),
		})
		if err == nil {
			away.into(p)
			r.conflicts, r.left = p.Conflicts, p.Left
		}
		return p, err
	}
	ownMaintenance(inv, st)
	opts := r.flags.options()
	opts.Held, opts.Down, opts.Evacuated = away.without(heldVMs(st)), down, evacuated
	opts.Until, opts.Flashed, opts.Boots = r.until, flashed(st), boots(st)
	next, err := recipe.Build(away.rest(r.a), unasked(inv, r.flags.barred), opts)
	if err != nil && !r.skipAway && away.pending(&r.waits) { // it may be possible when they answer again
		r.unplanned, next, err = err, &plan.Plan{Mode: st.Header.Mode}, nil
	}
	if err == nil {
		away.into(next)
		r.s.Want(next)
	}
	return next, err
}

func (r *runner) observed(ctx context.Context, priors []plan.Prior) map[string]plan.Observation {
	seen := map[string]plan.Observation{}
	if r.untouched {
		r.untouched = false
		priors = slices.DeleteFunc(priors, func(p plan.Prior) bool {
			now, all := p.Last()
			if all = all && p.Change.Target.Type == backends.TypeGuest; all {
				seen[p.Change.ID()] = plan.Observation{Now: now}
			}
			return all
		})
	}
	maps.Copy(seen, engine.Observe(ctx, settersOf(r.s, r.a), priors, max(r.a.Run.Parallel, 1)))
	return seen
}

// tookBack ends a rollback: nothing is measured; everything is restored, except changes that a damaged journal does not prove.
func (r *runner) tookBack(res engine.Result, runErr, unproven error) error {
	code := res.Status.Exit()
	out := outcome{Status: res.Status, Run: res.Run, LeftBehind: leftOf(r.s.Set.StateDir, res)}
	if runErr != nil {
		out.Err, out.Hint = runErr.Error(), backends.HintOf(runErr)
		if code == console.ExitOK || code == console.ExitFailed {
			code = console.ExitCode(runErr)
		}
	}
	said := slices.Clone(res.Notes)
	for _, c := range r.left {
		said = append(said, "kept: "+c.String())
	}
	for _, c := range r.conflicts {
		said = append(said, "left alone: "+c.String())
	}
	if unproven != nil {
		said = append(said, unproven.Error())
	}
	out.Text = strings.Join(said, "; ")
	if (len(r.conflicts) > 0 || unproven != nil) && code == console.ExitOK {
		out.Status, code = engine.StatusPartial, console.ExitPartial
	}
	r.s.KeepLab(code)
	if r.json {
		if err := r.writeResult(out, code); err != nil {
			return err
		}
	} else {
		tellLeft(r.env.Stdout, out.LeftBehind)
		for _, n := range res.Notes {
			_ = plain.Printf(r.env.Stderr, "note: %s\n", n)
		}
		for _, c := range r.left {
			_ = plain.Printf(r.env.Stderr, "kept: %s\n", c.String())
		}
		for _, c := range r.conflicts {
			console.PrintError(r.env.Stderr, c.String(), c.Remedy)
		}
		if unproven != nil {
			console.PrintError(r.env.Stderr, unproven.Error(), backends.HintOf(unproven))
		}
		line := "rollback of " + res.Run + ": " + string(out.Status)
		if tally := res.Tally(); tally != "" {
			line += "; " + tally
		}
		fmt.Fprintln(r.env.Stdout, line)
	}
	if runErr != nil {
		return &console.CodeError{Code: code, Err: runErr}
	}
	return console.Exit(code)
}
