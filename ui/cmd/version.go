package cmd

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

func newVersionCmd(e *Env) *cobra.Command {
	var output string
	c := &cobra.Command{
		Use:   "version",
		Short: "Print the version, or what is linked in (-o spdx)",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			switch output {
			case "spdx":
				info, ok := debug.ReadBuildInfo()
				if !ok {
					return errors.New("this binary does not say what is linked into it")
				}
				return writeJSON(e.Stdout, materials(info, version, madeAt(e)))
			case "json":
				return writeJSON(e.Stdout, map[string]string{"version": version, "go": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH})
			}
			_, err := fmt.Fprintf(e.Stdout, "rdma-setup %s (%s %s/%s)\n", version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
	outputFlag(c, &output, "text", "json", "spdx")
	return c
}
