package generate

import (
	"net/netip"

	"github.com/spf13/cobra"

	"github.com/rdma-setup/rdma-setup/ui/cmd/console"
	"github.com/rdma-setup/rdma-setup/ui/cmd/session"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/generate"
	"github.com/rdma-setup/rdma-setup/wizard/sizing"
)

// overGuests collects the RDMA addresses of the guests for a script, from --host and from the answers, which are nil if no file
// is named, and returns where they came from.
func overGuests(e *console.Env, file string, hosts []string, into *[]netip.Addr) (*answers.Answers, string, error) {
	for _, h := range hosts {
		a, err := netip.ParseAddr(h)
		if err != nil {
			return nil, "", console.Usage("", "--host: %v", err)
		}
		*into = append(*into, a)
	}
	if file == "" {
		return nil, "flags", nil
	}
	a, err := session.Load(e, file, nil)
	if err != nil {
		return nil, "", err
	}
	for _, v := range a.VMs {
		if n := a.Networks(v); len(n) > 0 && v.Guest.Managed() {
			if n[0].IP.DHCP {
				return nil, "", console.Usage("omit --file and set the guests with --host",
					"%s gets its RDMA address by DHCP, so it is not known in advance", v.Name)
			}
			*into = append(*into, n[0].IP.Addr())
		}
	}
	return a, file, nil
}

// classOf returns the traffic class that guests set for RDMA; 0 if the host sets it, or nobody.
func classOf(a *answers.Answers) int {
	if a.Mode == answers.PVRDMA || a.QoS.Lossless != answers.LosslessPFC {
		return 0
	}
	return sizing.TrafficClass(a.QoS.DSCP, a.QoS.ECN)
}

func newOSUCmd(e *console.Env) *cobra.Command {
	var file string
	var s generate.OSU
	var hosts []string
	c := &cobra.Command{
		Use:   "osu (-f answers.yaml | --host ADDRESS ..)",
		Short: "Print the script that runs the OSU MPI micro-benchmarks over the guests",
		Long: `Print a script for the first guest: osu_mbw_mr and osu_alltoall over 2, 4, 8, 12, 16 and all VMs, the mean of five
runs each, compared with a baseline by the guide's threshold of 8.3 %. The command itself does not contact vCenter or the guests.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			a, from, err := overGuests(e, file, hosts, &s.Hosts)
			if err != nil {
				return err
			}
			if a != nil && !cmd.Flags().Changed("traffic-class") {
				s.Class = classOf(a)
			}
			text, err := s.Script(origin(e, "osu", from))
			return show(e, "use -f answers.yaml, or --host once for each guest", text, err)
		},
	}
	fl := c.Flags()
	fl.StringVarP(&file, "file", "f", "", "answers file: the VMs' RDMA addresses")
	fl.StringArrayVar(&hosts, "host", nil, "address of a guest; repeat for each guest")
	fl.StringVar(&s.Device, "device", "", "RDMA device in the guests (default: UCX detects it)")
	fl.IntVar(&s.Class, "traffic-class", 0, "IP traffic class of RoCE (default: from the answers, if guests mark their own traffic)")
	fl.IntVar(&s.Runs, "runs", 5, "runs of each test")
	return c
}
