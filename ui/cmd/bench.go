package cmd

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/perftest"
	"github.com/rdma-setup/rdma-setup/ui/cmd/console"
	"github.com/rdma-setup/rdma-setup/ui/cmd/session"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/report"
)

func newBenchCmd(e *console.Env) *cobra.Command {
	var f planFlags
	var output, out, pairs, image string
	c := &cobra.Command{
		Use:   "bench -f answers.yaml",
		Short: "Measure bandwidth and latency between the guests; loads the fabric",
		Long: `bench measures bandwidth and latency between the guests that the answers name. It works in rounds: in each round, a guest
and a host port take part in one pair only. On links of 200 Gb/s and more it also measures with four queue pairs and in
both directions at once, because one queue pair may not fill such a link. It prints the expected duration first. If it is
interrupted, it prints what was measured so far.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return console.Interruptible(cmd.Context(), e, func(ctx context.Context) error {
				rep, err := bench(ctx, e, cmd, f, pairs, image)
				if rep == nil {
					return err
				}
				if bad := console.RenderTo(e, out, func(w io.Writer) error { return writeReport(w, output, rep, e.ThemeFor(out)) }); bad != nil {
					return bad
				}
				if err == nil && measuredBadly(rep.Measurements) {
					return console.Exit(console.ExitFailed)
				}
				return err
			})
		},
	}
	c.Flags().StringVarP(&f.file, "file", "f", "", "answers file")
	c.Flags().StringSliceVar(&f.limit, "limit", nil, "measure only between the VMs of these hosts")
	c.Flags().StringVar(&pairs, "pairs", "", "ring, all or VM:VM (default from the answers)")
	c.Flags().StringVar(&image, "image", "", "also measure from containers of this image (default container.image of the answers)")
	c.Flags().StringVar(&out, "out", "", "file to write instead of stdout")
	console.OutputFlag(c, &output, "text", "json", "html", "markdown", "junit")
	return c
}

// bench measures; with an error it gives what was measured before, nil where that is nothing.
func bench(ctx context.Context, e *console.Env, cmd *cobra.Command, f planFlags, pairs, image string) (*report.Report, error) {
	s, a, err := f.begin(ctx, e, cmd)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	if pairs == "" {
		pairs = a.Measure.Pairs
	}
	if image != "" {
		a.Container.Image = image
	}
	if image != "" && a.Mode == answers.PVRDMA {
		if err := imageKnowsPVRDMA(ctx, s, a); err != nil {
			return nil, err
		}
	}
	if !a.Measure.Bandwidth && !a.Measure.Latency {
		return nil, console.Usage("set measure.bandwidth or measure.latency", "the answers ask for no measurement")
	}
	if len(f.limit) > 0 {
		inv, err := s.Survey(ctx, a)
		if err == nil {
			err = knownLimit(inv, f.limit)
		}
		if err != nil {
			return nil, err
		}
		a, _ = limited(a, inv, f.limit)
	}
	measured, err := s.Measure(ctx, a, pairs, (&runner{env: e}).progress())
	if len(measured) == 0 {
		switch {
		case err == nil && ctx.Err() == nil && len(f.limit) > 0:
			fmt.Fprintf(e.Stderr, "note: %s\n", noPair(a, f.limit))
			return nil, nil
		case ctx.Err() != nil:
			err = backends.Errorf(backends.KindInterrupted, "", "", "interrupted before anything was measured")
		case err == nil:
			err = backends.Errorf(backends.KindRefused, "", "name at least two VMs with RDMA addresses in the answers", "there is no pair to measure")
		}
		return nil, err
	}
	r := &report.Report{
		Mode: string(a.Mode), Made: e.Now(), Tool: e.Version, VCenter: s.Set.URL, Simulated: s.Simulated(),
		Insecure: s.Set.Unverified(), Changes: []report.Outcome{}, Checks: []checks.Finding{}, Measurements: append([]perftest.Measurement{}, measured...),
		Environment: report.EnvironmentOf(s.Last(nil)), NCCL: session.NCCLSettings(a, s.Last(nil), measured),
	}
	if ctx.Err() != nil {
		r.Notes = []string{"interrupted: not every pair was measured"}
		err = backends.Errorf(backends.KindInterrupted, "", "", "interrupted: not every pair was measured")
	}
	return r, err
}

// imageKnowsPVRDMA refuses to measure from an image whose libraries cannot see the device.
func imageKnowsPVRDMA(ctx context.Context, s *session.Session, a *answers.Answers) error {
	inv, err := s.Survey(ctx, a)
	if err != nil {
		return err
	}
	for _, v := range a.VMs {
		if inside, looked := inv.Guest(v.Name).Inside(a.Container.Image); looked && !inside.PVRDMA {
			return backends.Errorf(backends.KindRefused, v.Name, "build one that does: rdma-setup generate dockerfile --base "+a.Container.Image, "image %s has %s", a.Container.Image, inside)
		}
	}
	return nil
}
