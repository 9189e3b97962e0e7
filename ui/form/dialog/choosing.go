package dialog

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/ui/form/entry"
	"github.com/rdma-setup/rdma-setup/ui/plain"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// An option is a host or a VM that can be selected by its name.
type option struct {
	name, group, groupName string // the group is a cluster of hosts, or the host of a VM
	about                  string // state; options that share it are listed together
	why                    string // it cannot be selected; "" if it can
}

// offer lists options, those of one group and state on one line.
func (q *questions) offer(options []option) {
	var all plain.Gathered[string, string]
	for _, o := range options {
		where := "in no " + o.groupName
		if o.group != "" {
			where = o.groupName + " " + o.group
		}
		all.Add(where+", "+o.about, o.name)
	}
	for about, names := range all.All() {
		q.say("%s: %s", about, plain.Names(names))
	}
}

// selected reads a list separated by commas: names, patterns such as esx-1*, groups such as "cluster NAME", or all. A pattern, a
// group and all leave out what cannot be selected.
func selected(text string, options []option, kind, groupName string) ([]string, error) {
	var names []string
	for _, word := range strings.Split(text, ",") {
		if word = strings.TrimSpace(word); word == "" {
			continue
		}
		group, ofGroup := strings.CutPrefix(word, groupName+" ")
		found, why := false, ""
		for _, o := range options {
			like, err := path.Match(word, o.name)
			if word != o.name && !(word == "all" || err == nil && like || ofGroup && o.group == strings.TrimSpace(group)) {
				continue
			}
			if o.why != "" {
				why = o.name + " " + o.why
				continue
			}
			if found = true; !slices.Contains(names, o.name) {
				names = append(names, o.name)
			}
		}
		switch {
		case !found && why != "":
			return nil, errors.New(why)
		case !found && ofGroup:
			return nil, fmt.Errorf("there is no %s %s", groupName, group)
		case !found:
			return nil, fmt.Errorf("there is no %s %s", kind, word)
		}
	}
	if len(names) == 0 {
		return nil, errors.New("name at least one")
	}
	return names, nil
}

// hosts asks for the hosts. Only on the private lab is there a proposal.
func (q *questions) hosts(inv *backends.Inventory) error {
	var options []option
	var proposed []string
	for _, h := range inv.Hosts {
		o := option{name: h.Name, group: h.Cluster, groupName: "cluster", about: "ESXi " + h.Version + ", " + h.State}
		if h.State != "connected" {
			o.why = "is " + h.State
		} else if h.InMaintenance {
			o.about += ", maintenance"
		}
		options = append(options, o)
		wanted := q.o.Fabric.Private(q.login)
		if q.a.Hosts.Cluster != "" {
			wanted = h.In(q.a.Hosts.Datacenter, q.a.Hosts.Cluster)
		}
		if o.why == "" && !h.InMaintenance && entry.Fits(h) > 0 && wanted {
			proposed = append(proposed, h.Name)
		}
	}
	if len(q.a.Hosts.Names) > 0 {
		proposed = q.a.Hosts.Names
	}
	q.offer(options)
	return q.until("Hosts: names or patterns such as esx-1*, separated by commas, cluster NAME, or all", strings.Join(proposed, ","),
		func(s string) error {
			names, err := selected(s, options, "host", "cluster")
			if err != nil {
				return err
			}
			slices.SortFunc(names, plain.Natural)
			datacenter, err := entry.OneDatacenter(inv, names)
			if err != nil {
				return err
			}
			q.say("%s: %s", plain.Counted(len(names), "host"), plain.Names(names))
			q.a.Hosts.Names, q.a.Hosts.Datacenter = names, datacenter
			q.a = entry.Proposed(q.o.Fabric, q.login, q.a, inv)
			return nil
		})
}

