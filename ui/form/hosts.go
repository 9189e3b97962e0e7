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
	"github.com/rdma-setup/rdma-setup/wizard/plan"
)

// A list is a page with a table.
type list struct {
	table    *live.Table
	proposed map[string]bool // the rows that the answers selected when the page was last shown
}

// choose selects what the answers select. If the answers have not changed since the operator selected something else, that
// selection is kept, so that going back loses nothing.
func (l *list) choose(table *live.Table, proposed map[string]bool) {
	table.Chosen = maps.Clone(proposed)
	if l.table != nil && maps.Equal(l.proposed, proposed) {
		table.Chosen = l.table.Chosen
	}
	l.table, l.proposed = table, proposed
	there := map[string]bool{}
	for _, r := range table.Rows() {
		there[r.ID] = true
	}
	maps.DeleteFunc(table.Chosen, func(id string, _ bool) bool { return !there[id] }) // from another vCenter
}

// kept records that the current selection comes from the answers, so that a later difference is known to be the operator's.
func (l *list) kept() { l.proposed = maps.Clone(l.table.Chosen) }

func (l *list) Typing() bool { return l.table != nil && l.table.Typing() }

func (l *list) Update(_ *frame.Wizard, msg tea.Msg) (tea.Cmd, bool) { return l.table.Update(msg) }

// Editing reports whether Enter and Esc belong to a text field in the table.
func (l *list) Editing() bool { return l.Typing() }

// point moves the cursor to the row of a target, or to the first row of that host.
func (l *list) point(r plan.Refusal) {
	for _, row := range l.table.Rows() {
		if row.ID == r.Target.Name || strings.HasPrefix(row.ID, r.Target.Name+"/") {
			l.table.At(row.ID)
			return
		}
	}
}

// propose fills in what the answers leave open.
func propose(w *frame.Wizard) {
	w.Answers = entry.Proposed(w.Fabric, w.Login, w.Answers, w.Overview)
}

// hostsPage is the page to select ESXi hosts.
type hostsPage struct {
	list
	early bool // the table contains only names and states while the rest is being read
}

func (p *hostsPage) Title() string { return "Hosts" }
func (p *hostsPage) Hints() []frame.Hint {
	return []frame.Hint{{Key: "Space", Does: "choose"}, {Key: "a", Does: "all"}, {Key: "i", Does: "invert"}, {Key: "c", Does: "cluster"},
		{Key: "/", Does: "filter"}}
}
func (p *hostsPage) EnterLabel() string { return "continue" }

func (p *hostsPage) Enter(w *frame.Wizard) tea.Cmd {
	hosts := slices.Clone(w.Overview.Hosts)
	slices.SortStableFunc(hosts, func(a, b backends.Host) int { return cmp.Compare(a.Cluster, b.Cluster) })
	rows := make([]live.Row, 0, len(hosts))
	chosen := map[string]bool{}
	named := entry.Members(w.Answers)
	for _, h := range hosts {
		r := entry.HostRow(h)
		if w.Partial() {
			r.Cells[len(r.Cells)-1] = "..."
			if r.Disabled == "" {
				r.Detail = fmt.Sprintf("%s in %s: its pNICs are being read", h.Name, h.Datacenter)
			}
		}
		rows = append(rows, r)
		everyone := len(named) == 0 && entry.Fits(h) > 0 && wanted(w, &h)
		if r.Disabled == "" && (named[h.Name] || everyone) {
			chosen[h.Name] = true
		}
	}
	if p.early && !w.Partial() { // the rest has been read; the selection and the filter are kept
		p.early = false
		if p.table.SetRows(rows); maps.Equal(p.table.Chosen, p.proposed) {
			p.table.Chosen = maps.Clone(chosen)
		}
		p.proposed = chosen
		return nil
	}
	p.early = w.Partial()
	table := live.NewTable(w.Theme, []live.Column{{Title: "Host"}, {Title: "Cluster", Rank: 1}, {Title: "ESXi", Rank: 2}, {Title: "State"},
		{Title: "RDMA pNICs"}}, rows)
	table.Groups = "cluster"
	p.choose(table, chosen)
	return nil
}

// wanted reports whether the answers select every host of a host's cluster; answers without hosts do so only on the private lab.
func wanted(w *frame.Wizard, h *backends.Host) bool {
	if w.Answers.Hosts.Cluster == "" {
		return w.Fabric.Private(w.Login)
	}
	return h.In(w.Answers.Hosts.Datacenter, w.Answers.Hosts.Cluster)
}

// Keep stores the selected hosts in the answers.
func (p *hostsPage) Keep(w *frame.Wizard) error {
	if len(p.table.Chosen) == 0 {
		return backends.Usagef("", "choose the host at the cursor with Space, or all hosts with a", "no host is chosen")
	}
	names := slices.SortedFunc(maps.Keys(p.table.Chosen), plain.Natural)
	datacenter, err := entry.OneDatacenter(w.Overview, names)
	if err == nil {
		w.Answers.Hosts.Names, w.Answers.Hosts.Datacenter = names, datacenter
		p.kept()
	}
	return err
}

func (p *hostsPage) Accept(w *frame.Wizard) (tea.Cmd, error) {
	if err := p.Keep(w); err != nil {
		return nil, err
	}
	if w.Partial() {
		return w.Await(func(w *frame.Wizard) tea.Cmd {
			propose(w)
			return w.Next()
		}), nil
	}
	propose(w)
	return w.Next(), nil
}

func (p *hostsPage) View(w *frame.Wizard, width, height int) string {
	others := "and " + plain.Counted(len(w.Overview.VMs), "VM") + "."
	if w.Partial() {
		others = "and VMs, which are being read with the pNICs."
	}
	intro := theme.Wrap(fmt.Sprintf("Which hosts should be set up? vCenter %s has %s %s", backends.Clean(w.Overview.VCenter.Version),
		plain.Counted(len(w.Overview.Hosts), "host"), others), width)
	return intro + "\n\n" + p.table.View(width, height-lines(intro)-1)
}
