package cmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os/user"
	"slices"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/vsphere"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/perftest"
	"github.com/rdma-setup/rdma-setup/ui/cmd/console"
	"github.com/rdma-setup/rdma-setup/ui/plain"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/engine"
	"github.com/rdma-setup/rdma-setup/wizard/engine/journal"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
	"github.com/rdma-setup/rdma-setup/wizard/plan/recipe"
	"github.com/rdma-setup/rdma-setup/wizard/report"
)

// carryOut runs a plan under the lock of its vCenter, with a journal. A plan without changes leaves no trace.
func (s *session) carryOut(ctx context.Context, a *answers.Answers, p *planned, f planFlags, stop <-chan struct{}, sink engine.Sink) (engine.Result, error) {
	if p.plan.Empty() {
		return engine.Run(ctx, engine.Job{Plan: *p.plan, Sink: sink})
	}
	words, err := text(a)
	if err != nil {
		return engine.Result{}, err
	}
	vc := p.inv.VCenter
	now := s.env.Now()
	h := journal.Header{
		Run: journal.NextRun(s.set.StateDir, now, p.plan.Mode), Made: now.UTC(), Tool: s.env.Version, VCenter: vc.InstanceUUID, URL: vc.URL, Mode: p.plan.Mode,
		User: localUser(), Simulated: vc.Simulated, Answers: words, PlanHash: p.plan.Hash(), Options: f.record(),
	}
	if h.Ceiling, err = json.Marshal(p.plan.Ceiling()); err != nil {
		return engine.Result{}, err
	}
	lock, err := journal.Acquire(ctx, s.set.StateDir, vc.InstanceUUID, journal.Holder{Run: h.Run, PID: pid(), User: h.User, Since: now})
	if err != nil {
		return engine.Result{}, err
	}
	defer lock.Release()
	saved, err := json.MarshalIndent(planDocument(p, s.vc.Calls()), "", "  ")
	if err != nil {
		return engine.Result{}, err
	}
	j, err := journal.Create(s.set.StateDir, h, saved, s.env.JournalOptions()...)
	if err != nil {
		return engine.Result{}, err
	}
	s.keepLab(console.ExitPartial) // until the run is known to be finished
	sink, done := s.logged(h.Run, sink)
	job := s.job(a, f, j, stop, sink)
	job.Plan, job.Ceiling = *p.plan, p.plan.Ceiling()
	s.want(p.plan)
	res, err := engine.Run(ctx, job)
	return res, errors.Join(err, j.Close(), done())
}

// logged writes every event into the run's log as well; at level debug also the progress of tasks. A log that cannot be
// written stops nothing.
func (s *session) logged(run string, sink engine.Sink) (engine.Sink, func() error) {
	f, err := journal.OpenLog(s.set.StateDir, run)
	if err != nil {
		fmt.Fprintf(s.env.Stderr, "no log of this run: %v\n", err)
		return sink, func() error { return nil }
	}
	write := plain.JSONLines(f)
	return func(e engine.Event) {
		if e.Type != engine.EventProgress || s.set.LogLevel == "debug" {
			write(e)
		}
		sink(e)
	}, f.Close
}

// job is everything of a run but its plan.
func (s *session) job(a *answers.Answers, f planFlags, j *journal.Journal, stop <-chan struct{}, sink engine.Sink) engine.Job {
	setters := maps.Clone(s.vc.Setters(vsphere.SetterOptions{Parallel: a.Run.Parallel}))
	maps.Copy(setters, s.guests.Setters())
	maps.Copy(setters, s.shells.Setters())
	return engine.Job{
		Setters: engine.Retry(setters, engine.Backoff{}), Brackets: s.brackets(a), Journal: j, Skip: f.skip, Sink: sink, Stop: stop, Clock: s.env.Now,
		Limits: engine.Limits{Parallel: a.Run.Parallel, HostsDown: a.Run.Reboot.MaxUnavailable, Reboot: max(a.Run.Reboot.Limit(), evacuation) + rebootGrace},
		Replan: func(ctx context.Context) (*plan.Plan, error) {
			inv, err := s.survey(ctx, a)
			if err != nil {
				return nil, err
			}
			next, err := recipe.Build(a, inv, f.options())
			if err == nil {
				s.want(next)
			}
			return next, err
		},
	}
}

