package guest_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/guest"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// Rails that share a subnet are judged separately, each by its name (ip-sysctl.rst: the larger value of "all" and the interface
// applies).
func TestPolicyOfRailsInOneSubnet(t *testing.T) {
	kept := backends.OneSubnet()
	for name, c := range map[string]struct {
		edit func(second *backends.Interface)
		ip   string // of the second rail
		want string
	}{
		"sound": {func(*backends.Interface) {}, "10.0.0.2/24",
			"pass rail-2: ens256: table 5002, arp_ignore 1, arp_announce 2, rp_filter 2, persistent: true"},
		"its own subnet": {func(i *backends.Interface) { *i = backends.Interface{Name: "ens256", MAC: i.MAC} }, "10.0.1.2/24",
			"pass rail-2: no other rail has the subnet of 10.0.1.2/24"},
		"no rule":            {func(i *backends.Interface) { i.Table = 0 }, "10.0.0.2/24", "fail rail-2: ens256: its configuration has no rule"},
		"answers for others": {func(i *backends.Interface) { i.ARP.Ignore = 0 }, "10.0.0.2/24", "fail rail-2: ens256: arp_ignore 0"},
		"strict": {func(i *backends.Interface) { i.ARP.RPFilter = 1 }, "10.0.0.2/24",
			"fail rail-2: ens256: arp_ignore 1, arp_announce 2, rp_filter 1"},
		"lost at next reboot": {func(i *backends.Interface) { i.ARPKept = nil }, "10.0.0.2/24", "warn rail-2: ens256: table 5002"},
	} {
		a := answers.Default(answers.PVRDMA)
		a.FromRails([]answers.Rail{{Name: "rail-1", Switch: answers.Switch{Name: "A", PortGroup: "PA"}},
			{Name: "rail-2", Switch: answers.Switch{Name: "B", PortGroup: "PB"}}})
		ip := func(s string) answers.Address { return answers.Address{Prefix: netip.MustParsePrefix(s)} }
		a.VMs = []answers.VM{{Name: "vm", Adapters: []answers.Adapter{{Rail: "rail-1", IP: ip("10.0.0.1/24")}, {Rail: "rail-2", IP: ip(c.ip)}}}}
		adapter := func(mac, pg string) backends.Adapter {
			return backends.Adapter{MAC: mac, Type: "pvrdma", PortGroup: pg}
		}
		nic := func(name, mac, cidr string, table int) backends.Interface {
			return backends.Interface{Name: name, MAC: mac, Addresses: []string{cidr}, Table: table, ARP: kept, ARPKept: &kept}
		}
		second := nic("ens256", "02:00:00:00:00:02", c.ip, 5002)
		c.edit(&second)
		inv := &backends.Inventory{
			VMs: []backends.VM{{Name: "vm", Power: "poweredOn", Adapters: []backends.Adapter{adapter("02:00:00:00:00:01", "PA"),
				adapter("02:00:00:00:00:02", "PB")}}},
			Guests: []backends.Guest{{VM: "vm", Interfaces: []backends.Interface{nic("ens224", "02:00:00:00:00:01", "10.0.0.1/24", 5001), second}}}}
		var got []string
		for _, f := range checks.Ask(t.Context(), guest.Checks(), &checks.Facts{Answers: a, Inventory: inv},
			checks.Selection{Only: []string{"GST-POLICY-036"}}) {
			got = append(got, string(f.Status)+" "+f.Evidence)
		}
		if !strings.Contains(strings.Join(got, "\n"), c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
