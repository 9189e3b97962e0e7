package cmd

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/vsphere"
	"github.com/rdma-setup/rdma-setup/checks/perftest"
	"github.com/rdma-setup/rdma-setup/ui/cmd/console"
	"github.com/rdma-setup/rdma-setup/ui/cmd/session"
	"github.com/rdma-setup/rdma-setup/ui/plain"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/engine"
	"github.com/rdma-setup/rdma-setup/wizard/engine/journal"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
	"github.com/rdma-setup/rdma-setup/wizard/plan/recipe"
	"github.com/rdma-setup/rdma-setup/wizard/report"
)

// carryOut executes a plan under the lock of its vCenter, with a journal. A plan without changes leaves no trace.
func carryOut(ctx context.Context, s *session.Session, a *answers.Answers, p *planned, f planFlags, stop <-chan struct{},
	sink engine.Sink) (engine.Result, error) {
	if p.plan.Empty() {
		return engine.Run(ctx, engine.Job{Plan: *p.plan, Sink: sink})
	}
	words, err := text(a)
	if err != nil {
		return engine.Result{}, err
	}
	vc := p.inv.VCenter
	now := s.Env.Now()
	h := journal.Header{
		Run: journal.NextRun(s.Set.StateDir, now, p.plan.Mode), Made: now.UTC(), Tool: s.Env.Version, VCenter: vc.InstanceUUID, URL: vc.URL,
		Mode: p.plan.Mode,
		User: localUser(), Simulated: vc.Simulated, Answers: words, PlanHash: p.plan.Hash(), Options: f.record(),
	}
	if h.Ceiling, err = json.Marshal(p.plan.Ceiling()); err != nil {
		return engine.Result{}, err
	}
	nameStrays(s.Env, s.Set.StateDir)
	lock, err := journal.Acquire(ctx, s.Set.StateDir, vc.InstanceUUID, journal.Holder{
		Run: h.Run, PID: os.Getpid(), User: h.User, Since: now, Targets: touched(a, p.inv, f.limit, p.plan.Changes),
	})
	if err != nil {
		return engine.Result{}, err
	}
	defer lock.Release()
	shared, err := share(ctx, s, a, f, h.Run, p.inv)
	if err != nil {
		return engine.Result{}, err
	}
	defer shared.Release()
	saved, err := json.MarshalIndent(planDocument(p, s.VC.Calls()), "", "  ")
	if err != nil {
		return engine.Result{}, err
	}
	j, err := journal.Create(s.Set.StateDir, h, saved, s.Env.JournalOptions()...)
	if err != nil {
		return engine.Result{}, err
	}
	var saver *backups
	if len(f.barred) == 0 && s.Env.Twin == nil { // the backups of a twin end with it
		if err = keepPlacement(s, h.Run, p.inv); err == nil {
			saver, err = saveBefore(ctx, stop, s, p, h.Run)
		}
	}
	if err != nil {
		return engine.Result{}, errors.Join(err, j.Close())
	}
	s.KeepLab(console.ExitPartial) // until the run is known to be finished
	sink, done := logged(s, h.Run, sink)
	job := jobOf(s, a, f, j, shared.stop(stop), sink)
	job.Plan, job.Ceiling, job.Limits.Until = *p.plan, p.plan.Ceiling(), p.until
	if s.Env.Twin == nil { // nobody else works on a twin
		job.Busy = busy(s, shared, vc.InstanceUUID, false)
	}
	job.Refused = f.barred
	s.Want(p.plan)
	end := heard(s, h.Run, job.Remote)
	res, err := engine.Run(ctx, job)
	end()
	if unproven(err) && !j.State().Changed() {
		s.KeepLab(console.ExitRefused)
	}
	res.Notes = append(append(res.Notes, leftBehind(j)...), movedVMs(ctx, s, a, j.State(), res, err, stop)...)
	if saver != nil {
		saver.after(j)
		res.Notes = append(res.Notes, saver.warnings()...)
	}
	return res, errors.Join(err, j.Close(), done())
}

