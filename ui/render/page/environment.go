package page

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/ui/plain"
	"github.com/rdma-setup/rdma-setup/wizard/report"
)

// environment lists the environment of the measurements; equal hosts and guests share a row, so that differences are visible.
func environment(e *report.Environment) []Table {
	if e == nil {
		return nil
	}
	var out []Table
	add := func(t Table) {
		if len(t.Rows) > 0 {
			out = append(out, t)
		}
	}
	add(switches(e))
	hosts := merger{}
	cards := merger{}
	for _, h := range e.Hosts {
		build := ""
		if h.Build != "" {
			build = " build " + h.Build
		}
		hosts.add(h.Name, "ESXi "+h.Version+build, h.Machine, processors(h), memory(h.MemoryMB), h.Power, counted(h.GPUs))
		for _, n := range h.NICs {
			numa := ""
			if n.NUMA >= 0 {
				numa = fmt.Sprintf(", NUMA node %d", n.NUMA)
			}
			cards.add(h.Name, n.Device, n.Model, n.PCI+numa, backends.Speed(n.SpeedMbps), n.Driver, n.Firmware, n.PSID, n.RDMADevice, n.Switch,
				n.Neighbour)
		}
	}
	add(hosts.table("Hosts", "hosts", "ESXi", "machine", "processors", "memory", "power policy", "GPUs"))
	add(cards.table("Network cards that carry RDMA, or can", "hosts", "pNIC", "card", "PCI", "link", "driver", "firmware", "PSID",
		"RDMA device", "uplink of", "switch port"))
	guests := merger{}
	for _, g := range e.Guests {
		hw := ""
		if g.Hardware > 0 {
			hw = "vmx-" + strconv.Itoa(g.Hardware)
		}
		guests.add(g.VM, hw, g.OS, g.Kernel, g.RDMACore, g.Perftest, g.MOFED, strings.Join(g.Devices, "; "))
	}
	add(guests.table("Guests", "VMs", "hardware", "system", "kernel", "rdma-core", "perftest", "OFED", "RDMA device"))
	return out
}

func switches(e *report.Environment) Table {
	t := Table{Caption: "vCenter and distributed switches", Head: []string{"name", "version", "MTU", "uplinks", "Network I/O Control",
		"hosts"}}
	if e.VCenter != "" {
		t.Rows = append(t.Rows, []string{"vCenter", e.VCenter, "", "", "", ""})
	}
	for _, s := range e.Switches {
		nioc := map[bool]string{true: "on", false: "off"}[s.NIOC]
		t.Rows = append(t.Rows, []string{s.Name, s.Version, strconv.Itoa(s.MTU), strconv.Itoa(s.Uplinks), nioc,
			strconv.Itoa(s.Hosts)})
	}
	return t
}

func processors(h report.EnvHost) string {
	if h.Sockets == 0 {
		return h.CPU
	}
	return strings.TrimSpace(fmt.Sprintf("%d x %s, %d cores", h.Sockets, h.CPU, h.Cores))
}

func memory(mb int64) string {
	if mb == 0 {
		return ""
	}
	return fmt.Sprintf("%d GiB", (mb+512)/1024)
}

// counted formats a number of equal items: "2 x A100 80GB".
func counted(models []string) string {
	n := map[string]int{}
	for _, m := range models {
		n[m]++
	}
	return strings.Join(plain.Mapped(slices.Sorted(maps.Keys(n)), func(m string) string { return fmt.Sprintf("%d x %s", n[m], m) }), ", ")
}

// A merger combines rows that differ only in the name in their first column. The other cells are the key, as one text.
type merger struct{ plain.Gathered[string, string] }

// separator is between the cells of a key; clean text does not contain it.
const separator = "\x00"

func (m *merger) add(name string, cells ...string) {
	m.Add(strings.Join(cells, separator), name)
}

func (m *merger) table(caption string, head ...string) Table {
	var all [][]string
	for cells, names := range m.All() {
		all = append(all, append([]string{plain.Names(names)}, strings.Split(cells, separator)...))
	}
	t := Table{Caption: caption, Rows: make([][]string, len(all))}
	for i, h := range head {
		if i > 0 && !slices.ContainsFunc(all, func(row []string) bool { return row[i] != "" }) {
			continue
		}
		t.Head = append(t.Head, h)
		for k, row := range all {
			t.Rows[k] = append(t.Rows[k], row[i])
		}
	}
	return t
}
