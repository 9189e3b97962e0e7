package plain

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/rdma-setup/rdma-setup/backends"
)

// Inventory prints hosts x pNICs, then GPUs and VMs, as tables.
func Inventory(w io.Writer, inv *backends.Inventory) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "HOST\tpNIC\tMAC\tSPEED\tDRIVER\tRDMA\tROCE\tSWITCH\tROLES\tELIGIBLE\tWHY")
	for _, h := range inv.Hosts {
		for _, n := range h.NICs {
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", Clean(h.Name), Clean(n.Device), n.MAC, backends.Speed(n.SpeedMbps),
				dash(n.Driver), dash(n.RDMADevice), dash(roce(n)), dash(Clean(n.Switch)), dash(strings.Join(n.Roles, ",")), yesNo(n.Eligible), Clean(n.Why))
		}
		if len(h.NICs) == 0 {
			why := "host is " + h.State
			if h.State == "connected" {
				why = "no pNIC matches"
			}
			fmt.Fprintf(t, "%s\t-\t-\t-\t-\t-\t-\t-\t-\tno\t%s\n", Clean(h.Name), why)
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
		var adapters []string
		for _, a := range v.Adapters {
			adapters = append(adapters, a.Type+"@"+a.PortGroup)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\tvmx-%d\t%s\t%d MB%s\t%s\n", Clean(v.Name), Clean(v.Host), v.Power, v.Hardware, v.Firmware, v.MemoryMB,
			locked(v), dash(Clean(strings.Join(adapters, ","))))
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
			fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%s\t%s\t%s\t%s\t%s\t%s\n", Clean(h.Name), g.PCI, Clean(g.Model), g.NUMA, Passthrough(g), dash(g.RootPort), dash(Clean(g.UsedBy)),
				dash(strings.Join(g.Dependents, ",")), near, p2p)
		}
	}
	return t.Flush()
}

// Passthrough says in a word whether VMs can have a GPU.
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

// Nearest says which RDMA card of its host a GPU is nearest to, by what path, and whether the two can do peer-to-peer.
func Nearest(g backends.GPU) (card, p2p string) {
	if len(g.Pairs) == 0 {
		return "none", "no"
	}
	p := g.Pairs[0]
	card = p.NIC
	if p.Device != "" {
		card = p.Device
	}
	return fmt.Sprintf("%s (%s)", Clean(card), p.Path), p.P2P
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

func locked(v backends.VM) string {
	if v.MemoryLocked {
		return " locked"
	}
	return ""
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
