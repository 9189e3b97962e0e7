package generate

import (
	"fmt"
	"net/netip"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/ui/cmd/console"
	"github.com/rdma-setup/rdma-setup/wizard/generate/containers"
)

// dockerHosts are the flags that assign each host its own network for containers.
type dockerHosts struct {
	all   string
	hosts []string
	self  string
}

func (d *dockerHosts) add(c *cobra.Command) {
	c.Flags().StringVar(&d.all, "subnets", "172.30.0.0/16", "network from which each host gets a /24 for its containers")
	c.Flags().StringArrayVar(&d.hosts, "host", nil, "NAME=ADDRESS of a host with containers; repeat for each host, always in the same order")
	c.Flags().StringVar(&d.self, "for", "", "the host that the file is for")
}

// spread returns the network of every host, and of the one that the file is for.
func (d *dockerHosts) spread() (netip.Prefix, []containers.Host, containers.Host, error) {
	var self containers.Host
	all, err := netip.ParsePrefix(d.all)
	if err != nil {
		return all, nil, self, console.Usage("write it as 172.30.0.0/16", "--subnets: %v", err)
	}
	var hosts []containers.Host
	for _, h := range d.hosts {
		name, addr, _ := strings.Cut(h, "=")
		a, err := netip.ParseAddr(addr)
		if err != nil {
			return all, nil, self, console.Usage("write it as vm-01=10.0.0.11", "--host %q is not of the form NAME=ADDRESS", h)
		}
		hosts = append(hosts, containers.Host{Name: name, Address: a})
	}
	if hosts, err = containers.Spread(all, hosts); err != nil {
		return all, nil, self, console.Usage("", "%v", err)
	}
	for _, h := range hosts {
		if h.Name == d.self {
			return all, hosts, h, nil
		}
	}
	return all, nil, self, console.Usage("set --for to one of the --host names", "--for %q is not one of the hosts", d.self)
}

