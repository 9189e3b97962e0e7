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
			cards.add(h.Name, n.Device, n.Model, n.PCI+numa, backends.Speed(n.SpeedMbps), n.Driver, n.Firmware, n.PSID, n.RDMADevice, n.Switch, n.Neighbour)
		}
	}
	add(hosts.table("Hosts", "hosts", "ESXi", "machine", "processors", "memory", "power policy", "GPUs"))
	add(cards.table("Network cards that carry RDMA, or can", "hosts", "pNIC", "card", "PCI", "link", "driver", "firmware", "PSID", "RDMA device", "uplink of", "switch port"))
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
	t := Table{Caption: "vCenter and distributed switches", Head: []string{"name", "version", "MTU", "uplinks", "Network I/O Control", "hosts"}}
	if e.VCenter != "" {
		t.Rows = append(t.Rows, []string{"vCenter", backends.Clean(e.VCenter), "", "", "", ""})
	}
	for _, s := range e.Switches {
		nioc := "off"
		if s.NIOC {
			nioc = "on"
		}
		t.Rows = append(t.Rows, []string{backends.Clean(s.Name), backends.Clean(s.Version), strconv.Itoa(s.MTU), strconv.Itoa(s.Uplinks), nioc, strconv.Itoa(s.Hosts)})
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
	var said []string
	for _, m := range slices.Sorted(maps.Keys(n)) {
		said = append(said, fmt.Sprintf("%d x %s", n[m], m))
	}
	return strings.Join(said, ", ")
}

// A merger combines rows that differ only in the name in their first column.
type merger struct {
	order []string
	rows  map[string][]string
	names map[string][]string
}

func (m *merger) add(name string, cells ...string) {
	for i := range cells {
		cells[i] = backends.Clean(cells[i])
	}
	key := strings.Join(cells, "\x00")
	if m.rows == nil {
		m.rows, m.names = map[string][]string{}, map[string][]string{}
	}
	if m.rows[key] == nil {
		m.order = append(m.order, key)
		m.rows[key] = cells
	}
	m.names[key] = append(m.names[key], name)
}

// table returns the table without empty columns.
func (m *merger) table(caption string, head ...string) Table {
	t := Table{Caption: caption}
	kept := []int{}
	for i, h := range head {
		if i == 0 || slices.ContainsFunc(m.order, func(k string) bool { return m.rows[k][i-1] != "" }) {
			kept = append(kept, i)
			t.Head = append(t.Head, h)
		}
	}
	for _, k := range m.order {
		var row []string
		for _, i := range kept {
			if i == 0 {
				row = append(row, plain.Names(m.names[k]))
				continue
			}
			row = append(row, m.rows[k][i-1])
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}
