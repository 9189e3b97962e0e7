package form

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"

	tea "charm.land/bubbletea/v2"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/ui/form/entry"
	"github.com/rdma-setup/rdma-setup/ui/form/frame"
	"github.com/rdma-setup/rdma-setup/ui/live"
	"github.com/rdma-setup/rdma-setup/ui/theme"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// vmsPage chooses the VMs, their RDMA addresses and how their guests are reached.
type vmsPage struct {
	list
	guests entry.Guests // also of the VMs that are not chosen, by row id
	row    map[string]int
	was    map[string]answers.VM // the guests in the answers when the page was last shown
}

func (p *vmsPage) Title() string { return "VMs and guests" }
func (p *vmsPage) Hints() []frame.Hint {
	return []frame.Hint{{Key: "Space", Does: "choose"}, {Key: "e", Does: "address"}, {Key: "l", Does: "login"},
		{Key: "E L", Does: "for all chosen"},
		{Key: "a", Does: "all"}, {Key: "i", Does: "invert"}, {Key: "/", Does: "filter"}}
}
func (p *vmsPage) EnterLabel() string { return "continue" }

// The columns that can be edited.
const addressColumn, loginColumn = 1, 2

func (p *vmsPage) Enter(w *frame.Wizard) tea.Cmd {
	vms := map[string]answers.VM{}
	p.row = map[string]int{}
	picked := map[string]bool{}
	for _, v := range w.Answers.VMs {
		vms[v.Name] = v
		picked[v.Name] = true
	}
	same, candidates := map[string]int{}, 0
	member := entry.Members(w.Answers)
	for _, v := range w.Overview.VMs {
		same[v.Name]++
		if member[v.Host] {
			candidates++
		}
	}
	free := entry.FreeAddresses(w.Answers.VMs, w.Overview.VMs, candidates)
	var rows []live.Row
	fresh, on := map[string]answers.VM{}, map[string]string{}
	for _, v := range w.Overview.VMs {
		if !member[v.Host] {
			continue
		}
		id := v.Name
		if _, byPath := vms[v.Path]; byPath || same[id] > 1 {
			id = v.Path
		}
		vm, known := vms[id]
		fresh[id], p.row[id] = entry.Completed(id, vm, known, free), len(rows)
		vms[id] = fresh[id]
		if was, shown := p.was[id]; shown && reflect.DeepEqual(was, fresh[id]) {
			vms[id] = p.guests.VM[id] // with what was typed
		}
		on[id] = v.Host
		rows = append(rows, vmRow(id, v, vms[id]))
	}
	for id := range picked {
		if _, shown := p.row[id]; !shown {
			delete(picked, id)
		}
	}
	p.was = fresh
	table := live.NewTable(w.Theme, []live.Column{{Title: "VM"}, {Title: "RDMA address"}, {Title: "Guest login", Rank: 1},
		{Title: "Host", Rank: 2},
		{Title: "Power", Rank: 3}, {Title: "Guest", Rank: 4}}, rows)
	p.choose(table, picked)
	p.table.Full = entry.CardLeft(w.Answers, on, func(id string) bool { return p.table.Chosen[id] })
	if w.Fabric.Private(w.Login) { // all of them were selected automatically, also those for which no card is left
		for _, r := range slices.Backward(p.table.Rows()) {
			if p.table.Chosen[r.ID] && p.table.Full(r.ID) != "" {
				delete(p.table.Chosen, r.ID)
			}
		}
	}
	p.guests = entry.Guests{Mode: w.Answers.Mode, VM: vms, Member: func(id string) bool { return p.table.Chosen[id] }}
	p.table.Edits = []live.Edit{
		{Key: "e", Column: addressColumn, Set: p.edit(p.guests.SetAddress), AllKey: "E", AllAsk: "First address",
			All: p.editAll(func(ids []string, text string) error { return p.guests.SetAddresses(ids, text, w.Overview.VMs) })},
		{Key: "l", Column: loginColumn, Form: "user@address[:port]", Set: p.edit(p.guests.SetLogin), AllKey: "L", AllAsk: "Login account",
			All: p.editAll(p.guests.SetLogins)},
	}
	p.table.Paste = func(text string) error {
		ids, err := p.guests.Pasted(text)
		p.show(ids)
		for _, id := range ids {
			if r := p.table.Rows()[p.row[id]]; !p.table.Chosen[id] {
				return fmt.Errorf("%s cannot be chosen: %s", id, cmp.Or(r.Disabled, p.table.Full(id)))
			}
		}
		return err
	}
	return nil
}

