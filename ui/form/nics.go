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
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// nicsPage chooses one pNIC a host, preselected by fact, each with the reason why it fits or not.
type nicsPage struct{ table *live.Table }

func (p *nicsPage) title() string { return "pNICs" }
func (p *nicsPage) hints() string { return "Space choose  / filter" }
func (p *nicsPage) typing() bool  { return p.table != nil && p.table.Typing() }

func (p *nicsPage) enter(w *wizard) tea.Cmd {
	var rows []live.Row
	chosen := map[string]bool{}
	picks := w.fabric.Choose(w.answers, w.overview)
	for _, name := range w.answers.Hosts.Names {
		h := w.overview.Host(name)
		if h == nil {
			continue
		}
		for _, n := range h.NICs {
			id := h.Name + "/" + n.Device
			r := live.Row{ID: id, Group: h.Name, Cells: []string{h.Name, n.Device, plain.Speed(n.SpeedMbps), n.MAC, n.Driver, rdmaWord(n), n.Why}}
			if !n.Eligible {
				r.Disabled = n.Why
			}
			if picks[h.Name] == n.Device {
				chosen[id] = true
			}
			rows = append(rows, r)
		}
	}
	p.table = live.NewTable(w.theme, []string{"Host", "pNIC", "Speed", "MAC", "Driver", "RDMA", "Why"}, rows)
	p.table.Radio = true
	p.table.Chosen = chosen
	return nil
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

func (p *nicsPage) update(_ *wizard, msg tea.Msg) (tea.Cmd, bool) { return p.table.Update(msg) }

func (p *nicsPage) accept(w *wizard) (tea.Cmd, error) {
	picked := map[string]string{}
	for id := range p.table.Chosen {
		host, device, _ := cutLast(id, "/")
		picked[host] = device
	}
	var without []string
	for _, h := range w.answers.Hosts.Names {
		if picked[h] == "" {
			without = append(without, h)
		}
	}
	if len(without) > 0 {
		return nil, fmt.Errorf("no pNIC is chosen on %s: choose one, or go back and leave the host out", strings.Join(without, ", "))
	}
	if !maps.Equal(picked, w.fabric.Choose(w.answers, w.overview)) {
		w.answers.NIC = answers.NIC{MACs: map[string]answers.MAC{}}
		for _, host := range slices.Sorted(maps.Keys(picked)) {
			if n := w.overview.Host(host).NIC(picked[host]); n != nil {
				w.answers.NIC.MACs[host] = answers.MAC(strings.ToLower(n.MAC))
			}
		}
	}
	return forward, nil
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

func (p *nicsPage) view(_ *wizard, width, height int) string {
	return "Which pNIC of each host carries RDMA? Those that fit are preselected; the last column says why.\n\n" + p.table.View(width, height-2)
}
