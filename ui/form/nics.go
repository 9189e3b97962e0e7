package form

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/ui/form/entry"
	"github.com/rdma-setup/rdma-setup/ui/form/frame"
	"github.com/rdma-setup/rdma-setup/ui/live"
	"github.com/rdma-setup/rdma-setup/ui/plain"
	"github.com/rdma-setup/rdma-setup/ui/theme"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/sizing"
)

// nicsPage chooses one pNIC a host, preselected by fact, each with the reason why it fits or not.
type nicsPage struct {
	list
	nic map[string]backends.NIC // by row id
}

func (p *nicsPage) Title() string { return "pNICs" }
func (p *nicsPage) Hints() []frame.Hint {
	return []frame.Hint{{Key: "Space", Does: "choose"}, {Key: "/", Does: "filter"}}
}
func (p *nicsPage) EnterWord() string { return "go on" }

func (p *nicsPage) Enter(w *frame.Wizard) tea.Cmd {
	var rows []live.Row
	chosen := map[string]bool{}
	p.nic = map[string]backends.NIC{}
	first := ""
	picks := w.Fabric.Choose(w.Answers, w.Overview)
	member := entry.Members(w.Answers)
	for _, h := range w.Overview.Hosts {
		if !member[h.Name] {
			continue
		}
		for _, v := range backends.ChoosePNIC(&h, sizing.OpenWish(w.Answers)).Verdicts {
			n := *v.NIC
			r := nicRow(h.Name, v)
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
	table := live.NewTable(w.Theme, []live.Column{{Title: "Host"}, {Title: "pNIC"}, {Title: "Speed"}, {Title: "RDMA", Rank: 1}, {Title: "Driver", Rank: 3}, {Title: "MAC", Rank: 2}, {Title: "Why"}}, rows)
	table.Radio = true
	p.choose(table, chosen)
	table.At(first)
	return nil
}

func nicRow(host string, v backends.PNICVerdict) live.Row {
	n := v.NIC
	r := live.Row{ID: host + "/" + n.Device, Group: host, Cells: []string{host, n.Device, backends.Speed(n.SpeedMbps), entry.RDMAWord(*n), n.Driver, n.MAC, v.Why()}}
	if !v.Eligible() {
		r.Disabled = v.Why()
	}
	r.Detail = fmt.Sprintf("%s %s, %s, %s: %s", host, n.Device, n.MAC, n.Driver, v.Why())
	return r
}

func (p *nicsPage) Accept(w *frame.Wizard) (tea.Cmd, error) {
	picked := map[string]string{}
	for id := range p.table.Chosen {
		picked[strings.TrimSuffix(id, "/"+p.nic[id].Device)] = p.nic[id].Device
	}
	var without []string
	for _, h := range w.Answers.Hosts.Names {
		if picked[h] == "" && !passedOn(w.Answers, w.Overview.Host(h)) {
			without = append(without, h)
		}
	}
	if len(without) > 0 {
		return nil, fmt.Errorf("no pNIC is chosen on %s: choose one, or go back and leave the host out", plain.Names(without))
	}
	if !maps.Equal(picked, w.Fabric.Choose(w.Answers, w.Overview)) {
		w.Answers.NIC = answers.NIC{MACs: map[string]answers.MAC{}}
		for _, host := range slices.Sorted(maps.Keys(picked)) {
			w.Answers.NIC.MACs[host] = answers.MAC(strings.ToLower(p.nic[host+"/"+picked[host]].MAC))
		}
	}
	return w.Next(), nil
}

func (p *nicsPage) View(_ *frame.Wizard, width, height int) string {
	intro := theme.Wrap("Which pNIC of each host carries RDMA? Those that fit are preselected; the line below the list says why.", width)
	return intro + "\n\n" + p.table.View(width, height-lines(intro)-1)
}

// passedOn tells whether a host has an RDMA card that is passed through: it is no pNIC any more, and none need be chosen.
func passedOn(a *answers.Answers, h *backends.Host) bool {
	return a.WholeCard() && h != nil && slices.ContainsFunc(h.Cards(), func(c backends.PCIDevice) bool { return c.Enabled })
}
