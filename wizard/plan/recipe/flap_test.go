package recipe_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
)

// Uplink flaps are announced before they happen: by the change, and by a note that names the reason (KB 419088).
func TestFlapsAreAnnounced(t *testing.T) {
	inv := newInventory(2)
	a := newAnswers(inv)
	apply(t, a, inv)
	inv.Switches[0].MTU = 1500
	p := mustBuild(t, a, inv, plan.Options{})
	if c := p.Change("dvs/RDMA-DVS/switch"); c == nil || !slices.Contains(c.Disrupts, plan.UplinkFlap) {
		t.Errorf("a new MTU: %+v", c)
	}
	if !slices.ContainsFunc(p.Notes, func(n string) bool { return strings.Contains(n, "down and up on every member") }) {
		t.Errorf("notes %q", p.Notes)
	}

	inv.Switches[0].MTU = a.Switch.MTU
	inv.Switches[0].Members["esx-01"] = backends.Member{PNICs: []string{"vmnic2", "vmnic3"}}
	inv.Hosts[0].NICs[2].Switch = "RDMA-DVS"
	p = mustBuild(t, a, inv, plan.Options{})
	if c := p.Change("host/esx-01/member/RDMA-DVS"); c == nil || !slices.Contains(c.Disrupts, plan.UplinkFlap) {
		t.Errorf("another uplink: %+v", c)
	}

	// The firewall is opened for one ruleset, and for nothing that the answers do not need.
	fresh := newInventory(2)
	p = mustBuild(t, newAnswers(fresh), fresh, plan.Options{})
	for _, c := range p.Changes {
		if c.Kind == backends.KindFirewall && c.Name != "pvrdma" {
			t.Errorf("%s opens more than PVRDMA needs", c.ID())
		}
	}
}