// nameStrays reports files among the runs that are not a run.
func nameStrays(e *console.Env, state string) {
	names, err := journal.InvalidEntries(state)
	if err != nil {
		return // Create reports what is wrong
	}
	for _, name := range names {
		fmt.Fprintf(e.Stderr, "note: %q in %s is not a run of rdma-setup and is ignored\n", name, filepath.Join(state, "runs"))
	}
}

// leftBehind reports the changes of a run whose state directory was lost, because no other record exists.
func leftBehind(j *journal.Journal) []string {
	if !errors.Is(j.Err(), journal.ErrLost) {
		return nil
	}
	st := j.State()
	var out []string
	for _, e := range st.Entries() {
		switch {
		case len(e.Found) == 0:
			out = append(out, fmt.Sprintf("left behind: %s was %s; its current state is unknown", e.Node, e.Prior))
		case e.Found[0] != e.Prior:
			out = append(out, fmt.Sprintf("left behind: %s was %s and is %s", e.Node, e.Prior, e.Found[0]))
		}
	}
	for _, b := range st.OpenBrackets() {
		out = append(out, fmt.Sprintf("left behind: %s is still open; before the run it was %s", b.Node, b.Found))
	}
	return out
}

// logged also writes every event to the run's log; at level debug including the progress of tasks. If the log cannot be written
// the run continues.
func logged(s *session.Session, run string, sink engine.Sink) (engine.Sink, func() error) {
	f, err := journal.OpenLog(s.Set.StateDir, run)
	if err != nil {
		fmt.Fprintf(s.Env.Stderr, "no log of this run: %v\n", err)
		return sink, func() error { return nil }
	}
	write, end := plain.JSONLines(f), s.Trace.Run(f)
	s.InRun.Store(true)
	both := func(e engine.Event) {
		if e.Type != engine.EventProgress && (e.Type != engine.EventWaiting || e.Waits == "") || s.Set.LogLevel == "debug" {
			write(e)
		}
		sink(e)
	}
	return both, func() error {
		s.InRun.Store(false)
		end()
		return f.Close()
	}
}

// heard serves the socket of a run. A run that cannot have one continues without it.
func heard(s *session.Session, run string, r *engine.Remote) (end func()) {
	end, err := hearControls(s.Set.StateDir, run, r)
	if err != nil {
		fmt.Fprintf(s.Env.Stderr, "this run cannot be controlled with rdma-setup attach: %v\n", err)
	}
	return end
}

// planSaid precedes the notes of the plan in those of a report.
const planSaid = "the plan said, before the run:"

// rebootGrace is added to a limit that the other side enforces itself, because its timeout message is better.
const rebootGrace = time.Minute

// settersOf returns the setters of all kinds, with retries of transient errors.
func settersOf(s *session.Session, a *answers.Answers) map[backends.Kind]backends.Setter {
	o := vsphere.SetterOptions{Parallel: a.Run.Parallel}
	if s.Env.Twin != nil {
		o.Wait = s.Env.Twin.Wait
	}
	setters := maps.Clone(s.VC.Setters(o))
	maps.Copy(setters, s.Guests.Setters())
	maps.Copy(setters, s.Shells.Setters())
	return engine.Retry(setters, engine.Backoff{})
}

// jobOf returns a run's job without its plan.
func jobOf(s *session.Session, a *answers.Answers, f planFlags, j *journal.Journal, stop <-chan struct{}, sink engine.Sink) engine.Job {
	vmsOff := a.Run.Power.Limit(len(a.VMs))
	if s.Env.Twin != nil {
		vmsOff = 0
	}
	return engine.Job{
		Setters: settersOf(s, a), Brackets: s.Brackets(a), Gate: gateOf(s, a), Journal: j, Skip: f.skip, Sink: sink, Stop: stop, Clock: s.Env.Now,
		Remote:  cmp.Or(f.remote, engine.NewRemote()),
		Grounds: s.VC.Grounds, Notices: s.Notices,
		Limits: engine.Limits{Parallel: a.Run.Parallel, Apart: s.Env.Apart, Finish: s.Env.Connections > 0, Operation: f.operation,
			HostsDown: a.Run.Reboot.MaxUnavailable, VMsOff: vmsOff,
			Reboot: max(a.Run.Reboot.Limit(), session.Evacuation) + rebootGrace, PutBack: s.Env.PutBackLimit},
		Replan: func(ctx context.Context) (*plan.Plan, error) {
			inv, err := s.Survey(ctx, a)
			if err != nil {
				return nil, err
			}
			opts := f.options()
			opts.Boots = boots(j.State())
			next, err := recipe.Build(a, inv, opts)
			if err == nil {
				s.Want(next)
			}
			return next, err
		},
	}
}