func newDaemonJSONCmd(e *console.Env) *cobra.Command {
	var hosts dockerHosts
	var d containers.Daemon
	var file, bip, fixed string
	var dns []string
	c := &cobra.Command{
		Use:   "daemon-json [--merge FILE] (--host NAME=ADDRESS .. --for NAME | --bip ADDRESS/BITS)",
		Short: "Print Docker's daemon.json, merged into an existing one",
		Long: `Print Docker's daemon.json. Settings in the file of --merge are kept: other keys in their order, and other values of
the same keys, which are listed on stderr. Merging again changes nothing. With several hosts each gets its own network
for containers, without which no route between them is possible. Docker reads the file when it is restarted (systemctl restart
docker), which stops containers.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if err := bridgeOf(&d, &hosts, bip, fixed); err != nil {
				return err
			}
			for _, s := range dns {
				a, err := netip.ParseAddr(s)
				if err != nil {
					return console.Usage("", "--dns: %v", err)
				}
				d.DNS = append(d.DNS, a)
			}
			old, err := readMerge(e, file)
			if err != nil {
				return err
			}
			text, kept, err := d.Merge(old)
			if err != nil {
				return console.Usage("", "%v", err)
			}
			for _, k := range kept {
				fmt.Fprintf(e.Stderr, "note: %s\n", console.Visible(k))
			}
			_, err = e.Stdout.Write(text)
			return err
		},
	}
	fl := c.Flags()
	fl.StringVar(&file, "merge", "", "existing daemon.json; - reads stdin, and a missing file counts as empty")
	hosts.add(c)
	fl.StringVar(&bip, "bip", "", "address of docker0, such as 172.30.1.1/24, if no hosts are given")
	fl.StringVar(&fixed, "fixed-cidr", "", "range for the containers' addresses (default: the whole network)")
	fl.IntVar(&d.MTU, "mtu", 0, "MTU of docker0 in bytes")
	fl.StringSliceVar(&dns, "dns", nil, "name servers for containers")
	fl.BoolVar(&d.NVIDIA, "nvidia", false, "add the runtime of the NVIDIA container toolkit")
	return c
}

// bridgeOf sets docker0's network: the host's share, or the values of the flags.
func bridgeOf(d *containers.Daemon, hosts *dockerHosts, bip, fixed string) error {
	switch {
	case len(hosts.hosts) > 0 && bip != "":
		return console.Usage("use --bip, or --host and --for", "--bip and --host cannot be combined: both set docker0's network")
	case len(hosts.hosts) > 0:
		_, _, self, err := hosts.spread()
		if err != nil {
			return err
		}
		d.Bridge, d.Range = self.Bridge(), self.Containers
	case bip != "":
		p, err := netip.ParsePrefix(bip)
		if err != nil {
			return console.Usage("write it as 172.30.1.1/24", "--bip %q is not an address with a prefix length", bip)
		}
		d.Bridge = p
	}
	if fixed != "" {
		p, err := netip.ParsePrefix(fixed)
		if err != nil {
			return console.Usage("write it as 172.30.1.0/25", "--fixed-cidr %q is not a network", fixed)
		}
		d.Range = p
	}
	return nil
}

func readMerge(e *console.Env, file string) ([]byte, error) {
	switch file {
	case "":
		return nil, nil
	case "-":
		return backends.InputDaemon.Read(e.Stdin, "stdin")
	}
	b, err := backends.InputDaemon.ReadFile(file)
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, console.Usage("", "--merge: %v", err)
	}
	return b, nil
}

func newContainerRoutesCmd(e *console.Env) *cobra.Command {
	var hosts dockerHosts
	forward := string(containers.ForwardContainers)
	c := &cobra.Command{
		Use:   "container-routes --host NAME=ADDRESS .. --for NAME",
		Short: "Print the systemd unit for a host's routes to the containers of other hosts",
		Long: `Print a systemd unit for one host: routes to the containers of the others, forwarding, and firewall
rules. --forward containers allows forwarding between the containers' networks only; all allows everything, as the guide
does; leave changes nothing. Stopping the unit removes its routes and rules.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			all, list, self, err := hosts.spread()
			if err != nil {
				return err
			}
			text, err := containers.Routes(self.Name, all, list, containers.Forward(forward), origin(e, "container-routes", "flags"))
			return show(e, "", text, err)
		},
	}
	hosts.add(c)
	c.Flags().Var(&console.Choice{Into: &forward, From: []string{string(containers.ForwardContainers), string(containers.ForwardAll),
		string(containers.ForwardLeave)}}, "forward", "containers, all or leave")
	return c
}

func newDockerSetupCmd(e *console.Env) *cobra.Command {
	var d containers.Setup
	c := &cobra.Command{
		Use:   "docker-setup",
		Short: "Print the script that installs Docker and the NVIDIA container toolkit in a guest, and can undo it",
		Long: `Print a script for the guests: Docker's engine and, with --nvidia, the NVIDIA container toolkit from the vendors'
repositories, each with its own keyring (apt-key, which the guides use, no longer exists) and with Docker's key compared
with the guide's fingerprint. --distribution installs the distribution's Docker from the guest's own repositories instead,
and the toolkit too if they have it. The script works with apt, dnf and yum and can be run again; its argument "undo"
reverts what it did.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprint(e.Stdout, d.Script(origin(e, "docker-setup", "flags")))
			return err
		},
	}
	c.Flags().BoolVar(&d.NVIDIA, "nvidia", false, "also install the NVIDIA container toolkit")
	c.Flags().BoolVar(&d.Distribution, "distribution", false, "docker.io of Debian or Ubuntu, from the guest's own repositories")
	c.Flags().BoolVar(&d.RemoveOld, "remove-old", false, "remove another Docker, if there is one; images and containers are kept")
	c.Flags().BoolVar(&d.RemoveNVIDIA1, "remove-nvidia-docker", false, "remove nvidia-docker 1 and the containers that use its volumes")
	return c
}

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
