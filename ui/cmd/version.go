package cmd

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/rdma-setup/rdma-setup/ui/cmd/console"
	"github.com/rdma-setup/rdma-setup/ui/plain"
)

func newVersionCmd(e *console.Env) *cobra.Command {
	var output string
	c := &cobra.Command{
		Use:   "version",
		Short: "Print the version, the SBOM (-o spdx) or the licences (-o licenses)",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			switch output {
			case "spdx", "licenses":
				info, ok := debug.ReadBuildInfo()
				if !ok {
					return errors.New("this binary contains no list of its modules")
				}
				doc := materials(info, e.Version, e.Made())
				if output == "licenses" {
					return licenses(e.Stdout, doc)
				}
				return plain.WriteForeignJSON(e.Stdout, doc)
			case "json":
				return plain.WriteJSON(e.Stdout, map[string]string{"version": e.Version, "go": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH})
			}
			_, err := fmt.Fprintf(e.Stdout, "rdma-setup %s (%s %s/%s)\n", e.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
	console.OutputFlag(c, &output, "text", "json", "spdx", "licenses")
	return c
}
