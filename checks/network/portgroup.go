package network

import (
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/row"
)

// eachGroup evaluates the port groups of the answers that exist; missing ones have their own row (DVS-PG-007).
func eachGroup(ask func(f *checks.Facts, t backends.Ref, pg *backends.PortGroup) checks.Answer) func(*checks.Facts) []checks.Answer {
	return func(f *checks.Facts) []checks.Answer {
		var out []checks.Answer
		for _, name := range f.Answers.PortGroups() {
			if pg := f.Inventory.PortGroup(name); pg != nil {
				out = row.Said(out, ask(f, backends.PortGroupRef(name), pg))
			}
		}
		return out
	}
}

func portGroup(f *checks.Facts, t backends.Ref, pg *backends.PortGroup) checks.Answer {
	switch {
	case pg == nil:
		return row.Fail(t, "the port group does not exist")
	case pg.Switch != f.Answers.Switch.Name:
		return row.Fail(t, "the port group is on %s", pg.Switch)
	}
	need := lacking(f, pg.Name)
	if pg.Free == 0 && need > 0 {
		return row.Fail(t, "binding %s, none of its %d ports is free, but %d more VMs need one", pg.Binding, pg.Ports, need)
	}
	few := pg.Free >= 0 && pg.Free < need
	return row.WarnIf(pg.Binding != "earlyBinding" || few, t, "binding %s, %d ports, %d free, %d more VMs need one", pg.Binding, pg.Ports, pg.Free, need)
}

// lacking counts selected VMs without an adapter on a port group: each will use a port.
func lacking(f *checks.Facts, group string) int {
	found, _ := f.VMs()
	n := 0
	for _, v := range found {
		if !slices.ContainsFunc(v.Adapters, func(a backends.Adapter) bool { return a.PortGroup == group }) {
			n++
		}
	}
	return n
}

// portSecurity compares the MAC from vCenter with the one that the guest uses: a guest that has no interface with the former
// changed it.
func portSecurity(f *checks.Facts, t backends.Ref, pg *backends.PortGroup) checks.Answer {
	var changed []string
	found, _ := f.VMs()
	for _, v := range found {
		g, a := f.Guest(v.Name), f.Adapter(v, "sriov")
		if g == nil || g.Error != "" || a == nil || a.PortGroup != pg.Name || len(g.Interfaces) < len(v.Adapters) {
			continue
		}
		if g.Interface(strings.ToLower(a.MAC)) == nil {
			changed = append(changed, v.Name)
		}
	}
	switch {
	case len(changed) == 0:
		return row.Pass(t, "no guest is known to have changed its MAC")
	case pg.Security == nil:
		return row.Waiting(t, "%s changed the MAC; the policy was not read", strings.Join(changed, ", "))
	}
	return row.PassIf(pg.Security.MACChanges && pg.Security.Forged, t, "%s changed the MAC; changes accepted %t, forged transmits %t",
		strings.Join(changed, ", "), pg.Security.MACChanges, pg.Security.Forged)
}
