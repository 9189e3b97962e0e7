package dialog

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/ui/form/entry"
	"github.com/rdma-setup/rdma-setup/ui/plain"
	"github.com/rdma-setup/rdma-setup/ui/theme"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/sizing"
)

func (q *questions) hosts(inv *backends.Inventory) error {
	var usable []string
	for _, h := range inv.Hosts {
		q.say("host %s, cluster %s, ESXi %s, %s", backends.Clean(h.Name), backends.Clean(h.Cluster), backends.Clean(h.Version), backends.Clean(h.State))
		if h.State == "connected" && !h.InMaintenance && entry.Fits(h) > 0 && (q.a.Hosts.Cluster == "" || q.a.Hosts.Cluster == h.Cluster) {
			usable = append(usable, h.Name)
		}
	}
	def := usable
	if len(q.a.Hosts.Names) > 0 {
		def = q.a.Hosts.Names
	}
	return q.until("Hosts, separated by commas", strings.Join(def, ","), func(s string) error {
		names, err := listed(s, func(name string) error {
			switch h := inv.Host(name); {
			case h == nil:
				return errors.New("there is no host " + name)
			case h.State != "connected":
				return errors.New(name + " is " + h.State)
			}
			return nil
		})
		if err != nil {
			return err
		}
		sort.Strings(names)
		datacenter, err := entry.OneDatacenter(inv, names)
		if err != nil {
			return err
		}
		q.a.Hosts.Names, q.a.Hosts.Datacenter = names, datacenter
		q.a = q.o.Fabric.Propose(q.a, inv)
		return nil
	})
}

// listed splits a list; every entry must be valid and there must be at least one.
func listed(s string, good func(string) error) ([]string, error) {
	var names []string
	for _, n := range strings.Split(s, ",") {
		if n = strings.TrimSpace(n); n == "" || slices.Contains(names, n) {
			continue
		}
		if err := good(n); err != nil {
			return nil, err
		}
		names = append(names, n)
	}
	if len(names) == 0 {
		return nil, errors.New("name at least one")
	}
	return names, nil
}

func (q *questions) mode(*backends.Inventory) error {
	q.say("%s", entry.CostTable(theme.Plain(), ""))
	before := q.a.Mode
	return q.until("Mode: pvrdma, sriov or gpudirect", string(before), func(s string) error {
		m := answers.Mode(strings.ToLower(s))
		if !slices.Contains([]answers.Mode{answers.PVRDMA, answers.SRIOV, answers.GPUDirect}, m) {
			return fmt.Errorf("there is no mode %q", s)
		}
		q.a.Mode = m
		entry.ChangeMode(q.a, before)
		return nil
	})
}

