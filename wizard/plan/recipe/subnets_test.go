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
		return slices.ContainsFunc(notes, func(n string) bool { return strings.Contains(n, "are in 2 subnets (192.168.50.0/24, 192.168.51.0/24)") })
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
