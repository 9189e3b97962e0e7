package cmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v4"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/nic"
	"github.com/rdma-setup/rdma-setup/ui/cmd/console"
	"github.com/rdma-setup/rdma-setup/ui/cmd/session"
	"github.com/rdma-setup/rdma-setup/ui/plain"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// nicFilter selects the pNICs that discover shows.
type nicFilter struct {
	speed, mac, driver string
	rdma, all          bool
}

func newDiscoverCmd(e *console.Env) *cobra.Command {
	var output string
	var f nicFilter
	c := &cobra.Command{
		Use:   "discover",
		Short: "List hosts, pNICs, GPUs and VMs, and which pNICs can carry RDMA",
		Long:  "List hosts, pNICs, GPUs and VMs, and show which pNICs can carry RDMA and why. Changes nothing.",
		Args:  cobra.NoArgs,
		RunE: console.WithSettings(e, func(cmd *cobra.Command, _ []string, set *console.Settings) error {
			keep, err := f.compile()
			if err != nil {
				return err
			}
			defer e.Collect(0, memoryOfDiscover)()
			return resultLine(e, "discover", output, console.Interruptible(cmd.Context(), e, func(ctx context.Context) error {
				s, err := session.Open(ctx, e, set, nil)
				if err != nil {
					return err
				}
				defer s.Close()
				inv, err := s.Inventory(ctx, backends.Scope{})
				if err != nil {
					return err
				}
				eligible, others := false, func(n backends.NIC) bool { return !keep(n) }
				for i := range inv.Hosts {
					h := &inv.Hosts[i]
					h.NICs = append([]backends.NIC{}, slices.DeleteFunc(h.NICs, others)...)
					h.Hidden = slices.DeleteFunc(h.Hidden, others)
					eligible = eligible || slices.ContainsFunc(h.NICs, func(n backends.NIC) bool { return n.Eligible })
				}
				s.VC.Close()
				inv.APICalls = s.VC.Calls()
				if err := console.Page(e, func(w io.Writer) error { return printInventory(w, e.Lines(w, e.Stdout), output, inv) }); err != nil {
					return err
				}
				if !eligible && f == (nicFilter{all: f.all}) {
					return &console.CodeError{Code: console.ExitRefused, Err: nothingEligible(inv)} // the list is printed
				}
				return nil
			}))
		}),
	}
	console.OutputFlag(c, &output, "table", "json", "yaml")
	c.Flags().StringVar(&f.speed, "speed", "", "only pNICs with this link speed, such as 100G")
	c.Flags().StringVar(&f.mac, "mac", "", "only the pNIC with this MAC")
	c.Flags().StringVar(&f.driver, "driver", "", "only pNICs with this driver")
	c.Flags().BoolVar(&f.rdma, "rdma", false, "only pNICs with an RDMA device")
	c.Flags().BoolVar(&f.all, "all", false, "also list pNICs that can never carry RDMA (default without a filter)")
	return c
}

func (f nicFilter) compile() (func(backends.NIC) bool, error) {
	speed := answers.Speed(0)
	if f.speed != "" {
		if err := speed.UnmarshalText([]byte(f.speed)); err != nil {
			return nil, console.Usage("write it as 100G, 25G or 2500M", "--speed %q: %v", f.speed, err)
		}
	}
	mac := answers.MAC("")
	if f.mac != "" {
		if err := mac.UnmarshalText([]byte(f.mac)); err != nil {
			return nil, console.Usage("write it as 0c:42:a1:aa:bb:cc", "--mac %q: %v", f.mac, err)
		}
	}
	return func(n backends.NIC) bool {
		return (speed == 0 || n.SpeedMbps == speed.Mbps()) && (mac == "" || strings.EqualFold(n.MAC, string(mac))) &&
			(f.driver == "" || n.Driver == f.driver) && (!f.rdma || n.RDMADevice != "")
	}, nil
}

// memoryOfDiscover is the memory limit that keeps discover under 200 MB with a thousand hosts and ten thousand VMs, output
// included.
const memoryOfDiscover = 128 << 20

func printInventory(w, lines io.Writer, output string, inv *backends.Inventory) error {
	switch output {
	case "json":
		return plain.WriteJSON(w, inv)
	case "yaml":
		return writeYAML(w, inv)
	}
	return plain.Inventory(lines, inv)
}

// writeYAML prints the JSON document in YAML, with the same keys.
func writeYAML(w io.Writer, v any) error {
	var b strings.Builder
	if err := plain.WriteJSON(&b, v); err != nil {
		return err
	}
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(b.String()), &doc); err != nil {
		return err
	}
	blockStyle(&doc)
	b.Reset()
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := errors.Join(enc.Encode(&doc), enc.Close()); err != nil {
		return err
	}
	_, err := io.WriteString(w, plain.YAML(b.String()))
	return err
}

// blockStyle removes JSON's style; escaped strings keep their quotes.
func blockStyle(n *yaml.Node) {
	if n.Style = 0; plain.YAML(n.Value) != n.Value {
		n.Style = yaml.DoubleQuotedStyle
	}
	for _, c := range n.Content {
		blockStyle(c)
	}
}

// nothingEligible reports that no pNIC can carry RDMA and names what was found instead.
func nothingEligible(inv *backends.Inventory) error {
	away := slices.DeleteFunc(slices.Clone(inv.Hosts), func(h backends.Host) bool { return h.State == "connected" })
	switch {
	case len(inv.Hosts) == 0:
		why := cmp.Or(inv.VCenter.NoHosts, "the account "+inv.VCenter.User+" sees no host there")
		if i := slices.IndexFunc(inv.Gaps, func(g backends.Gap) bool { return g.Target.Type != backends.TypeVCenter }); i >= 0 {
			why = fmt.Sprintf("the account %s may not read %s: %s", inv.VCenter.User, inv.Gaps[i].Target, inv.Gaps[i].Why)
		}
		return backends.Refusedf("", backends.HintNoHosts, "no host was found: %s", why)
	case len(away) == len(inv.Hosts):
		return backends.Refusedf("", "reconnect the hosts in vCenter",
			"vCenter is not connected to any of the %d hosts; %s is %s", len(away), away[0].Name, away[0].State)
	}
	rest := "RoCE needs an adapter with an RDMA device: ConnectX-4 or later, BlueField, Intel E810, Broadcom or Marvell with RoCE"
	hint, seen := rest, plain.Gathered[string, backends.NIC]{}
	for _, h := range inv.Hosts {
		if hint == rest && nic.MayBeOff(&h) {
			hint = "RDMA may be switched off in the driver of a card: rdma-setup plan reads the driver's parameters, and mode pvrdma switches it on"
		}
		for _, n := range slices.Concat(h.NICs, h.Hidden) {
			if to := (nic.Known{}).ToEthernet(&n); to != "" && hint == rest {
				hint = "mode sriov sets such a port to Ethernet, with its reboot, where nic.device names its PCI address; by hand: " + to +
					", then reboot the host"
			}
			seen.Add(cmp.Or(n.Driver, n.Model)+" ("+n.Why+")", n)
		}
	}
	parts := plain.Mapped(seen.Keys, func(why string) string { return fmt.Sprintf("%d x %s", len(seen.By[why]), why) })
	none := fmt.Sprintf("none of the %d hosts has a", len(inv.Hosts))
	if len(inv.Hosts) == 1 {
		none = inv.Hosts[0].Name + " has no"
	}
	return backends.Refusedf("", hint, "%s pNIC that can carry RDMA; seen: %s", none,
		cmp.Or(strings.Join(parts, ", "), "no pNIC at all"))
}