// reportOf builds the report of a run and saves it beside its journal. earlier contains the changes of earlier attempts.
func reportOf(s *session.Session, a *answers.Answers, p *planned, res engine.Result, measured []perftest.Measurement, after aftermath,
	earlier []report.Outcome, runErr error) (*report.Report, error) {
	r := &report.Report{
		Run: res.Run, Mode: string(a.Mode), Made: s.Env.Now(), Tool: s.Env.Version, VCenter: p.inv.VCenter.URL,
		Simulated: p.inv.VCenter.Simulated,
		Insecure:  s.Set.Unverified(), Command: report.Apply, Status: string(res.Status), Changes: []report.Outcome{},
		Measurements: append([]perftest.Measurement{}, measured...), Notes: slices.Concat(res.Notes, after.notes, s.Remarks()),
		Environment: report.EnvironmentOf(s.Last(p.inv)), NCCL: session.NCCLSettings(a, s.Last(p.inv), measured),
	}
	r.SetChecks(after.findings)
	said := slices.DeleteFunc(slices.Clone(p.plan.Notes), func(n string) bool { return strings.HasPrefix(n, plan.TryFirst) })
	if len(said) > 0 {
		r.Notes = append(r.Notes, planSaid)
	}
	r.Notes = append(r.Notes, said...)
	now := map[string]bool{}
	for _, n := range res.Nodes {
		now[n.ID] = true
	}
	for _, o := range earlier {
		if !now[o.ID()] {
			r.Changes = append(r.Changes, o)
		}
	}
	for _, n := range res.Nodes {
		if n.Change == nil {
			if n.Err != nil && n.State == engine.NodeFailed {
				r.Failures = append(r.Failures, report.Failure{Target: n.Target, Step: n.Title, Err: n.Err.Error(), Hint: backends.HintOf(n.Err),
					On: silentHost(s.Last(p.inv), n, res.Nodes)})
			}
			continue
		}
		o := report.Outcome{Change: *n.Change, State: string(n.State), Found: n.Found}
		if n.Prior != nil {
			o.From = *n.Prior // as read just before the operation: the plan may not have known it
		}
		if n.Err != nil {
			o.Err, o.Hint = n.Err.Error(), backends.HintOf(n.Err)
		}
		r.Changes = append(r.Changes, o)
	}
	if runErr != nil {
		r.Err, r.Hint, r.ErrExit = runErr.Error(), backends.HintOf(runErr), console.ExitCode(runErr)
		if refused, ok := errors.AsType[*plan.Refused](runErr); ok {
			r.ErrOn = backends.Each(refused.Refusals, func(r plan.Refusal) backends.Ref { return r.Target })
		}
	}
	if res.Run == "" {
		return r, nil
	}
	r.LeftBehind = leftOf(s.Set.StateDir, res)
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return r, err
	}
	return r, journal.WriteFile(s.Set.StateDir, res.Run, "report.json", append(b, '\n'))
}

// silentHost returns the host of a VM whose step failed because that host, of which a step failed too, does not answer.
func silentHost(inv *backends.Inventory, n engine.NodeResult, all []engine.NodeResult) backends.Ref {
	v := inv.VM(n.Target.Name)
	if n.Target.Type != backends.TypeVM || v == nil || backends.KindOf(n.Err) != backends.KindUnreachable {
		return backends.Ref{}
	}
	host := backends.HostRef(v.Host)
	if !slices.ContainsFunc(all, func(o engine.NodeResult) bool {
		return o.Target == host && o.Change == nil && o.State == engine.NodeFailed
	}) {
		return backends.Ref{}
	}
	return host
}

func localUser() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return ""
}
