package cmd

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/rdma-setup/rdma-setup/backends"
	uireport "github.com/rdma-setup/rdma-setup/ui/report"
	"github.com/rdma-setup/rdma-setup/ui/theme"
	"github.com/rdma-setup/rdma-setup/wizard/engine/journal"
	"github.com/rdma-setup/rdma-setup/wizard/report"
)

func newReportCmd(e *Env) *cobra.Command {
	var output, out string
	c := &cobra.Command{
		Use:               "report [RUN]",
		Short:             "Render the report of a run again",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: completeRuns(e),
		RunE: func(cmd *cobra.Command, args []string) error {
			set, err := settings(e, cmd)
			if err != nil {
				return err
			}
			run, err := chosenRun(set, args)
			if err != nil {
				return err
			}
			b, err := journal.ReadFile(set.StateDir, run, "report.json")
			if errors.Is(err, fs.ErrNotExist) {
				return backends.Errorf(backends.KindUsage, "", "carry it on with: rdma-setup resume "+run, "run %s has no report: it did not come to its end", run)
			}
			if err != nil {
				return err
			}
			var r report.Report
			if err := json.Unmarshal(b, &r); err != nil {
				return backends.Errorf(backends.KindPermanent, "", "", "the report of run %s is damaged: %w", run, err)
			}
			return renderTo(e, out, func(w io.Writer) error {
				if output == "json" {
					return uireport.JSON(w, &r)
				}
				t := e.theme()
				if out != "" {
					t = theme.Plain()
				}
				return uireport.Terminal(w, &r, t)
			})
		},
	}
	outputFlag(c, &output, "terminal", "json")
	c.Flags().StringVar(&out, "out", "", "file to write instead of stdout")
	return c
}

// renderTo writes to stdout or, where a file is named, to that file, whole or not at all.
func renderTo(e *Env, path string, render func(io.Writer) error) error {
	if path == "" {
		return render(e.Stdout)
	}
	f, err := os.CreateTemp(dirOf(path), ".rdma-setup-*")
	if err != nil {
		return backends.Errorf(backends.KindPermanent, "", "", "%s cannot be written: %w", path, err)
	}
	defer os.Remove(f.Name())
	err = errors.Join(render(f), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	return err
}
