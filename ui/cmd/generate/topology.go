package generate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/ui/cmd/console"
	"github.com/rdma-setup/rdma-setup/ui/cmd/session"
	"github.com/rdma-setup/rdma-setup/wizard/generate"
)

func newTopologyCmd(e *console.Env) *cobra.Command {
	var file, vm string
	t := generate.Topology{}
	c := &cobra.Command{
		Use:   "nccl-topo -f answers.yaml --vm NAME",
		Short: "Print the NCCL_TOPO_FILE of a guest: which of its GPUs and NICs share a bridge of the host",
		Long: `Print a topology in the XML that NCCL reads from NCCL_TOPO_FILE. In a VM all devices seem to be equally far apart; the
host's PCI tree tells which GPU and which NIC share a switch, and the guest at which addresses it has them. Devices of one
kind are matched in their order. The speed of links is not read: name it where it is not that of PCIe 4.0 x16.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, a, err := session.Begin(cmd.Context(), e, cmd, file)
			if err != nil {
				return err
			}
			defer s.Close()
			inv, err := s.Survey(cmd.Context(), a)
			if err != nil {
				return err
			}
			if vm == "" && len(a.VMs) == 1 {
				vm = a.VMs[0].Name
			}
			if t.Devices, err = devicesOf(inv, vm); err != nil {
				return err
			}
			text, err := t.XML(origin(e, "nccl-topo", sources(s, "the PCI tree of the host", "the PCI addresses in the guest "+vm)...))
			if err != nil {
				return backends.Refusedf(vm, "see: rdma-setup generate nccl-topo --help", "%v", err)
			}
			_, err = fmt.Fprint(e.Stdout, text)
			return err
		},
	}
	fl := c.Flags()
	fl.StringVarP(&file, "file", "f", "", "answers file")
	fl.StringVar(&vm, "vm", "", "VM of the answers (default: the only one)")
	fl.StringVar(&t.Speed, "link-speed", "16.0 GT/s PCIe", "speed of the devices' links, as the kernel writes it")
	fl.IntVar(&t.Width, "link-width", 16, "lanes of the devices' links")
	return c
}

// devicesOf matches the GPUs and the RDMA card of a VM on the host with those in its guest. Guests list devices in the order of
// the VM's.
func devicesOf(inv *backends.Inventory, name string) ([]generate.TopologyDevice, error) {
	v := inv.VM(name)
	if v == nil {
		return nil, console.Usage("set --vm to a VM of the answers", "no VM %q", name)
	}
	g, h := inv.Guest(v.Name), inv.Host(v.Host)
	refuse := func(hint, format string, args ...any) error {
		return backends.Refusedf(v.Name, hint, format, args...)
	}
	switch {
	case h == nil:
		return nil, refuse("", "its host was not read")
	case g == nil || g.Error != "":
		return nil, refuse("power it on, and check that it can be reached", "the guest was not read")
	case g.NVIDIA == nil || len(g.NVIDIA.Devices) == 0:
		return nil, refuse("install the NVIDIA driver", "the guest lists no GPU")
	}
	var gpus, nics, out []generate.TopologyDevice
	for _, address := range v.Passthrough {
		if i := slices.IndexFunc(h.GPUs, func(x backends.GPU) bool { return x.PCI == address }); i >= 0 {
			gpus = append(gpus, generate.TopologyDevice{GPU: true, Path: h.GPUs[i].Path(), NUMA: h.GPUs[i].NUMA})
		}
		if i := slices.IndexFunc(h.Cards(), func(x backends.PCIDevice) bool { return x.Address == address }); i >= 0 {
			nics = append(nics, generate.TopologyDevice{Path: h.Bridges(address), NUMA: h.Cards()[i].NUMA})
		}
	}
	for _, ad := range v.Adapters {
		if ad.PF != "" {
			i := slices.IndexFunc(h.PCI, func(x backends.PCIDevice) bool { return x.Address == ad.PF })
			if i >= 0 {
				nics = append(nics, generate.TopologyDevice{Path: h.Bridges(ad.PF), NUMA: h.PCI[i].NUMA})
			}
		}
	}
	var cards []string
	for _, d := range g.PCI {
		if slices.ContainsFunc(h.Cards(), func(c backends.PCIDevice) bool { return c.Vendor == d.Vendor }) {
			cards = append(cards, d.Address)
		}
	}
	if len(gpus) != len(g.NVIDIA.Devices) || len(nics) != len(cards) || len(nics) == 0 {
		return nil, refuse("list the VM's devices with: rdma-setup discover",
			"the host passes %d GPUs and %d RDMA devices to it, but the guest lists %d and %d: they cannot be matched",
			len(gpus), len(nics), len(g.NVIDIA.Devices), len(cards))
	}
	for i, d := range gpus {
		d.Address = strings.ToLower(g.NVIDIA.Devices[i].PCI)
		out = append(out, d)
	}
	for i, d := range nics {
		d.Address = strings.ToLower(cards[i])
		out = append(out, d)
	}
	return out, nil
}
