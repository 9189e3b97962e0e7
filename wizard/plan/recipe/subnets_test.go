package recipe_test

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/wizard/plan"
)

func TestAddressesInTwoSubnetsAreNoted(t *testing.T) {
	noted := func(notes []string) bool {
		return slices.ContainsFunc(notes,
			func(n string) bool { return strings.Contains(n, "are in 2 subnets (192.168.50.0/24, 192.168.51.0/24)") })
	}
	inv := newInventory(2)
	a := newAnswers(inv)
	a.VMs[0].IP.Prefix, a.VMs[1].IP.Prefix = netip.MustParsePrefix("192.168.50.11/24"), netip.MustParsePrefix("192.168.50.12/24")
	if p := mustBuild(t, a, inv, plan.Options{}); noted(p.Notes) {
		t.Errorf("one subnet: %q", p.Notes)
	}
	a.VMs[1].IP.Prefix = netip.MustParsePrefix("192.168.51.12/24")
	if p := mustBuild(t, a, inv, plan.Options{}); !noted(p.Notes) {
		t.Errorf("two subnets: %q", p.Notes)
	}
}

// Guests whose prefix this program does not set may have any; so may guests on different networks.
func TestSubnetsThatMayOverlap(t *testing.T) {
	inv := newInventory(2)
	a := newAnswers(inv)
	a.VMs[0].IP.Prefix, a.VMs[1].IP.Prefix = netip.MustParsePrefix("192.168.50.11/24"), netip.MustParsePrefix("192.168.50.12/16")
	if r := refusals(t, a, inv, plan.Options{}); len(r) != 1 || r[0].Check != "GST-IP-014" {
		t.Fatalf("%+v", r)
	}
	if p := mustBuild(t, a, inv, plan.Options{Skip: []string{"GST-IP-014"}}); !slices.ContainsFunc(p.Notes,
		func(n string) bool { return strings.Contains(n, "overlaps with") }) {
		t.Errorf("skipped: %q", p.Notes)
	}
	unmanaged := false
	a.VMs[1].Guest.Manage = &unmanaged
	mustBuild(t, a, inv, plan.Options{})
}
