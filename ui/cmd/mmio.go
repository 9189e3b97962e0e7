package cmd

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/rdma-setup/rdma-setup/assets"
	"github.com/rdma-setup/rdma-setup/ui/cmd/console"
	"github.com/rdma-setup/rdma-setup/ui/plain"
	"github.com/rdma-setup/rdma-setup/wizard/sizing"
)

func newMMIOCmd(e *console.Env) *cobra.Command {
	var output string
	c := &cobra.Command{
		Use:   "mmio MODEL[=COUNT] ...",
		Short: "Work out pciPassthru.64bitMMIOSizeGB for passed-through GPUs, with the arithmetic",
		Long: `Work out pciPassthru.64bitMMIOSizeGB for the GPUs of one VM, with the arithmetic: the least that holds their BARs, what
Broadcom KB 323402 asks for (the default of apply) and what VMware's guide says, which is too small for many cards.

MODEL is a model of the table (an unknown one prints it), a vGPU profile (grid_a100d-40c), nic for RDMA cards in the same
VM, or NAME:GB for a GPU that the table does not have, with the size of its memory.`,
		Example: `  rdma-setup mmio a100-80g=4
  rdma-setup mmio a30 a100-40g nic=2
  rdma-setup mmio b300=8
  rdma-setup mmio x9000:96=8`,
		Args: cobra.MinimumNArgs(1),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			names := []string{"nic"}
			table, _ := assets.GPUs()
			for _, g := range table {
				names = append(names, g.Name)
			}
			return names, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
		},
		RunE: func(_ *cobra.Command, args []string) error {
			gpus, others, err := gpuArguments(args)
			if err != nil {
				return err
			}
			w, err := sizing.MMIO(gpus, others...)
			if err != nil {
				return console.Usage(
					"for a GPU that is not in the table, add its memory in GB: NAME:GB=COUNT, such as x9000:96=8 (nvidia-smi --query-gpu=memory.total)",
					"%v", err)
			}
			if output == "json" {
				return plain.WriteJSON(e.Stdout, w)
			}
			return printWindow(e.Stdout, w)
		},
	}
	console.OutputFlag(c, &output, "text", "json")
	return c
}

// gpuArguments parses MODEL[:GB][=COUNT], and nic[=COUNT] for the BARs of RDMA cards.
func gpuArguments(args []string) (gpus []sizing.GPUCount, others []float64, err error) {
	for _, arg := range args {
		model, n, given := strings.Cut(arg, "=")
		g := sizing.GPUCount{Model: model, Count: 1}
		if given {
			if g.Count, err = strconv.Atoi(n); err != nil || g.Count < 1 || g.Count > 128 {
				return nil, nil, console.Usage("write it as a100-80g=4", "%q: the count must be a number from 1 to 128", arg)
			}
		}
		if name, gb, given := strings.Cut(model, ":"); given {
			if g.FramebufferGB, err = strconv.Atoi(gb); err != nil || g.FramebufferGB < 1 || g.FramebufferGB > 1024 {
				return nil, nil, console.Usage("write it as x9000:96=8", "%q: the memory must be a number of GB from 1 to 1024", arg)
			}
			g.Model = name
		}
		if strings.EqualFold(g.Model, "nic") {
			for range g.Count {
				others = append(others, sizing.NICBARs)
			}
			continue
		}
		gpus = append(gpus, g)
	}
	if len(gpus) == 0 {
		return nil, nil, console.Usage("add a GPU, such as a100-80g=4 nic=1", "RDMA cards alone need no MMIO window")
	}
	return gpus, others, nil
}

func printWindow(w io.Writer, win sizing.Window) error {
	if !win.Needed {
		_, err := fmt.Fprintln(w, win.Explanation)
		return err
	}
	boots := "holds the BARs"
	if !win.GuideBoots {
		boots = "TOO SMALL: the VM would not power on"
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "kb\t%d\tBroadcom KB 323402; the default of apply\n", win.KB)
	fmt.Fprintf(t, "minimal\t%d\tthe smallest power of two above %.2f GB of BARs\n", win.Minimal, win.TotalGB)
	fmt.Fprintf(t, "guide\t%d\tVMware's guide; %s\n", win.Guide, boots)
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(w, "\n%s\n", win.Explanation)
	if len(win.Unverified) > 0 {
		fmt.Fprintf(w, "BAR1 by rule, not read from a card: %s\n", strings.Join(win.Unverified, ", "))
	}
	if win.Warning != "" {
		fmt.Fprintf(w, "warning: %s\n", win.Warning)
	}
	_, err := fmt.Fprintf(w, "\npciPassthru.use64bitMMIO = TRUE\npciPassthru.64bitMMIOSizeGB = %d\n", win.KB)
	return err
}
