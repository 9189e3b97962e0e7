package dialog

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/ui/form/entry"
	"github.com/rdma-setup/rdma-setup/ui/plain"
	"github.com/rdma-setup/rdma-setup/ui/theme"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/sizing"
)

func (q *questions) mode(inv *backends.Inventory) error {
	for _, o := range entry.Modes() {
		q.say("choice: %s  %s", o.Value, o.About)
	}
	q.page(entry.CostTable(theme.Plain(), ""))
	before := q.a.Mode
	return q.until("How should the guests get RDMA", string(before), func(s string) error {
		m := answers.Mode(strings.ToLower(s))
		if !slices.Contains(entry.Values(entry.Modes()), string(m)) {
			return fmt.Errorf("there is no mode %q", s)
		}
		q.a.Mode = m
		entry.ChangeMode(q.a, before)
		q.a = entry.Proposed(q.o.Fabric, q.login, q.a, inv)
		return nil
	})
}

// nics asks for the pNICs of each rail, and whether to add another if the hosts have pNICs for it.
func (q *questions) nics(inv *backends.Inventory) error {
	choose := q.o.Fabric.Choose
	q.a.Switch.Name = entry.UsedSwitch(q.a, inv, choose)
	var ports plain.Gathered[string, string]
	for _, name := range q.a.Hosts.Names {
		for _, v := range backends.ChoosePNIC(inv.Host(name), sizing.OpenWish(q.a)).Verdicts {
			n := v.NIC
			ports.Add(n.Device+"\n"+fmt.Sprintf("%s, %s: %s", backends.Speed(n.SpeedMbps), entry.RDMALabel(*n), v.Why()), name)
		}
	}
	for port, hosts := range ports.All() {
		device, about, _ := strings.Cut(port, "\n")
		q.say("%s on %s: %s", device, plain.Names(hosts), about)
	}
	if without := entry.WithoutHCA(q.a, inv); len(without) > 0 {
		yes, err := q.yesOr(fmt.Sprintf("No RDMA card in %s; %s. Set up such hosts", plain.Names(without), entry.AboutNoHCA),
			plain.YesNo(q.a.NoHCA()))
		if err != nil {
			return err
		}
		if q.a.PVRDMA.AllowNoHCA = yes; !yes {
			q.say("then name the hosts without %s", plain.Names(without))
			if err := q.hosts(inv); err != nil {
				return err
			}
			return q.nics(inv)
		}
	}
	for rail := 0; ; rail++ {
		if err := q.nicsOf(inv, rail); err != nil {
			return err
		}
		switch {
		case rail+1 < len(q.a.Rails):
			continue
		case !entry.MoreRails(q.a, inv, choose):
			return nil
		}
		if yes, err := q.yesOr("Add a rail", "no"); err != nil || !yes {
			return err
		}
		if err := entry.AddRail(q.a, inv, choose); err != nil {
			return err
		}
	}
}

func (q *questions) nicsOf(inv *backends.Inventory, rail int) error {
	ports := entry.RailPorts(q.a, inv, q.o.Fabric.Choose)
	picks, of := ports[rail], ""
	if q.a.Several() {
		of = " for " + q.a.Rails[rail].Name
	}
	without := entry.WithoutHCA(q.a, inv)
	names := slices.DeleteFunc(slices.Clone(q.a.Hosts.Names), func(name string) bool { return slices.Contains(without, name) })
	if !slices.ContainsFunc(names, func(name string) bool { return picks[name] == "" }) {
		var proposed plain.Gathered[string, string]
		for _, name := range names {
			proposed.Add(picks[name], name)
		}
		for port, hosts := range proposed.All() {
			q.say("proposed%s: %s on %s", of, port, plain.Names(hosts))
		}
		if yes, err := q.yes("Take these pNICs"); err != nil || yes {
			return err
		}
	}
	macs := map[string]answers.MAC{}
	took := map[string]string{}
	changed := false
	for _, name := range names {
		err := q.until("pNIC of "+name+of, picks[name], func(s string) error {
			all := backends.ChoosePNIC(inv.Host(name), sizing.OpenWish(q.a.ForRail(rail))).Verdicts
			i := slices.IndexFunc(all, func(v backends.PNICVerdict) bool { return v.NIC.Device == s })
			if i < 0 {
				return fmt.Errorf("%s has no pNIC %q", name, s)
			}
			if !all[i].Choosable() {
				return fmt.Errorf("%s cannot be chosen: it %s", s, all[i].Why())
			}
			if other := entry.Serves(q.a, ports, name, s); q.a.Several() && other != "" && s != picks[name] {
				return fmt.Errorf("%s cannot be chosen: it serves %s", s, other)
			}
			n := all[i].NIC
			macs[name], took[name] = answers.MAC(strings.ToLower(n.MAC)), s
			changed = changed || s != picks[name]
			return nil
		})
		if err != nil {
			return err
		}
	}
	switch {
	case changed && (q.a.Several() || entry.Hidden(inv, took)):
		entry.Describe(q.a, rail, entry.Described(inv, took))
	case changed:
		q.a.NIC = answers.NIC{MACs: macs}
	}
	return nil
}

// yes asks whether to accept a proposal.
func (q *questions) yes(question string) (bool, error) { return q.yesOr(question, "yes") }

// yesOr asks for yes or no; def is the default.
func (q *questions) yesOr(question, def string) (bool, error) {
	took := false
	err := q.until(question+"? yes or no", def, func(s string) error {
		switch strings.ToLower(s) {
		case "yes", "y":
			took = true
		case "no", "n":
			took = false
		default:
			return errors.New("answer yes or no")
		}
		return nil
	})
	return took, err
}

// network asks for the switch and the other settings of the mode; some questions depend on earlier answers.
func (q *questions) network(inv *backends.Inventory) error {
	if q.a.Mode == answers.GPUDirect {
		for _, l := range entry.GPULines(q.a, inv) {
			q.say("%s", l)
		}
	}
	before := q.a.Switch
	for i := 0; i < len(entry.Settings(q.a, inv)); i++ {
		f := entry.Settings(q.a, inv)[i]
		if f.Offers != nil {
			for _, o := range f.Offers(q.a) {
				q.say("choice: %s  %s", o.Value, o.About)
			}
		}
		err := q.until(f.Asked(), f.Text(q.a), func(s string) error {
			if err := f.Wrong(q.a, s); err != nil {
				return err
			}
			return f.Set(q.a, s)
		})
		if err != nil {
			return err
		}
	}
	entry.FollowFirst(q.a, before)
	return nil
}
