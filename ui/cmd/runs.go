package cmd

import (
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/rdma-setup/rdma-setup/ui/cmd/console"
	"github.com/rdma-setup/rdma-setup/ui/plain"
	"github.com/rdma-setup/rdma-setup/wizard/engine/journal"
)

func newRunsCmd(e *console.Env) *cobra.Command {
	var output string
	c := &cobra.Command{
		Use:   "runs",
		Short: "List the runs that changed something",
		Args:  cobra.NoArgs,
		RunE: console.WithSettings(e, func(cmd *cobra.Command, _ []string, set *console.Settings) error {
			runs, err := journal.Runs(set.StateDir)
			if err != nil {
				return err
			}
			if output == "json" {
				return plain.WriteJSON(e.Stdout, map[string]any{"runs": append([]journal.Summary{}, runs...)})
			}
			if len(runs) == 0 {
				fmt.Fprintln(e.Stderr, "no runs yet")
				return nil
			}
			t := tabwriter.NewWriter(e.Lines(e.Stdout, e.Stdout), 0, 0, 2, ' ', 0)
			fmt.Fprintln(t, "RUN\tSTATUS\tMODE\tVCENTER\tSTARTED")
			for _, r := range runs {
				_ = plain.Printf(t, "%s\t%s\t%s\t%s\t%s\n", r.Run, r.Status, r.Mode, r.URL, r.Made.Local().Format("2006-01-02 15:04:05 MST"))
			}
			return t.Flush()
		}),
	}
	console.OutputFlag(c, &output, "text", "json")
	return c
}

func completeRuns(e *console.Env) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		set, err := console.ReadSettings(e, cmd)
		if err != nil || len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		runs, err := journal.Runs(set.StateDir)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ids := plain.Mapped(runs, func(r journal.Summary) string { return cobra.CompletionWithDesc(r.Run, r.Status+" "+r.Mode) })
		return ids, cobra.ShellCompDirectiveNoFileComp
	}
}