func vmRow(id string, v backends.VM, vm answers.VM) live.Row {
	r := live.Row{ID: id, Group: v.Cluster, Cells: []string{id, entry.AddressText(vm), entry.LoginText(vm), v.Host, v.Power, v.GuestName},
		Detail: fmt.Sprintf("%s on %s, %s, vmx-%d, %d MB: %s", id, v.Host, v.Power, v.Hardware, v.MemoryMB, v.GuestName)}
	r.Disabled = entry.Unfit(v)
	if r.Disabled != "" {
		r.Detail = id + " cannot be chosen: " + r.Disabled
	}
	return r
}

// edit returns the function for a text typed for one VM: it validates, stores and shows it, and selects the VM.
func (p *vmsPage) edit(set func(id, text string) error) func(id, text string) error {
	all := p.editAll(func(ids []string, text string) error { return set(ids[0], text) })
	return func(id, text string) error { return all([]string{id}, text) }
}

// editAll does the same for several VMs.
func (p *vmsPage) editAll(set func(ids []string, text string) error) func(ids []string, text string) error {
	return func(ids []string, text string) error {
		if err := set(ids, text); err != nil {
			return err
		}
		p.show(ids)
		return nil
	}
}

// show writes the stored data of VMs into their rows, and selects them if possible.
func (p *vmsPage) show(ids []string) {
	for _, id := range ids {
		row := p.row[id]
		p.table.SetCell(row, addressColumn, entry.AddressText(p.guests.VM[id]))
		p.table.SetCell(row, loginColumn, entry.LoginText(p.guests.VM[id]))
		if p.table.Rows()[row].Disabled == "" && (p.table.Chosen[id] || p.table.Full(id) == "") {
			p.table.Chosen[id] = true
		}
	}
}

// Keep stores the selected VMs in the answers.
func (p *vmsPage) Keep(w *frame.Wizard) error {
	var vms []answers.VM
	for _, r := range p.table.Rows() {
		if p.table.Chosen[r.ID] {
			if why := p.table.Full(r.ID); why != "" {
				p.table.At(r.ID)
				return backends.Usagef(r.ID, "deselect it with Space", "%s", why)
			}
			vms = append(vms, p.guests.VM[r.ID])
		}
	}
	if len(vms) == 0 {
		return backends.Usagef("", "choose the VM at the cursor with Space, or all VMs with a", "no VM is chosen")
	}
	w.Answers.VMs = entry.InOrder(w.Answers.VMs, vms)
	if err := entry.Problem(w.Answers, "vms"); err != nil {
		if of, ok := errors.AsType[*backends.Error](err); ok {
			p.table.At(of.Target)
		}
		return err
	}
	p.kept()
	for id := range p.table.Chosen {
		p.was[id] = p.guests.VM[id]
	}
	return nil
}

func (p *vmsPage) Accept(w *frame.Wizard) (tea.Cmd, error) {
	if err := p.Keep(w); err != nil {
		return nil, err
	}
	return w.Next(), nil
}

func (p *vmsPage) View(_ *frame.Wizard, width, height int) string {
	intro := theme.Wrap("Which VMs get an RDMA adapter, and with which address? Use a network that no other adapter of the guest is in. "+
		"You can paste a list with NAME,ADDRESS/PREFIX on each line.", width)
	return intro + "\n\n" + p.table.View(width, height-lines(intro)-1)
}
