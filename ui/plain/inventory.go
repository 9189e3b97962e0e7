package plain

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/rdma-setup/rdma-setup/backends"
)

// Inventory prints the hosts with their pNICs, then GPUs and VMs, as tables.
func Inventory(w io.Writer, inv *backends.Inventory) error {
	inv = backends.Shown(inv)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "HOST\tpNIC\tMAC\tSPEED\tDRIVER\tRDMA\tROCE\tSWITCH\tROLES\tELIGIBLE\tWHY")
	for _, h := range inv.Hosts {
		for _, n := range slices.Concat(h.NICs, h.Hidden) {
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", h.Name, n.Device, cmp.Or(n.MAC, "-"),
				backends.Speed(n.SpeedMbps),
				cmp.Or(n.Driver, "-"), cmp.Or(n.RDMADevice, "-"), cmp.Or(roce(n), "-"), cmp.Or(n.Switch, "-"),
				cmp.Or(strings.Join(n.Roles, ","), "-"), YesNo(n.Eligible), n.Why)
		}
		if len(h.NICs)+len(h.Hidden) == 0 {
			why := "host is " + h.State
			if h.State == "connected" {
				why = "no pNIC matches"
			}
			fmt.Fprintf(t, "%s\t-\t-\t-\t-\t-\t-\t-\t-\tno\t%s\n", h.Name, why)
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if err := gpus(w, inv); err != nil {
		return err
	}
	t = tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	if len(inv.VMs) > 0 {
		fmt.Fprintln(t, "\nVM\tHOST\tPOWER\tHARDWARE\tFIRMWARE\tMEMORY\tADAPTERS")
	}
	for _, v := range inv.VMs {
		adapters := Mapped(v.Adapters, func(a backends.Adapter) string { return a.Type + "@" + a.PortGroup })
		fmt.Fprintf(t, "%s\t%s\t%s\tvmx-%d\t%s\t%d MB%s\t%s\n", v.Name, v.Host, v.Power, v.Hardware, v.Firmware,
			v.MemoryMB,
			map[bool]string{true: " locked"}[v.MemoryLocked], cmp.Or(strings.Join(adapters, ","), "-"))
	}
	return t.Flush()
}

func gpus(w io.Writer, inv *backends.Inventory) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	headed := false
	for _, h := range inv.Hosts {
		for _, g := range h.GPUs {
			if !headed {
				fmt.Fprintln(t, "\nHOST\tGPU\tMODEL\tNUMA\tPASSTHROUGH\tROOT PORT\tUSED BY\tGOES WITH\tNEAREST RDMA CARD\tP2P")
				headed = true
			}
			near, p2p := Nearest(g)
			fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%s\t%s\t%s\t%s\t%s\t%s\n", h.Name, g.PCI, g.Model, g.NUMA,
				Passthrough(g), cmp.Or(g.RootPort, "-"),
				cmp.Or(g.UsedBy, "-"), cmp.Or(strings.Join(g.Dependents, ","), "-"), near, p2p)
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if err := affinity(w, inv); err != nil {
		return err
	}
	for _, h := range inv.Hosts {
		if h.Baseboard != nil {
			fmt.Fprintf(w, "\n%s: %s\n", h.Name, h.Baseboard)
		}
		if len(h.Profiles) > 0 {
			fmt.Fprintf(w, "%s: vGPU profiles: %s\n", h.Name, strings.Join(h.Profiles, ", "))
		}
		if len(h.DeviceGroups) > 0 {
			fmt.Fprintf(w, "%s: vendor device groups: %s\n", h.Name, strings.Join(h.DeviceGroups, ", "))
		}
	}
	return nil
}

// nearWord returns the closest term of nvidia-smi topo -m for a path: PIX below one switch, PXB below one root port, PHB below
// one host bridge, NODE over host bridges of one NUMA node, SYS over nodes.
func nearWord(p backends.Pair) string {
	if p.Path == backends.DifferentRoots && p.SameNUMA {
		return "NODE"
	}
	words := map[backends.Nearness]string{backends.OneSwitch: "PIX", backends.OneRootPort: "PXB", backends.OneRootComplex: "PHB",
		backends.DifferentRoots: "SYS"}
	return cmp.Or(words[p.Path], "?")
}

// affinity prints the path from each GPU of a host to each RDMA card if it has several of both; identical hosts share a
// matrix.
func affinity(w io.Writer, inv *backends.Inventory) error {
	var hosts Gathered[string, string] // by matrix
	for i := range inv.Hosts {
		body, err := matrix(&inv.Hosts[i])
		if err != nil {
			return err
		}
		if body != "" {
			hosts.Add(body, inv.Hosts[i].Name)
		}
	}
	for body, names := range hosts.All() {
		fmt.Fprintf(w, "\nGPU x NIC of %s\n%s", Names(names), body)
	}
	if len(hosts.Keys) > 0 {
		fmt.Fprintln(w,
			"PIX, PXB: below one root port, where peer-to-peer works; PHB: doubtful; NODE, SYS: different root complexes, no peer-to-peer")
	}
	return nil
}

func matrix(h *backends.Host) (string, error) {
	if len(h.GPUs) < 2 || len(h.GPUs[0].Pairs) < 2 {
		return "", nil
	}
	var cards []string
	name := map[string]string{}
	for _, p := range h.GPUs[0].Pairs {
		cards = append(cards, p.NIC)
		name[p.NIC] = cmp.Or(p.Device, p.NIC)
	}
	slices.Sort(cards)
	var b strings.Builder
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprint(t, "GPU")
	for _, c := range cards {
		fmt.Fprintf(t, "\t%s", name[c])
	}
	for i := range h.GPUs {
		fmt.Fprintf(t, "\n%s", h.GPUs[i].PCI)
		for _, c := range cards {
			word := "?"
			if k := slices.IndexFunc(h.GPUs[i].Pairs, func(p backends.Pair) bool { return p.NIC == c }); k >= 0 {
				word = nearWord(h.GPUs[i].Pairs[k])
			}
			fmt.Fprintf(t, "\t%s", word)
		}
	}
	fmt.Fprintln(t)
	err := t.Flush()
	return b.String(), err
}

// Passthrough returns in one word whether VMs can use a GPU.
func Passthrough(g backends.GPU) string {
	switch {
	case g.Active:
		return "active"
	case g.Enabled:
		return "after reboot"
	case !g.Capable:
		return "not capable"
	}
	return "off"
}

// Nearest returns the RDMA card of its host that is nearest to a GPU, the path to it, and whether peer-to-peer works between them.
func Nearest(g backends.GPU) (card, p2p string) {
	if len(g.Pairs) == 0 {
		return "none", "no"
	}
	p := g.Pairs[0]
	return fmt.Sprintf("%s (%s)", cmp.Or(p.Device, p.NIC), p.Path), p.P2P
}

func roce(n backends.NIC) string {
	var v []string
	if n.RoCEv1 {
		v = append(v, "v1")
	}
	if n.RoCEv2 {
		v = append(v, "v2")
	}
	if n.IWARP {
		v = append(v, "iWARP")
	}
	return strings.Join(v, ",")
}

// YesNo returns the word for yes or no.
func YesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
