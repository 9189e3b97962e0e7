package form

import (
	"cmp"
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

// nicsPage is the page to select one pNIC per host. Eligible pNICs are preselected; each row says why its pNIC is eligible or not.
type nicsPage struct {
	list
	nic     map[string]backends.NIC // by row id
	rail    int                     // whose pNICs are chosen
	several bool                    // there is more than one
}

func (p *nicsPage) Title() string { return "pNICs" }
func (p *nicsPage) Hints() []frame.Hint {
	if p.several {
		return []frame.Hint{{Key: "Space", Does: "choose"}, {Key: "Tab", Does: "next rail"}, {Key: "r", Does: "add a rail"},
			{Key: "d", Does: "remove the last"}, {Key: "/", Does: "filter"}}
	}
	return []frame.Hint{{Key: "Space", Does: "choose"}, {Key: "/", Does: "filter"}, {Key: "r", Does: "add a rail"}}
}
func (p *nicsPage) EnterLabel() string { return "continue" }

func (p *nicsPage) Enter(w *frame.Wizard) tea.Cmd {
	var rows []live.Row
	chosen := map[string]bool{}
	p.nic = map[string]backends.NIC{}
	first := ""
	w.Answers.Switch.Name = entry.UsedSwitch(w.Answers, w.Overview, w.Fabric.Choose)
	ports := entry.RailPorts(w.Answers, w.Overview, w.Fabric.Choose)
	p.rail, p.several = min(p.rail, len(ports)-1), len(ports) > 1
	picks := ports[p.rail]
	member, without := entry.Members(w.Answers), entry.WithoutHCA(w.Answers, w.Overview)
	for _, h := range w.Overview.Hosts {
		if !member[h.Name] {
			continue
		}
		for _, v := range backends.ChoosePNIC(&h, sizing.OpenWish(w.Answers.ForRail(p.rail))).Verdicts {
			n := *v.NIC
			r := nicRow(h.Name, v)
			if rail := entry.Serves(w.Answers, ports, h.Name, n.Device); p.several && rail != "" && picks[h.Name] != n.Device {
				r.Disabled = "serves " + rail
				r.Cells[len(r.Cells)-1] = r.Disabled
				r.Detail += "; serves " + rail
			}
			if picks[h.Name] == n.Device {
				chosen[r.ID], first = true, cmp.Or(first, r.ID)
			}
			p.nic[r.ID] = n
			rows = append(rows, r)
		}
		if slices.Contains(without, h.Name) {
			r := live.Row{ID: h.Name + "/", Group: h.Name, Cells: []string{h.Name, "none", "-", "-", "-", "-", "no RDMA card; TCP"},
				Detail: h.Name + " has no RDMA card; " + entry.AboutNoHCA + " (pvrdma.allow_no_hca)"}
			if rows = append(rows, r); w.Answers.NoHCA() {
				chosen[r.ID] = true
			}
		}
	}
	table := live.NewTable(w.Theme, []live.Column{{Title: "Host"}, {Title: "pNIC"}, {Title: "Speed"}, {Title: "RDMA", Rank: 1},
		{Title: "Driver", Rank: 3}, {Title: "MAC", Rank: 2}, {Title: "Why"}}, rows)
	table.Radio = true
	p.choose(table, chosen)
	table.At(first)
	return nil
}

func nicRow(host string, v backends.PNICVerdict) live.Row {
	n := v.NIC
	r := live.Row{ID: host + "/" + n.Device, Group: host, Cells: []string{host, n.Device, backends.Speed(n.SpeedMbps), entry.RDMALabel(*n),
		n.Driver, n.MAC, v.Why()}}
	if !v.Choosable() {
		r.Disabled = v.Why()
	}
	r.Detail = fmt.Sprintf("%s %s, %s, %s: %s", host, n.Device, n.MAC, n.Driver, v.Why())
	return r
}

// Update adds and removes rails, and switches between them.
func (p *nicsPage) Update(w *frame.Wizard, msg tea.Msg) (tea.Cmd, bool) {
	key, is := msg.(tea.KeyPressMsg)
	if !is || p.Typing() {
		return p.list.Update(w, msg)
	}
	var err error
	switch word := key.String(); {
	case word == "r":
		if err = p.Keep(w); err == nil {
			err = entry.AddRail(w.Answers, w.Overview, w.Fabric.Choose)
		}
		if err == nil {
			p.rail = len(w.Answers.Rails) - 1
		}
	case word == "d" && p.several:
		entry.DropRail(w.Answers)
	case word == "tab" && p.several:
		if err = p.Keep(w); err == nil {
			p.rail = (p.rail + 1) % len(w.Answers.Rails)
		}
	default:
		return p.list.Update(w, msg)
	}
	if err != nil {
		return w.Fail(err), true
	}
	p.table = nil
	return p.Enter(w), true
}

func (p *nicsPage) Accept(w *frame.Wizard) (tea.Cmd, error) {
	if err := p.Keep(w); err != nil {
		return nil, err
	}
	return w.Next(), nil
}

// Keep stores the selection in the answers.
func (p *nicsPage) Keep(w *frame.Wizard) error {
	picked := map[string]string{}
	accepted := map[string]bool{} // without an RDMA card
	for id := range p.table.Chosen {
		if host, none := strings.CutSuffix(id, "/"); none {
			accepted[host] = true
			continue
		}
		picked[strings.TrimSuffix(id, "/"+p.nic[id].Device)] = p.nic[id].Device
	}
	var without []string
	for _, h := range w.Answers.Hosts.Names {
		if picked[h] == "" && !accepted[h] && !passedOn(w.Answers, w.Overview.Host(h)) {
			without = append(without, h)
		}
	}
	if len(without) > 0 {
		return backends.Usagef("", "choose one with Space, or go back and deselect the host", "no pNIC is chosen on %s",
			plain.Names(without))
	}
	if p.kept(); len(accepted) > 0 {
		w.Answers.PVRDMA.AllowNoHCA = true
	}
	if maps.Equal(picked, w.Fabric.Choose(w.Answers.ForRail(p.rail), w.Overview)) {
		return nil
	}
	if p.several || entry.Hidden(w.Overview, picked) {
		entry.Describe(w.Answers, p.rail, entry.Described(w.Overview, picked))
	} else {
		w.Answers.NIC = answers.NIC{MACs: map[string]answers.MAC{}}
		for _, host := range slices.Sorted(maps.Keys(picked)) {
			w.Answers.NIC.MACs[host] = answers.MAC(strings.ToLower(p.nic[host+"/"+picked[host]].MAC))
		}
	}
	return nil
}

func (p *nicsPage) View(w *frame.Wizard, width, height int) string {
	question := "Which pNIC of each host should carry RDMA? Suitable pNICs are preselected; the line below the list gives the reason."
	if p.several {
		question = fmt.Sprintf("Which pNIC of each host should serve %s (rail %d of %d)? pNICs of other rails are marked.",
			w.Answers.Rails[p.rail].Name, p.rail+1, len(w.Answers.Rails))
	}
	intro := theme.Wrap(question, width)
	return intro + "\n\n" + p.table.View(width, height-lines(intro)-1)
}

// passedOn reports whether a host has an RDMA card in passthrough mode: such a card is no longer a pNIC, and none has to be selected.
func passedOn(a *answers.Answers, h *backends.Host) bool {
	return a.WholeCard() && h != nil && slices.ContainsFunc(h.Cards(), func(c backends.PCIDevice) bool { return c.Enabled })
}
