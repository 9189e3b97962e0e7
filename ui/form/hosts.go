package form

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/ui/live"
	"github.com/rdma-setup/rdma-setup/ui/plain"
	"github.com/rdma-setup/rdma-setup/ui/theme"
)

// A list is a page with a table.
type list struct {
	table    *live.Table
	proposed map[string]bool // the rows that the answers chose when the page was shown last
}

// choose takes what the answers choose, unless they still choose what they did before somebody chose otherwise: going back
// loses nothing.
func (l *list) choose(table *live.Table, proposed map[string]bool) {
	table.Chosen = maps.Clone(proposed)
	if l.table != nil && maps.Equal(l.proposed, proposed) {
		table.Chosen = l.table.Chosen
	}
	l.table, l.proposed = table, proposed
}

func (l *list) typing() bool { return l.table != nil && l.table.Typing() }

func (l *list) update(_ *wizard, msg tea.Msg) (tea.Cmd, bool) { return l.table.Update(msg) }

// editing tells that Enter and Esc are those of a text field in the table.
func (l *list) editing() bool { return l.typing() }

// hostsPage chooses the ESXi hosts.
type hostsPage struct{ list }

func (p *hostsPage) title() string { return "Hosts" }
func (p *hostsPage) hints() []hint {
	return []hint{{"Space", "choose"}, {"a", "all"}, {"c", "cluster"}, {"/", "filter"}}
}
func (p *hostsPage) enterWord() string { return "go on" }

func (p *hostsPage) enter(w *wizard) tea.Cmd {
	hosts := slices.Clone(w.overview.Hosts)
	slices.SortStableFunc(hosts, func(a, b backends.Host) int { return cmp.Compare(a.Cluster, b.Cluster) })
	rows := make([]live.Row, 0, len(hosts))
	chosen := map[string]bool{}
	named := members(w.answers)
	for _, h := range hosts {
		r := hostRow(h)
		rows = append(rows, r)
		everyone := len(named) == 0 && fits(h) > 0 && (w.answers.Hosts.Cluster == "" || w.answers.Hosts.Cluster == h.Cluster)
		if r.Disabled == "" && (named[h.Name] || everyone) {
			chosen[h.Name] = true
		}
	}
	table := live.NewTable(w.theme, []live.Column{{Title: "Host"}, {Title: "Cluster", Rank: 1}, {Title: "ESXi", Rank: 2}, {Title: "State"}, {Title: "RDMA pNICs"}}, rows)
	table.Groups = "cluster"
	p.choose(table, chosen)
	return nil
}

// fits counts the pNICs that could carry RDMA.
func fits(h backends.Host) int {
	n := 0
	for _, nic := range h.NICs {
		if nic.Eligible {
			n++
		}
	}
	return n
}

func hostRow(h backends.Host) live.Row {
	var fit, unfit []string
	for _, n := range h.NICs {
		switch {
		case n.Eligible:
			fit = append(fit, n.Device+" "+plain.Speed(n.SpeedMbps))
		case len(n.Roles) == 0:
			unfit = append(unfit, n.Device+" "+n.Why)
		}
	}
	r := live.Row{ID: h.Name, Group: h.Cluster, Cells: []string{h.Name, h.Cluster, h.Version, h.State, fmt.Sprint(len(fit))},
		Detail: fmt.Sprintf("%s in %s, fit for RDMA: %s", h.Name, h.Datacenter, orNone(fit))}
	if len(fit) == 0 {
		r.Detail = fmt.Sprintf("%s has no pNIC that is fit for RDMA: %s", h.Name, strings.Join(unfit, "; "))
	}
	switch {
	case h.State != "connected":
		r.Disabled = "the host is " + h.State
		r.Detail = h.Name + " cannot be chosen: " + r.Disabled
	case h.InMaintenance:
		r.Cells[3] = "maintenance"
		r.Detail = h.Name + " is in maintenance mode: its VMs are elsewhere"
	}
	return r
}

func (p *hostsPage) accept(w *wizard) (tea.Cmd, error) {
	if len(p.table.Chosen) == 0 {
		return nil, backends.Errorf(backends.KindUsage, "", "Space chooses the host at the cursor, a chooses all", "no host is chosen")
	}
	names := make([]string, 0, len(p.table.Chosen))
	for name := range p.table.Chosen {
		names = append(names, name)
	}
	sort.Strings(names)
	datacenter, err := oneDatacenter(w.overview, names)
	if err != nil {
		return nil, err
	}
	w.answers.Hosts.Names, w.answers.Hosts.Datacenter = names, datacenter
	w.answers = w.fabric.Propose(w.answers, w.overview)
	return w.next(), nil
}

// oneDatacenter gives the datacenter of the hosts.
func oneDatacenter(inv *backends.Inventory, names []string) (string, error) {
	of := map[string]string{}
	for _, h := range inv.Hosts {
		of[h.Name] = h.Datacenter
	}
	for _, n := range names {
		if of[n] != of[names[0]] {
			return "", fmt.Errorf("%s is in datacenter %s, %s in %s: a distributed switch stays in one datacenter", n, of[n], names[0], of[names[0]])
		}
	}
	return of[names[0]], nil
}

func (p *hostsPage) view(w *wizard, width, height int) string {
	intro := theme.Wrap(fmt.Sprintf("Which hosts take part? vCenter %s has %s and %s.", plain.Clean(w.overview.VCenter.Version), counted(len(w.overview.Hosts), "host"), counted(len(w.overview.VMs), "VM")), width)
	return intro + "\n\n" + p.table.View(width, height-lines(intro)-1)
}
