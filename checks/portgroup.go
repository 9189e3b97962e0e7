package checks

import (
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
)

// eachGroup asks about the port groups of the answers that exist; missing ones have their own row (DVS-PG-007).
func eachGroup(ask func(f *Facts, t backends.Ref, pg *backends.PortGroup) Answer) func(*Facts) []Answer {
	return func(f *Facts) []Answer {
		var out []Answer
		for _, name := range f.Answers.PortGroups() {
			if pg := f.Inventory.PortGroup(name); pg != nil {
				out = said(out, ask(f, backends.PortGroupRef(name), pg))
			}
		}
		return out
	}
}

func portGroup(f *Facts, t backends.Ref, pg *backends.PortGroup) Answer {
	switch {
	case pg == nil:
		return fail(t, "the port group is not there")
	case pg.Switch != f.Answers.Switch.Name:
		return fail(t, "the port group is on %s", pg.Switch)
	}
	need := lacking(f, pg.Name)
	if pg.Free == 0 && need > 0 {
		return fail(t, "binding %s, none of %d ports is free for %d more VMs", pg.Binding, pg.Ports, need)
	}
	few := pg.Free >= 0 && pg.Free < need
	return warnIf(pg.Binding != "earlyBinding" || few, t, "binding %s, %d ports, %d free, %d more VMs need one", pg.Binding, pg.Ports, pg.Free, need)
}

// lacking counts selected VMs without an adapter on a port group: each will take a port.
func lacking(f *Facts, group string) int {
	found, _ := f.vms()
	n := 0
	for _, v := range found {
		if !slices.ContainsFunc(v.Adapters, func(a backends.Adapter) bool { return a.PortGroup == group }) {
			n++
		}
	}
	return n
}

// portSecurity compares the MAC that vCenter gave with the one that the guest uses: a guest that has an interface with
// neither changed it.
func portSecurity(f *Facts, t backends.Ref, pg *backends.PortGroup) Answer {
	var changed []string
	found, _ := f.vms()
	for _, v := range found {
		g, a := f.guest(v.Name), f.adapter(v, "sriov")
		if g == nil || g.Error != "" || a == nil || a.PortGroup != pg.Name || len(g.Interfaces) < len(v.Adapters) {
			continue
		}
		if g.Interface(strings.ToLower(a.MAC)) == nil {
			changed = append(changed, v.Name)
		}
	}
	switch {
	case len(changed) == 0:
		return pass(t, "no guest is known to have changed its MAC")
	case pg.Security == nil:
		return waiting(t, "%s changed the MAC; the policy was not read", strings.Join(changed, ", "))
	}
	return passIf(pg.Security.MACChanges && pg.Security.Forged, t, "%s changed the MAC; changes accepted %t, forged transmits %t", strings.Join(changed, ", "), pg.Security.MACChanges, pg.Security.Forged)
}
