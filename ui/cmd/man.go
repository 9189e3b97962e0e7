package cmd

import (
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/rdma-setup/rdma-setup/ui/cmd/console"
)

func newManCmd(e *console.Env) *cobra.Command {
	var dir string
	c := &cobra.Command{
		Use:   "man",
		Short: "Print the manual page, or write one page per command into a directory",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			root := cmd.Root()
			root.DisableAutoGenTag = true
			header := &doc.GenManHeader{Title: "RDMA-SETUP", Section: "1", Source: "rdma-setup " + e.Version}
			if dir == "" {
				return doc.GenMan(root, header, e.Stdout)
			}
			if err := os.MkdirAll(dir, 0o755); err != nil {
				return err
			}
			return doc.GenManTree(root, header, dir)
		},
	}
	c.Flags().StringVar(&dir, "dir", "", "directory for the pages")
	return c
}
