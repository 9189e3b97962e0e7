package cmd

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"

	"github.com/spf13/cobra"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/ui/cmd/console"
	"github.com/rdma-setup/rdma-setup/ui/render"
	"github.com/rdma-setup/rdma-setup/ui/theme"
	"github.com/rdma-setup/rdma-setup/wizard/engine/journal"
	"github.com/rdma-setup/rdma-setup/wizard/report"
)

func newReportCmd(e *console.Env) *cobra.Command {
	var output, out string
	c := &cobra.Command{
		Use:               "report [RUN]",
		Short:             "Print the report of a run again",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: completeRuns(e),
		RunE: console.WithSettings(e, func(cmd *cobra.Command, args []string, set *console.Settings) error {
			if err := console.OutputFiles(cmd); err != nil {
				return err
			}
			run, err := chosenRun(e, set, "report", args)
			if err != nil {
				return err
			}
			r, err := reportKept(set.StateDir, run)
			if err != nil {
				return err
			}
			return console.RenderTo(e, out, func(w io.Writer) error { return writeReport(w, output, r, e.ThemeFor(out)) })
		}),
	}
	console.OutputFlag(c, &output, "terminal", "html", "markdown", "json", "junit")
	c.Flags().StringVar(&out, "out", "", "file to write instead of stdout")
	return c
}

// reportKept returns the saved report of a run, with later events such as a rollback.
func reportKept(state, run string) (*report.Report, error) {
	b, err := journal.ReadFile(state, run, "report.json")
	if errors.Is(err, fs.ErrNotExist) {
		return brokenOff(state, run)
	}
	if err != nil {
		return nil, err
	}
	var r report.Report
	if err := json.Unmarshal(b, &r); err != nil {
		return nil, backends.Permanentf("", "", "the report of run %s is damaged: %w", run, err)
	}
	if st, err := journal.Read(state, run); err == nil {
		r.LeftBehind = leftIn(st)
		if st.Phase() == journal.PhaseRollback && !journal.Running(state, st.Header.VCenter, run) {
			if r.Status = report.HalfRolledBack; st.Finished() {
				r.Status = report.RolledBack
			}
		}
	}
	return &r, nil
}

// writeReport prints a report in one of the formats of package render; terminal is the default.
func writeReport(w io.Writer, format string, r *report.Report, t theme.Theme) error {
	switch format {
	case "html":
		return render.HTML(w, r)
	case "markdown":
		return render.Markdown(w, r)
	case "json":
		return render.JSON(w, r)
	case "junit":
		return render.JUnit(w, r)
	}
	return render.Terminal(w, r, t)
}
