package cmd

import (
	"github.com/spf13/cobra"

	"github.com/rdma-setup/rdma-setup/ui/cmd/console"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

func newSchemaCmd(e *console.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of the answers",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			b, err := answers.Schema()
			if err != nil {
				return err
			}
			_, err = e.Stdout.Write(append(b, '\n'))
			return err
		},
	}
}