// want tells the guests what a plan asks for: a set of packages or modules is read by the names that are wanted.
func (s *session) want(p *plan.Plan) {
	for _, c := range p.Changes {
		if c.Target.Type == backends.TypeGuest {
			s.guests.Want(c.Setting, c.To)
		}
	}
}

// measure runs the tests between the guests of the answers.
func (s *session) measure(ctx context.Context, a *answers.Answers, pairs string, progress func(perftest.Progress)) ([]perftest.Measurement, error) {
	if !a.Measure.Bandwidth && !a.Measure.Latency || pairs == "none" {
		return nil, nil
	}
	inv, err := s.survey(ctx, a)
	if err != nil {
		return nil, err
	}
	nodes := perftestNodes(a, inv)
	list, err := perftest.Pairs(nodes, pairs)
	if err != nil {
		return nil, console.Usage("give ring, all, or two VMs of the answers as VM:VM", "%v", err)
	}
	r := perftest.Runner{
		Shell: guestShell{s.guests}, Mode: string(a.Mode), Bandwidth: a.Measure.Bandwidth, Latency: a.Measure.Latency,
		Simulated: inv.VCenter.Simulated, Now: s.env.Now, Progress: progress, EthernetMTU: a.Switch.MTU,
	}
	if a.Mode == answers.PVRDMA {
		r.Counters = s.rdmaPackets(inv)
	}
	return r.Measure(ctx, list)
}

// report gathers what a run gave and keeps it beside its journal. earlier is what attempts before this one have done.
func (s *session) report(a *answers.Answers, p *planned, res engine.Result, measured []perftest.Measurement, after aftermath, earlier []report.Outcome) (*report.Report, error) {
	r := &report.Report{
		Run: res.Run, Mode: string(a.Mode), Made: s.env.Now(), Tool: s.env.Version, VCenter: p.inv.VCenter.URL, Simulated: p.inv.VCenter.Simulated,
		Insecure: s.set.Unverified(), Status: string(res.Status), Changes: []report.Outcome{}, Checks: append([]checks.Finding{}, after.findings...),
		Measurements: append([]perftest.Measurement{}, measured...), Notes: slices.Concat(res.Notes, after.notes),
		Environment: report.EnvironmentOf(s.last(p.inv), after.hosts), NCCL: ncclOf(a, s.last(p.inv), measured),
	}
	for _, n := range p.plan.Notes {
		r.Notes = append(r.Notes, "said before the run: "+n)
	}
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
			if n.Err != nil {
				note := n.ID + ": " + n.Err.Error()
				if hint := backends.HintOf(n.Err); hint != "" {
					note += " (" + hint + ")"
				}
				r.Notes = append(r.Notes, note)
			}
			continue
		}
		o := report.Outcome{Change: *n.Change, State: string(n.State), Found: n.Found}
		if n.Prior != nil {
			o.From = *n.Prior // as read just before the deed: the plan may not have known it
		}
		if n.Err != nil {
			o.Err = n.Err.Error()
		}
		r.Changes = append(r.Changes, o)
	}
	if res.Run == "" {
		return r, nil
	}
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return r, err
	}
	return r, journal.WriteFile(s.set.StateDir, res.Run, "report.json", append(b, '\n'))
}

// last is what was read last: after a measurement, the state that was measured.
func (s *session) last(otherwise *backends.Inventory) *backends.Inventory {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen == nil {
		return otherwise
	}
	return s.seen
}

// keepLab keeps the private lab while a run on it is not finished.
func (s *session) keepLab(code int) {
	if s.lab == nil {
		return
	}
	if err := s.lab.need(code == console.ExitPartial || code == console.ExitInterrupted || code == console.ExitFailed); err != nil {
		fmt.Fprintf(s.env.Stderr, "the lab may end before the run does: %v\n", err)
	}
}

func localUser() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return ""
}

// brackets are vCenter's, with the guest's own coming back awaited after a VM was powered on.
func (s *session) brackets(a *answers.Answers) map[backends.BracketKind]backends.Bracket {
	b := maps.Clone(s.vc.Brackets(vsphere.BracketOptions{Reboot: a.Run.Reboot.Limit(), Evacuate: evacuation, ShellUser: a.ESXi.User}))
	if power := b[backends.BracketVMPower]; power != nil {
		b[backends.BracketVMPower] = powerAndGuest{power, s}
	}
	return b
}
