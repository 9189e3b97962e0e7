package cmd

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rdma-setup/rdma-setup/wizard/sizing"
)

func newMMIOCmd(e *Env) *cobra.Command {
	var output string
	c := &cobra.Command{
		Use:   "mmio MODEL[=COUNT] ...",
		Short: "Work out pciPassthru.64bitMMIOSizeGB for passed-through GPUs, with the arithmetic",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			var gpus []sizing.GPUCount
			for _, arg := range args {
				model, n, _ := strings.Cut(arg, "=")
				count := 1
				if n != "" {
					var err error
					if count, err = strconv.Atoi(n); err != nil || count < 1 {
						return usage("write it like a100-80g=4", "%q: the count must be a number from 1", arg)
					}
				}
				gpus = append(gpus, sizing.GPUCount{Model: model, Count: count})
			}
			w, err := sizing.MMIO(gpus)
			if err != nil {
				return usage("", "%v", err)
			}
			if output == "json" {
				return writeJSON(e.Stdout, w)
			}
			_, err = fmt.Fprintln(e.Stdout, w.Explanation)
			return err
		},
	}
	outputFlag(c, &output, "text", "json")
	return c
}