// vms asks for the VMs, then for their addresses and logins. Only on the private lab is there a proposal.
func (q *questions) vms(inv *backends.Inventory) error {
	known, taken, on := map[string]answers.VM{}, map[string]bool{}, map[string]string{}
	var proposed []string
	var options []option
	member := entry.Members(q.a)
	left := entry.CardLeft(q.a, on, func(id string) bool { return taken[id] })
	for _, v := range inv.VMs {
		on[v.Name] = v.Host
		o := option{name: v.Name, group: v.Host, groupName: "host", about: v.Power + ", " + cmp.Or(v.GuestName, "unknown guest"),
			why: entry.Unfit(v)}
		if o.why != "" {
			o.why = "cannot be chosen: " + o.why
		}
		if !member[v.Host] {
			o.why = fmt.Sprintf("is on %s, which is not one of the selected hosts", v.Host)
		}
		options = append(options, o)
	}
	for _, v := range q.a.VMs {
		known[v.Name] = v
		if m := inv.VM(v.Name); m != nil && member[m.Host] && left(v.Name) == "" {
			proposed, taken[v.Name] = append(proposed, v.Name), true
		}
	}
	q.offer(slices.DeleteFunc(slices.Clone(options), func(o option) bool { return !member[o.group] }))
	var names []string
	err := q.until("VMs: names or patterns, separated by commas, host NAME, or all", strings.Join(proposed, ","), func(s string) (err error) {
		if names, err = selected(s, options, "VM", "host"); err != nil {
			return err
		}
		clear(taken)
		for _, name := range names {
			if why := left(name); why != "" {
				return fmt.Errorf("%s cannot be chosen: %s", name, why)
			}
			taken[name] = true
		}
		return nil
	})
	if err != nil {
		return err
	}
	return q.guests(inv, names, known)
}

// guests asks for the addresses and logins of the VMs: whether the proposal is right, else for the first address and one account for all
// of them, else one by one.
func (q *questions) guests(inv *backends.Inventory, names []string, known map[string]answers.VM) error {
	free := entry.FreeAddresses(q.a.VMs, inv.VMs, len(names))
	g := entry.Guests{Mode: q.a.Mode, VM: map[string]answers.VM{}}
	for _, name := range names {
		vm, ok := known[name]
		g.VM[name] = entry.Completed(name, vm, ok, free)
	}
	for {
		for _, name := range names {
			q.say("%s has %s, login %s", name, entry.AddressText(g.VM[name]), cmp.Or(entry.LoginText(g.VM[name]),
				"of your SSH settings"))
		}
		yes, err := q.yes("Take these addresses and logins")
		if err != nil {
			return err
		}
		if yes {
			break
		}
		if err := q.each(inv, names, g); err != nil {
			return err
		}
		if len(names) == 1 {
			break
		}
	}
	vms := make([]answers.VM, len(names))
	for i, name := range names {
		vms[i] = g.VM[name]
	}
	q.a.VMs = entry.InOrder(q.a.VMs, vms)
	return nil
}

// oneByOne is the answer that asks for each VM alone.
const oneByOne = "each"

func (q *questions) each(inv *backends.Inventory, names []string, g entry.Guests) error {
	sure, how := map[string]bool{}, ""
	g.Member = func(id string) bool { return sure[id] } // an address proposed for a VM that is asked about later is still free
	if len(names) > 1 {
		first := entry.AddressText(g.VM[names[0]])
		err := q.until("First address of "+plain.Counted(len(names), "VM")+", the others follow; or "+oneByOne, first, func(s string) error {
			if how = s; s == oneByOne {
				return nil
			}
			return g.SetAddresses(names, s, inv.VMs)
		})
		if err != nil {
			return err
		}
		if how != oneByOne {
			return q.until("Account in all guests, empty for your SSH settings", g.VM[names[0]].Guest.User,
				func(s string) error { return g.SetLogins(names, s) })
		}
	}
	for _, name := range names {
		if err := q.guest(name, g); err != nil {
			return err
		}
		sure[name] = true
	}
	return nil
}

func (q *questions) guest(name string, g entry.Guests) error {
	if len(g.VM[name].Adapters) == 0 {
		if err := q.until("RDMA address of "+name, entry.AddressText(g.VM[name]),
			func(s string) error { return g.SetAddress(name, s) }); err != nil {
			return err
		}
	}
	return q.until("Login of guest "+name+", user@address:port, empty for your SSH settings", entry.LoginText(g.VM[name]),
		func(s string) error { return g.SetLogin(name, s) })
}
