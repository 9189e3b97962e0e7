package cmd

import (
	"cmp"
	"context"
	"io"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/catalogue"
	"github.com/rdma-setup/rdma-setup/checks/perftest"
	"github.com/rdma-setup/rdma-setup/ui/cmd/console"
	"github.com/rdma-setup/rdma-setup/ui/cmd/session"
	"github.com/rdma-setup/rdma-setup/ui/plain"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
	"github.com/rdma-setup/rdma-setup/wizard/report"
)

func newBenchCmd(e *console.Env) *cobra.Command {
	var f planFlags
	var apps applications
	var output, out, pairs, image string
	var o loadFlags
	c := &cobra.Command{
		Use:   "bench -f answers.yaml",
		Short: "Measure bandwidth and latency between the guests; loads the fabric",
		Long: `bench measures bandwidth and latency between the guests that the answers name. It works in rounds: in each round, a guest
and a host port take part in one pair only. On links of 200 Gb/s and more it also measures with four queue pairs and in
both directions at once, because one queue pair may not fill such a link. It prints the expected duration first. If it is
interrupted, it prints what was measured so far.

With --osu and --nccl it then runs MPI and NCCL over the same pairs, and all-reduce over all guests, and compares their
figures with those of RDMA. Open MPI must be installed in the guests; they need no SSH access to each other.

With --load several VMs send at once: incast, in which each VM receives once from up to eight others, and with all also the
bisection, in which each VM of one half sends to one of the other half and back. It prints the amount of data and the duration,
and asks first; the counters of loss and pause frames show whether the class is lossless under load.`,
		Example: "  rdma-setup bench -f answers.yaml --load incast\n  rdma-setup bench -f answers.yaml --pairs none --load all --yes -o json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := console.OutputFiles(cmd); err != nil {
				return err
			}
			return console.Interruptible(cmd.Context(), e, func(ctx context.Context) error {
				rep, err := bench(ctx, e, cmd, f, pairs, image, apps, o)
				if rep == nil || rep.Unconfigured {
					if out == "" && !machine(output) {
						return err
					}
					stub := f.unjudged(e, cmd, report.Bench, err)
					stub.Unconfigured, rep = rep != nil, stub
				}
				rep.Command = report.Bench
				if err != nil {
					rep.Err, rep.Hint, rep.ErrExit = err.Error(), backends.HintOf(err), console.ExitCode(err)
				}
				if bad := console.Publish(e, out, func(w io.Writer) error { return writeReport(w, output, rep, e.ThemeFor(out)) }); bad != nil {
					return bad
				}
				return exitOf(rep, err)
			})
		},
	}
	c.Flags().StringVarP(&f.file, "file", "f", "", "answers file")
	c.Flags().StringSliceVar(&f.limit, "limit", nil, "measure only between the VMs of these hosts")
	c.Flags().StringVar(&pairs, "pairs", "", "ring, all, none (only the tests of --load) or VM:VM (default from the answers)")
	c.Flags().StringVar(&image, "image", "", "also measure from containers of this image (default container.image of the answers)")
	c.Flags().Var(&console.Choice{Into: &o.load, From: []string{perftest.LoadNone, perftest.LoadIncast, perftest.LoadAll}}, "load",
		"several senders at "+
			"once: none, incast or all (default from the answers)")
	c.Flags().BoolVar(&o.yes, "yes", false, "load the fabric without asking")
	c.Flags().StringVar(&out, "out", "", "file to write instead of stdout")
	apps.flags(c.Flags())
	console.OutputFlag(c, &output, "text", "json", "html", "markdown", "junit")
	return c
}

// loadFlags are the flags of bench for loading the fabric with several senders.
type loadFlags struct {
	load string
	yes  bool
}

