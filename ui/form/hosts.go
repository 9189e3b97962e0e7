package form

import (
	"errors"
	"fmt"
	"slices"
	"sort"

	tea "charm.land/bubbletea/v2"

	"github.com/rdma-setup/rdma-setup/ui/live"
)

// hostsPage chooses the ESXi hosts.
type hostsPage struct{ table *live.Table }

func (p *hostsPage) title() string { return "Hosts" }
func (p *hostsPage) hints() string { return "Space choose  a all  / filter" }
func (p *hostsPage) typing() bool  { return p.table != nil && p.table.Typing() }

func (p *hostsPage) enter(w *wizard) tea.Cmd {
	rows := make([]live.Row, 0, len(w.overview.Hosts))
	chosen := map[string]bool{}
	for _, h := range w.overview.Hosts {
		free := 0
		for _, n := range h.NICs {
			if n.Eligible {
				free++
			}
		}
		r := live.Row{ID: h.Name, Cells: []string{h.Name, h.Cluster, h.Version, h.State, fmt.Sprint(free)}}
		switch {
		case h.State != "connected":
			r.Disabled = "the host is " + h.State
		case h.InMaintenance:
			r.Cells[3] = "maintenance"
		}
		rows = append(rows, r)
		named := slices.Contains(w.answers.Hosts.Names, h.Name)
		everyone := len(w.answers.Hosts.Names) == 0 && (w.answers.Hosts.Cluster == "" || w.answers.Hosts.Cluster == h.Cluster)
		if r.Disabled == "" && (named || everyone) {
			chosen[h.Name] = true
		}
	}
	p.table = live.NewTable(w.theme, []string{"Host", "Cluster", "ESXi", "State", "RDMA NICs"}, rows)
	p.table.Chosen = chosen
	return nil
}

func (p *hostsPage) update(_ *wizard, msg tea.Msg) (tea.Cmd, bool) { return p.table.Update(msg) }

func (p *hostsPage) accept(w *wizard) (tea.Cmd, error) {
	if len(p.table.Chosen) == 0 {
		return nil, errors.New("no host is chosen")
	}
	names := make([]string, 0, len(p.table.Chosen))
	for name := range p.table.Chosen {
		names = append(names, name)
	}
	sort.Strings(names)
	w.answers.Hosts.Names = names
	datacenter := ""
	for _, n := range names {
		h := w.overview.Host(n)
		if datacenter != "" && h.Datacenter != datacenter {
			return nil, fmt.Errorf("%s is in datacenter %s, others in %s: a distributed switch stays in one datacenter", n, h.Datacenter, datacenter)
		}
		datacenter = h.Datacenter
	}
	w.answers.Hosts.Datacenter = datacenter
	w.answers = w.fabric.Propose(w.answers, w.overview)
	return forward, nil
}

func (p *hostsPage) view(w *wizard, width, height int) string {
	return fmt.Sprintf("vCenter %s, %d hosts, %d VMs. Which hosts take part?\n\n", w.overview.VCenter.Version, len(w.overview.Hosts), len(w.overview.VMs)) +
		p.table.View(width, height-2)
}
