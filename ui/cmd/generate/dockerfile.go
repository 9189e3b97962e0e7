package generate

import (
	"github.com/spf13/cobra"

	"github.com/rdma-setup/rdma-setup/ui/cmd/console"
	"github.com/rdma-setup/rdma-setup/wizard/generate/containers"
)

// guides is the value of --bitfusion that selects the package in the guide. Its URL is wider than a terminal.
const guides = "guide"

func newDockerfileCmd(e *console.Env) *cobra.Command {
	var d containers.Dockerfile
	family := "apt"
	c := &cobra.Command{
		Use:   "dockerfile",
		Short: "Print a Dockerfile that puts PVRDMA's libraries into an NGC image",
		Long: `Print a Dockerfile for containers over PVRDMA: it removes MLNX_OFED, installs the distribution's rdma-core, and
the build fails if the vmw_pvrdma provider is missing. The packages of MLNX_OFED and the release are found in the image while it is
built, unless they are given.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			d.EL = family == "dnf"
			if d.Bitfusion == guides {
				d.Bitfusion = containers.BitfusionClient
			}
			text, err := d.Text(origin(e, "dockerfile", d.Base))
			return show(e, "see: rdma-setup generate dockerfile --help", text, err)
		},
	}
	fl := c.Flags()
	fl.StringVar(&d.Base, "base", "nvcr.io/nvidia/tensorrt:20.12-py3", "base image, with a tag or digest (default: the guide's)")
	fl.Var(&console.Choice{Into: &family, From: []string{"apt", "dnf"}}, "family", "package manager of the base image: apt or dnf")
	fl.StringVar(&d.Codename, "codename", "", "release to install from, such as focal (default: that of the image)")
	fl.StringSliceVar(&d.Remove, "remove", nil, "packages to remove in addition to MLNX_OFED's (default: the guide's)")
	fl.StringSliceVar(&d.Packages, "packages", nil, "packages to install (default: the distribution's RDMA packages)")
	fl.StringVar(&d.Name, "name", "", "name of the image to build, for the lines at the top")
	fl.StringVar(&d.Bitfusion, "bitfusion", "", "https URL of the Bitfusion client's .deb; without a value, the guide's")
	fl.Lookup("bitfusion").NoOptDefVal = guides
	fl.StringVar(&d.SHA256, "bitfusion-sha256", "", "SHA-256 of that package")
	fl.StringVar(&d.Timezone, "timezone", "", "time zone that its installation asks for (default Etc/UTC)")
	fl.IntVar(&d.Class, "traffic-class", 0, "IP traffic class for UCX and NCCL in the containers (default: not set)")
	fl.IntVar(&d.GID, "gid-index", -1, "index of the RoCE v2 address for NCCL (default: NCCL detects it)")
	fl.BoolVar(&d.Sample, "sample", false, "also build the guide's TensorRT sample")
	return c
}