// nics asks for the pNICs of each rail, and whether to add another if the hosts have pNICs for it.
func (q *questions) nics(inv *backends.Inventory) error {
	choose := q.o.Fabric.Choose
	for _, name := range q.a.Hosts.Names {
		for _, v := range backends.ChoosePNIC(inv.Host(name), sizing.OpenWish(q.a)).Verdicts {
			n := v.NIC
			q.say("%s %s, %s, %s, %s: %s", backends.Clean(name), backends.Clean(n.Device), backends.Speed(n.SpeedMbps), cmp.Or(backends.Clean(n.MAC), "no MAC"), entry.RDMAWord(*n), backends.Clean(v.Why()))
		}
	}
	if without := entry.WithoutHCA(q.a, inv); len(without) > 0 {
		yes, err := q.yesOr(fmt.Sprintf("No RDMA card in %s; %s. Set up such hosts", plain.Names(without), entry.AboutNoHCA), entry.YesNo(q.a.NoHCA()))
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

// nicsOf asks for the pNICs of one rail.
func (q *questions) nicsOf(inv *backends.Inventory, rail int) error {
	ports := entry.RailPorts(q.a, inv, q.o.Fabric.Choose)
	picks, of := ports[rail], ""
	if q.a.Several() {
		of = " for " + q.a.Rails[rail].Name
	}
	without := entry.WithoutHCA(q.a, inv)
	names := slices.DeleteFunc(slices.Clone(q.a.Hosts.Names), func(name string) bool { return slices.Contains(without, name) })
	if !slices.ContainsFunc(names, func(name string) bool { return picks[name] == "" }) {
		for _, name := range names {
			q.say("proposed%s: %s %s", of, backends.Clean(name), backends.Clean(picks[name]))
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

func (q *questions) network(inv *backends.Inventory) error {
	text := func(into *string) func(string) error {
		return func(s string) error { *into = s; return nil }
	}
	whole := func(into *int) func(string) error {
		return func(s string) error {
			n, err := strconv.Atoi(s)
			if err != nil {
				return fmt.Errorf("%q: want a number", s)
			}
			*into = n
			return nil
		}
	}
	sw := &q.a.Switch
	type asked struct {
		question, path, def string
		set                 func(string) error
		offers              func() []entry.Offer // what there is to choose from
	}
	var entries []asked
	mtu := asked{"MTU; physical switch ports need 9216", "switch.mtu", strconv.Itoa(sw.MTU), whole(&sw.MTU), nil}
	if q.a.Mode == answers.GPUDirect {
		for _, l := range entry.GPULines(q.a, inv) {
			q.say("%s", l)
		}
		g := &q.a.GPUDirect
		if err := q.until("RDMA card in the VM, "+entry.AboutCard, g.NIC, func(s string) error { g.NIC = s; return entry.OneOf(entry.Values(entry.Cards())...)(s) }); err != nil {
			return err
		}
		entries = append(entries,
			asked{"MMIO window, " + entry.AboutMMIO, "gpudirect.mmio", string(g.MMIO), func(s string) error { return g.MMIO.UnmarshalText([]byte(s)) }, entry.MMIOs},
			asked{"DirectPath devices, " + entry.AboutBacking, "gpudirect.backing", g.Backing, func(s string) error { g.Backing = s; return entry.OneOf(entry.Values(entry.Backings())...)(s) }, nil})
	}
	if q.a.WholeCard() {
		entries = append(entries, mtu)
	} else {
		entries = append(entries, []asked{
			{"Distributed switch, created if it does not exist", "switch.name", sw.Name, text(&sw.Name),
				func() []entry.Offer { return entry.Switches(q.a, inv) }},
			{"Port group for the RDMA adapters of the VMs", "switch.portgroup", sw.PortGroup, text(&sw.PortGroup),
				func() []entry.Offer { return entry.PortGroups(sw.Name, inv) }},
			mtu,
			{"VLAN, 0 is untagged", "switch.vlan", strconv.Itoa(sw.VLAN), whole(&sw.VLAN), nil},
		}...)
	}
	switch {
	case q.a.WholeCard():
	case q.a.VFs():
		s := &q.a.SRIOV
		entries = append(entries,
			asked{"VFs, " + entry.AboutVFs, "sriov.vfs", strconv.Itoa(s.VFs), whole(&s.VFs), nil},
			asked{"Components, " + entry.AboutComponents, "sriov.components", strings.Join(s.Components, ", "), func(text string) error { s.Components = entry.Components(text); return nil }, nil},
			asked{"Account of the ESXi shell, " + entry.AboutShell, "esxi.user", q.a.ESXi.User, func(text string) error { q.a.ESXi.User = text; return entry.ShellUser(text) }, nil},
			asked{"Tuning, " + entry.AboutTuning, "tuning", cmp.Or(entry.TuningWords(q.a.Tuning), "none"), func(text string) (err error) { q.a.Tuning, err = entry.TuningOf(text); return err }, entry.Tunings})
		if entry.AsksLossless(q.a) {
			entries = append(entries, asked{"Lossless switch, " + entry.AboutLossless, "confirmed.switch_pfc", entry.YesNo(q.a.Confirmed.SwitchPFC),
				func(text string) error {
					q.a.Confirmed.SwitchPFC = text == "yes"
					return entry.OneOf("yes", "no")(text)
				}, nil})
		}
	case q.a.PVRDMA.VMKNic.Create == nil:
		entries = append(entries, asked{"vmknic for PVRDMA, the control plane between hosts", "pvrdma.vmknic", q.a.PVRDMA.VMKNic.Name, text(&q.a.PVRDMA.VMKNic.Name),
			func() []entry.Offer { return entry.VMKNics(q.a, inv) }})
	}
	for i := 1; i < len(q.a.Rails); i++ {
		entries = append(entries, asked{"Network of " + q.a.Rails[i].Name + ", " + entry.AboutNetwork, fmt.Sprintf("rails[%d].network", i), entry.NetworkText(q.a.Rails[i]),
			func(text string) error { return entry.SetNetwork(q.a, i, text) }, nil})
	}
	before := *sw
	for _, f := range entries {
		if f.offers != nil {
			for _, o := range f.offers() {
				q.say("choice: %s  %s", backends.Clean(o.Value), backends.Clean(o.About))
			}
		}
		err := q.until(f.question, f.def, func(s string) error {
			if err := f.set(s); err != nil {
				return err
			}
			if f.path == "pvrdma.vmknic" {
				if err := entry.VMKNic(inv, q.a)(s); err != nil {
					return err
				}
			}
			return entry.Problem(q.a, f.path)
		})
		if err != nil {
			return err
		}
	}
	entry.FollowFirst(q.a, before)
	return nil
}

// vms asks which VMs, then for the address of each and how to reach its guest.
func (q *questions) vms(inv *backends.Inventory) error {
	known := map[string]answers.VM{}
	var def []string
	member := entry.Members(q.a)
	on, taken := map[string]string{}, map[string]bool{}
	left := entry.CardLeft(q.a, on, func(id string) bool { return taken[id] })
	for _, v := range inv.VMs {
		on[v.Name] = v.Host
	}
	for _, v := range q.a.VMs {
		known[v.Name] = v
		if m := inv.VM(v.Name); m != nil && member[m.Host] && left(v.Name) == "" {
			def, taken[v.Name] = append(def, v.Name), true
		}
	}
	for _, v := range inv.VMs {
		if member[v.Host] {
			q.say("VM %s on %s, %s, %s", backends.Clean(v.Name), backends.Clean(v.Host), backends.Clean(v.Power), backends.Clean(v.GuestName))
		}
	}
	var names []string
	err := q.until("VMs, separated by commas", strings.Join(def, ","), func(s string) (err error) {
		clear(taken)
		names, err = listed(s, func(name string) error {
			switch v := inv.VM(name); {
			case v == nil:
				return errors.New("there is no VM " + name)
			case !member[v.Host]:
				return fmt.Errorf("%s is on %s, which is not one of the selected hosts", name, v.Host)
			}
			if why := left(name); why != "" {
				return fmt.Errorf("%s cannot be chosen: %s", name, why)
			}
			taken[name] = true
			return nil
		})
		return err
	})
	if err != nil {
		return err
	}
	return q.guests(inv, names, known)
}

// guests asks for the address of each VM and how to reach its guest, one by one only if the proposal is rejected.
func (q *questions) guests(inv *backends.Inventory, names []string, known map[string]answers.VM) error {
	free := entry.FreeAddresses(q.a.VMs, inv.VMs, len(names))
	g := entry.Guests{Mode: q.a.Mode, VM: map[string]answers.VM{}}
	for _, name := range names {
		vm, ok := known[name]
		g.VM[name] = entry.Completed(name, vm, ok, free)
		q.say("proposed: %s has %s, login %s", backends.Clean(name), entry.AddressText(g.VM[name]), cmp.Or(backends.Clean(entry.LoginText(g.VM[name])), "of your SSH settings"))
	}
	yes, err := q.yes("Take these addresses and logins")
	if err != nil {
		return err
	}
	q.a.VMs = nil
	g.Member = func(id string) bool {
		return slices.ContainsFunc(q.a.VMs, func(v answers.VM) bool { return v.Name == id })
	}
	for _, name := range names {
		if !yes {
			if err := q.guest(name, g); err != nil {
				return err
			}
		}
		q.a.VMs = append(q.a.VMs, g.VM[name])
	}
	return nil
}

func (q *questions) guest(name string, g entry.Guests) error {
	if len(g.VM[name].Adapters) == 0 {
		if err := q.until("RDMA address of "+name, entry.AddressText(g.VM[name]), func(s string) error { return g.SetAddress(name, s) }); err != nil {
			return err
		}
	}
	return q.until("Login of guest "+name+", user@address:port, empty for your SSH settings", entry.LoginText(g.VM[name]), func(s string) error { return g.SetLogin(name, s) })
}
