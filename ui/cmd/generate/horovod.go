package generate

import (
	"github.com/spf13/cobra"

	"github.com/rdma-setup/rdma-setup/ui/cmd/console"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/generate"
)

func newHorovodCmd(e *console.Env) *cobra.Command {
	var file string
	var tcp bool
	var hosts []string
	h := generate.Horovod{GPUs: 1, Net: generate.NCCL{GID: -1}}
	mode := string(answers.PVRDMA)
	c := &cobra.Command{
		Use:   "horovod (-f answers.yaml | --host ADDRESS ..) [flags]",
		Short: "Print the script that runs Horovod's benchmark in containers over the guests",
		Long: `Print a script for the first guest: it starts a container with Horovod in every guest, checks that the RDMA device is
visible inside, runs the benchmark of the guide (VGG16), checks in NCCL's log that it used the requested transport, and
removes the containers. The command itself does not contact vCenter or the guests.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			a, from, err := overGuests(e, file, hosts, &h.Hosts)
			if err != nil {
				return err
			}
			if a != nil && !cmd.Flags().Changed("mode") {
				mode = string(a.Mode)
			}
			if a != nil && !cmd.Flags().Changed("traffic-class") {
				h.Net.Class = classOf(a)
			}
			h.Net.Path = generate.Path(mode)
			if tcp {
				h.Net.Path = generate.TCP
			}
			text, err := h.Script(origin(e, "horovod", from))
			return show(e, "use -f answers.yaml, or --host once for each guest", text, err)
		},
	}
	fl := c.Flags()
	fl.StringVarP(&file, "file", "f", "", "answers file: mode, QoS, the VMs' RDMA addresses")
	fl.StringArrayVar(&hosts, "host", nil, "address of a guest; repeat for each guest")
	modeFlag(c, &mode)
	fl.BoolVar(&tcp, "tcp", false, "use TCP instead of RDMA, for comparison")
	fl.StringVar(&h.Image, "image", "horovod/horovod:0.28.1", "container image with Horovod, an SSH server and the examples")
	fl.IntVar(&h.GPUs, "gpus", 1, "GPUs of each guest")
	fl.IntVar(&h.Port, "ssh-port", 12345, "port of the containers' SSH servers")
	fl.StringVar(&h.Model, "model", "VGG16", "model of the benchmark")
	fl.StringVar(&h.Net.Device, "device", "", "RDMA device in the guests (default: NCCL detects it)")
	fl.IntVar(&h.Net.GID, "gid-index", -1, "index of the RoCE v2 address (default: NCCL detects it)")
	fl.IntVar(&h.Net.Class, "traffic-class", 0, "IP traffic class of RoCE (default: from the answers, if guests mark their own traffic)")
	fl.StringVar(&h.Net.Interface, "interface", "", "network interface for NCCL's own traffic, and for all with --tcp")
	return c
}
