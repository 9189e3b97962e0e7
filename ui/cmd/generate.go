package cmd

import (
	"github.com/spf13/cobra"

	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

func newGenerateCmd(e *Env) *cobra.Command {
	c := &cobra.Command{
		Use:   "generate",
		Short: "Print files made from templates",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return usage("rdma-setup generate answers", "generate what?")
		},
	}
	c.AddCommand(&cobra.Command{
		Use:   "answers",
		Short: "Print answers with every key, its default and what it means",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return answers.Save(e.Stdout, answers.Default(answers.PVRDMA))
		},
	})
	return c
}