// bench measures; with an error it returns the measurements so far, nil if there are none.
func bench(ctx context.Context, e *console.Env, cmd *cobra.Command, f planFlags, pairs, image string, apps applications,
	o loadFlags) (*report.Report, error) {
	if err := apps.check(); err != nil {
		return nil, err
	}
	s, a, err := f.begin(ctx, e, cmd)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	pairs = cmp.Or(pairs, a.Measure.Pairs)
	if pairs == "none" && (apps.osu || apps.nccl) {
		return nil, console.Usage("set --pairs to ring, all or VM:VM", "--osu and --nccl need pairs, but --pairs is none")
	}
	if image != "" {
		a.Container.Image = image
	}
	if image != "" && a.Mode == answers.PVRDMA {
		if err := imageKnowsPVRDMA(ctx, s, a); err != nil {
			return nil, err
		}
	}
	loads := perftest.Loads(cmp.Or(o.load, a.Measure.Load))
	if !a.Measure.Bandwidth && !a.Measure.Latency && len(loads) == 0 {
		return nil, console.Usage("set measure.bandwidth or measure.latency", "all measurements are turned off in the answers")
	}
	inv, err := s.Survey(ctx, a)
	if err == nil {
		err = knownLimit(inv, f.limit)
	}
	if err != nil {
		return nil, err
	}
	a, inv = limited(a, inv, f.limit)
	if checks.Untouched(a, inv) {
		return &report.Report{Unconfigured: true}, backends.Refusedf("", "set it up first: rdma-setup apply -f "+f.file,
			"RDMA is not set up: no VM has an RDMA adapter")
	}
	if err := noGuestRead(inv); err != nil {
		return nil, err
	}
	r := &runner{env: e, s: s, yes: o.yes}
	if len(loads) > 0 && !o.yes && !e.Terminal() {
		if !s.Simulated() {
			return nil, errNoConsent()
		}
	}
	measured, err := s.Measure(ctx, a, inv, pairs, r.progress())
	base := measured
	if err == nil {
		var more []perftest.Measurement
		more, err = s.Load(ctx, a, loads, r.loading())
		measured = append(slices.Clip(measured), more...)
	}
	if len(measured) == 0 {
		switch {
		case err == nil && ctx.Err() == nil && len(f.limit) > 0:
			err = backends.Refusedf("", "name hosts with at least two VMs of the answers, or omit --limit", "%s",
				noPair(a, f.limit))
		case err == nil && ctx.Err() == nil && len(loads) > 0 && pairs == "none":
			err = backends.Interruptedf("", "", "not confirmed: the fabric was not loaded, and nothing was measured")
		case ctx.Err() != nil:
			err = backends.Interruptedf("", "", "interrupted before anything was measured")
		case err == nil:
			err = backends.Refusedf("", "name at least two VMs with RDMA addresses in the answers",
				"there are no two VMs to measure")
		}
		return nil, err
	}
	found := []checks.Finding{}
	if err == nil && (apps.osu || apps.nccl) {
		more, findings, bad := apps.run(ctx, e, s, a, pairs, base)
		measured, err, found = append(measured, more...), bad, append(found, findings...)
	}
	rep := &report.Report{
		Mode: string(a.Mode), Made: e.Now(), Tool: e.Version, VCenter: s.Set.URL, Simulated: s.Simulated(),
		Insecure: s.Set.Unverified(), Changes: []report.Outcome{}, Measurements: append([]perftest.Measurement{}, measured...),
		Environment: report.EnvironmentOf(s.Last(nil)), NCCL: session.NCCLSettings(a, s.Last(nil), base), Notes: s.Remarks(),
	}
	if ctx.Err() != nil {
		rep.Notes = append(rep.Notes, "interrupted: not every pair was measured")
		err = backends.Interruptedf("", "", "interrupted: not every pair was measured")
	}
	rep.SetChecks(found)
	return rep, err
}

// noGuestRead is the refusal to measure where no guest of the inventory could be read.
func noGuestRead(inv *backends.Inventory) error {
	var r plan.Refused
	for i := range inv.Guests {
		if inv.Guests[i].Error == "" {
			return nil
		}
		r.Refusals = append(r.Refusals, plan.UnreadGuest(&inv.Guests[i]))
	}
	if len(r.Refusals) == 0 {
		return nil
	}
	return &r
}

// imageKnowsPVRDMA refuses to measure with an image whose libraries do not support PVRDMA.
func imageKnowsPVRDMA(ctx context.Context, s *session.Session, a *answers.Answers) error {
	inv, err := s.Survey(ctx, a)
	if err != nil {
		return err
	}
	for _, v := range a.VMs {
		if inside, looked := inv.Guest(v.Name).Inside(a.Container.Image); looked && !inside.PVRDMA {
			return backends.Refusedf(v.Name, "build one that does: rdma-setup generate dockerfile --base "+a.Container.Image,
				"image %s has %s", a.Container.Image, inside)
		}
	}
	return nil
}

// applications are the programs that bench runs after the RDMA measurements.
type applications struct {
	osu, nccl bool
	dir       string
	perNode   int
}

func (p *applications) flags(fl *pflag.FlagSet) {
	fl.BoolVar(&p.osu, "osu", false,
		"also measure MPI: the OSU micro-benchmarks, or if they are missing, a program that is built in the guests")
	fl.BoolVar(&p.nccl, "nccl", false, "also measure NCCL: all_reduce_perf and all_gather_perf of nccl-tests, built with MPI=1")
	fl.StringVar(&p.dir, "nccl-tests", "", "directory of the nccl-tests programs in the guests (default: the guests' PATH)")
	fl.IntVar(&p.perNode, "ranks", 1, "with --osu and --nccl: ranks in each guest; for NCCL, the number of GPUs")
}

func (p applications) check() error {
	switch {
	case p.perNode < 1 || p.perNode > 1024:
		return console.Usage("use a number from 1 to 1024", "--ranks %d is out of range", p.perNode)
	case p.dir != "" && !p.nccl:
		return console.Usage("add --nccl", "--nccl-tests has no effect without --nccl")
	}
	return nil
}

// run measures the applications; the findings are those of PAIR-NCCL-013 if NCCL was run.
func (p applications) run(ctx context.Context, e *console.Env, s *session.Session, a *answers.Answers, pairs string,
	base []perftest.Measurement) (all []perftest.Measurement, found []checks.Finding, err error) {
	for _, app := range []perftest.Application{{PerNode: p.perNode}, {NCCL: true, Dir: p.dir, PerNode: p.perNode}} {
		if app.NCCL && !p.nccl || !app.NCCL && !p.osu || err != nil {
			continue
		}
		var list []perftest.Measurement
		list, err = s.Applications(ctx, a, pairs, app, base, func(m perftest.Measurement) {
			_ = plain.Printf(e.Stderr, "measured  %s  %s -> %s: %s\n", m.Test, m.From, m.To, figure(m))
		})
		all = append(all, list...)
	}
	if p.nccl && len(all) > 0 {
		facts := &checks.Facts{Answers: a, Inventory: s.Last(nil), Pairs: pairFacts(all)}
		found = catalogue.Run(ctx, facts, checks.Selection{Uses: a.Uses(), Only: []string{"PAIR-NCCL-013"}})
	}
	return all, found, err
}
