package generate

import (
	"net/netip"

	"github.com/spf13/cobra"

	"github.com/rdma-setup/rdma-setup/ui/cmd/console"
	"github.com/rdma-setup/rdma-setup/ui/cmd/session"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/generate"
)

// nodeNIC returns the type of the VMs' RDMA adapter.
func nodeNIC(a *answers.Answers) generate.NodeNIC {
	switch {
	case a.Mode == answers.SRIOV:
		return generate.NodeSRIOV
	case a.Mode == answers.GPUDirect:
		return generate.NodeNIC(a.GPUDirect.NIC)
	}
	return generate.NodePVRDMA
}

func newNetworkOperatorCmd(e *console.Env) *cobra.Command {
	var file, subnet string
	nic := string(generate.NodePVRDMA)
	n := generate.NetworkOperator{}
	c := &cobra.Command{
		Use:   "network-operator [-f answers.yaml | --nic pvrdma|sriov|passthrough] [flags]",
		Short: "Print what NVIDIA's Network Operator needs to give pods the nodes' RDMA adapters",
		Long: `Print a NicClusterPolicy for Kubernetes nodes that rdma-setup has set up. With PVRDMA and whole cards pods share the adapter
(RDMA shared device plugin); of VFs each pod gets one (SR-IOV device plugin). With VFs and whole cards pods also get an
interface and an address: Multus, IPAM and a network are added. The resource and the network are those that generate
mpijob takes. Neither vCenter nor the cluster is contacted.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			from := "flags"
			if file != "" {
				a, err := session.Load(e, file, nil)
				if err != nil {
					return err
				}
				from = file
				if !cmd.Flags().Changed("nic") {
					nic = string(nodeNIC(a))
				}
			}
			n.NIC = generate.NodeNIC(nic)
			if subnet != "" {
				var err error
				if n.Subnet, err = netip.ParsePrefix(subnet); err != nil {
					return console.Usage("write it like 192.168.60.0/24", "--subnet: %v", err)
				}
			}
			text, err := n.YAML(origin(e, "network-operator", from))
			return show(e, "see: rdma-setup generate network-operator --help", text, err)
		},
	}
	fl := c.Flags()
	fl.StringVarP(&file, "file", "f", "", "answers file: what the RDMA adapter of the VMs is")
	fl.Var(&console.Choice{Into: &nic, From: []string{string(generate.NodePVRDMA), string(generate.NodeSRIOV), string(generate.NodePassthrough)}}, "nic",
		"pvrdma, sriov or passthrough: what the RDMA adapter of the nodes is")
	fl.StringVar(&n.Release, "release", "v26.4.0", "release of the Network Operator, v25.7.0 or later")
	fl.StringVar(&subnet, "subnet", "", "network of the pods' second interfaces, which no other machine has addresses of: 192.168.60.0/24")
	fl.IntVar(&n.PerNode, "per-node", 16, "addresses of it for each node")
	fl.StringVar(&n.Namespace, "namespace", "default", "namespace of the jobs")
	fl.StringVar(&n.Interface, "interface", "", "RDMA interface of the nodes, with --nic passthrough")
	fl.IntVar(&n.MTU, "mtu", 0, "MTU of the pods' second interfaces, with --nic passthrough (default that of the node's)")
	return c
}

func newGPUOperatorCmd(e *console.Env) *cobra.Command {
	var file string
	g := generate.GPUOperator{}
	c := &cobra.Command{
		Use:   "gpu-operator [-f answers.yaml] [flags]",
		Short: "Print the Helm values that NVIDIA's GPU Operator needs on the nodes",
		Long: `Print what differs from the defaults of NVIDIA GPU Operator's Helm chart. Guests that rdma-setup has set up have their driver:
the operator deploys none unless --driver names its image, as for vGPUs that the operator licenses. Nothing is asked of
vCenter or the cluster.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			from := "flags"
			if file != "" {
				a, err := session.Load(e, file, nil)
				if err != nil {
					return err
				}
				from, g.GPUDirect = file, g.GPUDirect || a.Mode == answers.GPUDirect
			}
			text, err := g.YAML(origin(e, "gpu-operator", from))
			return show(e, "see: rdma-setup generate gpu-operator --help", text, err)
		},
	}
	fl := c.Flags()
	fl.StringVarP(&file, "file", "f", "", "answers file: its mode")
	fl.BoolVar(&g.GPUDirect, "gpudirect", false, "RDMA to and from GPU memory (default where the answers' mode is gpudirect)")
	fl.StringVar(&g.Driver, "driver", "", "image of the driver that the operator deploys, REPOSITORY/NAME:VERSION (default none)")
	fl.BoolVar(&g.OFED, "ofed", false, "the guests have MLNX_OFED or DOCA-OFED: GPUDirect RDMA through nvidia-peermem")
	fl.StringVar(&g.Secret, "licence-secret", "", "secret with the vGPU licence token, for a driver that the operator deploys")
	fl.BoolVar(&g.Toolkit, "toolkit", false, "the nodes have the NVIDIA container toolkit already")
	return c
}
