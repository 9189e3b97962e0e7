package form

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/ui/live"
	"github.com/rdma-setup/rdma-setup/ui/plain"
	"github.com/rdma-setup/rdma-setup/ui/theme"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// nicsPage chooses one pNIC a host, preselected by fact, each with the reason why it fits or not.
type nicsPage struct {
	list
	nic map[string]backends.NIC // by row id
}

func (p *nicsPage) title() string     { return "pNICs" }
func (p *nicsPage) hints() []hint     { return []hint{{"Space", "choose"}, {"/", "filter"}} }
func (p *nicsPage) enterWord() string { return "go on" }

func (p *nicsPage) enter(w *wizard) tea.Cmd {
	var rows []live.Row
	chosen := map[string]bool{}
	p.nic = map[string]backends.NIC{}
	first := ""
	picks := w.fabric.Choose(w.answers, w.overview)
	member := members(w.answers)
	for _, h := range w.overview.Hosts {
		if !member[h.Name] {
			continue
		}
		for _, n := range h.NICs {
			r := nicRow(h.Name, n)
			if picks[h.Name] == n.Device {
				chosen[r.ID] = true
				if first == "" {
					first = r.ID
				}
			}
			p.nic[r.ID] = n
			rows = append(rows, r)
		}
	}
	table := live.NewTable(w.theme, []live.Column{{Title: "Host"}, {Title: "pNIC"}, {Title: "Speed"}, {Title: "RDMA", Rank: 1}, {Title: "Driver", Rank: 3}, {Title: "MAC", Rank: 2}, {Title: "Why"}}, rows)
	table.Radio = true
	p.choose(table, chosen)
	table.At(first)
	return nil
}

func nicRow(host string, n backends.NIC) live.Row {
	r := live.Row{ID: host + "/" + n.Device, Group: host, Cells: []string{host, n.Device, plain.Speed(n.SpeedMbps), rdmaWord(n), n.Driver, n.MAC, n.Why}}
	if !n.Eligible {
		r.Disabled = n.Why
	}
	r.Detail = fmt.Sprintf("%s %s, %s, %s: %s", host, n.Device, n.MAC, n.Driver, n.Why)
	return r
}

func rdmaWord(n backends.NIC) string {
	switch {
	case n.RoCEv2:
		return "RoCE v2"
	case n.RoCEv1:
		return "RoCE v1"
	case n.IWARP:
		return "iWARP"
	}
	return "-"
}

func (p *nicsPage) accept(w *wizard) (tea.Cmd, error) {
	picked := map[string]string{}
	for id := range p.table.Chosen {
		picked[strings.TrimSuffix(id, "/"+p.nic[id].Device)] = p.nic[id].Device
	}
	var without []string
	for _, h := range w.answers.Hosts.Names {
		if picked[h] == "" && !passedOn(w.answers, w.overview.Host(h)) {
			without = append(without, h)
		}
	}
	if len(without) > 0 {
		return nil, fmt.Errorf("no pNIC is chosen on %s: choose one, or go back and leave the host out", plain.Names(without))
	}
	if !maps.Equal(picked, w.fabric.Choose(w.answers, w.overview)) {
		w.answers.NIC = answers.NIC{MACs: map[string]answers.MAC{}}
		for _, host := range slices.Sorted(maps.Keys(picked)) {
			w.answers.NIC.MACs[host] = answers.MAC(strings.ToLower(p.nic[host+"/"+picked[host]].MAC))
		}
	}
	return w.next(), nil
}

func (p *nicsPage) view(_ *wizard, width, height int) string {
	intro := theme.Wrap("Which pNIC of each host carries RDMA? Those that fit are preselected; the line below the list says why.", width)
	return intro + "\n\n" + p.table.View(width, height-lines(intro)-1)
}
