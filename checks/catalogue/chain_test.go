package catalogue_test

import (
	"testing"

	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/catalogue"
)

func TestFirstBrokenLink(t *testing.T) {
	for name, c := range map[string]struct {
		found []checks.Finding
		want  string
	}{
		"nothing is amiss": {[]checks.Finding{{ID: "VC-CONN-001", Status: checks.Pass}}, ""},
		"a closed firewall comes before what guests and pairs suffer": {[]checks.Finding{
			{ID: "PAIR-FALLBACK-010", Status: checks.Fail}, {ID: "GST-PORT-010", Status: checks.Fail},
			{ID: "HOST-FW-PVRDMA-007", Status: checks.Fail}}, "HOST-FW-PVRDMA-007"},
		"the BIOS comes before the driver, whatever the order of the rows": {[]checks.Finding{
			{ID: "HOST-VF-COUNT-010", Status: checks.Fail}, {ID: "HOST-SRIOVBIOS-006", Status: checks.Fail}}, "HOST-SRIOVBIOS-006"},
		"a failure outweighs a warning further up": {[]checks.Finding{{ID: "HOST-POWER-009", Status: checks.Warn},
			{ID: "VM-NIC-DVS-019", Status: checks.Fail}}, "VM-NIC-DVS-019"},
		"without a failure the first warning": {[]checks.Finding{{ID: "GST-MTU-012", Status: checks.Warn},
			{ID: "VM-MEMRES-007", Status: checks.Warn}}, "VM-MEMRES-007"},
		"what was not read stands among warnings in the order of the chain": {[]checks.Finding{
			{ID: "GST-MTU-012", Status: checks.Warn}, {ID: "GST-OS-001", Status: checks.Unknown, Evidence: "no log-in"}}, "GST-OS-001"},
		"a host comes before a guest that was not read": {[]checks.Finding{
			{ID: "GST-OS-001", Status: checks.Unknown, Evidence: "off"}, {ID: "HOST-REBOOT-003", Status: checks.Warn}}, "HOST-REBOOT-003"},
		"without either what could not be asked": {[]checks.Finding{{ID: "GST-OS-001", Status: checks.Unknown}}, "GST-OS-001"},
		"rows that wait for a word or are unverified: not": {[]checks.Finding{{ID: "SW-PFC-012", Status: checks.Unknown, Quiet: true},
			{ID: "HOST-FW-ALLOW-008", Status: checks.Warn, Quiet: true}}, ""},
		"rows of an older program are left out": {[]checks.Finding{{ID: "HOST-GONE-099", Status: checks.Fail}}, ""},
		"nothing was looked at":                 {nil, ""},
	} {
		got := ""
		if f := catalogue.FirstBroken(c.found); f != nil {
			got = f.ID
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestChainInOrder(t *testing.T) {
	f := healthy(p)
	f.Inventory.Hosts[1].Firewall["pvrdma"] = f.Inventory.Hosts[1].Firewall["none"]
	f.Inventory.Guests[1].RDMA[0].State = "PORT_DOWN"
	found, nothing := checks.Applied(run(f, checks.Selection{}))
	want := map[checks.LinkName]checks.Status{checks.InHost: checks.Fail, checks.InGuest: checks.Fail}
	chain := catalogue.Chain(found, nothing...)
	for i, name := range checks.Links() {
		l := chain[i]
		status := checks.Pass
		if want[name] != "" {
			status = want[name]
		}
		if l.Name != name || l.Worst != status || (l.First == nil) != (status == checks.Pass) {
			t.Errorf("link %d is %s %s with %v, want %s %s", i, l.Name, l.Worst, l.First, name, status)
		}
		if l.Count[checks.Pass] == 0 {
			t.Errorf("no row of link %s passes", l.Name)
		}
	}
	if first := catalogue.FirstBroken(found); first == nil || first.ID != "HOST-FW-PVRDMA-007" || first.Target.Name != "lyon-1" {
		t.Errorf("first broken: %+v", first)
	}
	if empty := catalogue.Chain(nil); len(empty) != 8 || empty[0].Worst != checks.NotRead || empty[0].First != nil {
		t.Errorf("nobody looked: %+v", empty)
	}
}
