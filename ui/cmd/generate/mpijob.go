package generate

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/rdma-setup/rdma-setup/ui/cmd/console"
	"github.com/rdma-setup/rdma-setup/ui/cmd/session"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/generate"
	"github.com/rdma-setup/rdma-setup/wizard/sizing"
)

// jobFlags are the flags of generate mpijob in addition to the answers.
type jobFlags struct {
	file string
	api  string
	mode string
	tcp  bool
	job  generate.Job
}

func newMPIJobCmd(e *console.Env) *cobra.Command {
	f := jobFlags{api: string(generate.V2Beta1), mode: string(answers.PVRDMA)}
	c := &cobra.Command{
		Use:   "mpijob [-f answers.yaml] [-- COMMAND ..]",
		Short: "Print a Kubernetes MPIJob over RoCE or TCP, with the settings for NCCL",
		Long: `Print an MPIJob for the Kubernetes MPI operator. With answers the guests are the workers' nodes: their RDMA device
and the index of its RoCE v2 address are read from them unless --device is given. COMMAND is what mpirun starts;
the default is the benchmark of the guide.`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error { return generateMPIJob(cmd, e, &f, args) },
	}
	fl := c.Flags()
	fl.StringVarP(&f.file, "file", "f", "", "answers file: mode, QoS, VMs")
	fl.Var(&console.Choice{Into: &f.api, From: []string{string(generate.V2Beta1), string(generate.V1Alpha2)}}, "api",
		"v2beta1, or v1alpha2 for old operators")
	modeFlag(c, &f.mode)
	fl.BoolVar(&f.job.NoWait, "no-wait", false, "leave launcherCreationPolicy out, which MPI operators of release 0.3 and 0.4 do not support")
	fl.BoolVar(&f.tcp, "tcp", false, "use TCP instead of RDMA, for comparison")
	fl.StringVar(&f.job.Name, "name", "tensorflow-benchmarks", "name of the job")
	fl.StringVar(&f.job.Namespace, "namespace", "", "namespace (default: that of the context)")
	fl.StringVar(&f.job.Image, "image", "mpioperator/tensorflow-benchmarks:latest", "container image of launcher and workers")
	fl.IntVar(&f.job.Workers, "workers", 2, "number of workers (default: the VMs of the answers)")
	fl.IntVar(&f.job.GPUs, "gpus", 1, "GPUs for each worker")
	fl.IntVar(&f.job.Slots, "slots", 0, "MPI ranks for each worker (default: one for each GPU)")
	fl.BoolVar(&f.job.Spread, "spread", true, "one worker per node: two on the same node measure its memory, not the fabric")
	fl.StringVar(&f.job.Resource, "rdma-resource", "",
		"resource of an RDMA device plugin, rdma/hca_shared_devices_a, instead of the node's /dev/infiniband")
	fl.StringVar(&f.job.Network, "network", "", "second network of the workers, such as the one of NVIDIA's Network Operator")
	fl.StringVar(&f.job.Net.Device, "device", "", "RDMA device in the workers (default: read from the guests)")
	fl.IntVar(&f.job.Net.GID, "gid-index", -1, "index of the RoCE v2 address (default: read from the guests, else NCCL detects it)")
	fl.IntVar(&f.job.Net.Class, "traffic-class", 0,
		"IP traffic class of RoCE (default: from the answers' DSCP, if guests mark their own traffic)")
	fl.StringVar(&f.job.Net.Interface, "interface", "", "network interface for NCCL's own traffic, and for all with --tcp")
	fl.IntVar(&f.job.Batches, "batches", 100, "batches of the benchmark")
	return c
}

func generateMPIJob(cmd *cobra.Command, e *console.Env, f *jobFlags, command []string) error {
	set, err := console.ReadSettings(e, cmd)
	if err != nil {
		return err
	}
	given := cmd.Flags().Changed
	f.job.API, f.job.Command = generate.API(f.api), command
	from := []string{"flags"}
	var a *answers.Answers
	switch {
	case set.Lab || f.file != "" && !f.tcp && f.job.Net.Device == "":
		s, loaded, err := session.Begin(cmd.Context(), e, cmd, f.file)
		if err != nil {
			return err
		}
		defer s.Close()
		a = loaded
		if !f.tcp && f.job.Net.Device == "" {
			inv, err := s.Survey(cmd.Context(), a)
			if err != nil {
				return err
			}
			// A job has one setting for all, so what differs between guests is left out and reported.
			device, gid, why := session.SharedNodes(inv, a)
			for _, w := range why {
				fmt.Fprintf(e.Stderr, "note: %s\n", console.Visible(w))
			}
			f.job.Net.Device = device
			if !given("gid-index") {
				f.job.Net.GID = gid
			}
		}
		from = sources(s, "answers", "the RDMA devices of the guests")
	case f.file != "":
		if a, err = session.Load(e, f.file, nil); err != nil {
			return err
		}
		from = append(from, f.file)
	}
	if a != nil {
		if !given("mode") {
			f.mode = string(a.Mode)
		}
		if !given("workers") && len(a.VMs) > 0 {
			f.job.Workers = len(a.VMs)
		}
		// Frames of a PVRDMA adapter are marked by the host, not by the guest.
		if !given("traffic-class") && f.mode != string(answers.PVRDMA) && a.QoS.Lossless == answers.LosslessPFC {
			f.job.Net.Class = sizing.TrafficClass(a.QoS.DSCP, a.QoS.ECN)
		}
	}
	f.job.Net.Path = generate.Path(f.mode)
	if f.tcp {
		f.job.Net.Path = generate.TCP
	}
	text, err := f.job.YAML(origin(e, "mpijob", from...))
	return show(e, "see: rdma-setup generate mpijob --help", text, err)
}
