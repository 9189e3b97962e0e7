package cmd

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/pflag"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/catalogue"
	"github.com/rdma-setup/rdma-setup/checks/perftest"
	"github.com/rdma-setup/rdma-setup/ui/cmd/console"
	"github.com/rdma-setup/rdma-setup/ui/cmd/session"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// applications are the programs that bench runs after the RDMA measurements.
type applications struct {
	osu, nccl bool
	dir       string
	perNode   int
}

func (p *applications) flags(fl *pflag.FlagSet) {
	fl.BoolVar(&p.osu, "osu", false, "also measure MPI: the OSU micro-benchmarks, or if they are missing, a program that is built in the guests")
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
			fmt.Fprintf(e.Stderr, "measured  %s  %s -> %s: %s\n", m.Test, backends.Clean(m.From), backends.Clean(m.To), figure(m))
		})
		all = append(all, list...)
	}
	if p.nccl && len(all) > 0 {
		facts := &checks.Facts{Answers: a, Inventory: s.Last(nil), Pairs: pairFacts(all)}
		found = catalogue.Run(ctx, facts, checks.Selection{Mode: a.Mode, Only: []string{"PAIR-NCCL-013"}})
	}
	return all, found, err
}

// unmeasured reports whether a requested test could not be run.
func unmeasured(all []perftest.Measurement) bool {
	return slices.ContainsFunc(all, func(m perftest.Measurement) bool { return m.Verdict == perftest.VerdictUnknown && m.Error != "" })
}
