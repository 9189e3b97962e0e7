package cmd

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/perftest"
	uireport "github.com/rdma-setup/rdma-setup/ui/report"
	"github.com/rdma-setup/rdma-setup/wizard/report"
)

func newBenchCmd(e *Env) *cobra.Command {
	var f planFlags
	var output, pairs string
	c := &cobra.Command{
		Use:   "bench -f answers.yaml",
		Short: "Measure bandwidth and latency between the guests; loads the fabric",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return signalled(cmd.Context(), e, func(ctx context.Context, stop <-chan struct{}) error {
				ctx, cancel := context.WithCancel(ctx)
				defer cancel()
				go func() {
					select {
					case <-stop:
						cancel()
					case <-ctx.Done():
					}
				}()
				s, a, err := f.begin(ctx, e, cmd)
				if err != nil {
					return err
				}
				defer s.close()
				if pairs == "" {
					pairs = a.Measure.Pairs
				}
				if !a.Measure.Bandwidth && !a.Measure.Latency {
					return usage("set measure.bandwidth or measure.latency", "the answers ask for no measurement")
				}
				r := &runner{env: e, s: s, a: a}
				measured, err := s.measure(ctx, a, pairs, r.progress())
				if err != nil {
					return err
				}
				if len(measured) == 0 {
					return backends.Errorf(backends.KindRefused, "", "name at least two VMs with RDMA addresses in the answers", "there is no pair to measure")
				}
				rep := &report.Report{
					Mode: string(a.Mode), Made: e.Now(), Tool: version, VCenter: s.set.URL, Simulated: s.simulated,
					Changes: []report.Outcome{}, Checks: []checks.Finding{}, Measurements: measured,
				}
				if err := renderReport(e, output, rep); err != nil {
					return err
				}
				if measuredBadly(measured) {
					return exit(exitFailed)
				}
				return nil
			})
		},
	}
	c.Flags().StringVarP(&f.file, "file", "f", "", "answers file")
	c.Flags().StringVar(&pairs, "pairs", "", "ring, all or VM:VM (default from the answers)")
	outputFlag(c, &output, "text", "json")
	return c
}

func renderReport(e *Env, output string, r *report.Report) error {
	if r.Measurements == nil {
		r.Measurements = []perftest.Measurement{}
	}
	if output == "json" {
		return uireport.JSON(e.Stdout, r)
	}
	return uireport.Terminal(e.Stdout, r, e.theme())
}
