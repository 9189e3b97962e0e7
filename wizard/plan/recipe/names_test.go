package recipe_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
	"github.com/rdma-setup/rdma-setup/wizard/plan/recipe"
)

// TestNamesAreKeptBeforeSlotsMove: from hardware version 20 on, the adapters of VMs with EFI firmware are in other PCI slots, and
// guests rename their interfaces (Broadcom KB 407595). Their names are kept by MAC before the upgrade (systemd.link(5)); the
// upgrade is refused if that is not possible.
func TestNamesAreKeptBeforeSlotsMove(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(inv *backends.Inventory)
		wish    int
		skip    []string
		kept    bool
		refused string
	}{
		"kept": {func(*backends.Inventory) {}, 21, nil, true, ""},
		"BIOS": {func(inv *backends.Inventory) { inv.VMs[0].Firmware = "bios" }, 21, nil, false, ""},
		"not across 20": {func(inv *backends.Inventory) {
			inv.VMs[0].Hardware = 17
		}, 19, nil, false, ""},
		"a name of the kernel": {func(inv *backends.Inventory) { inv.Guests[0].Interfaces[0].Name = "eth0" }, 21, nil, false,
			"eth0 is a name that the kernel may also assign"},
		"it is skipped": {func(inv *backends.Inventory) { inv.Guests[0].Interfaces[0].Name = "eth0" }, 21, []string{"VM-HWVER-SLOT-004"}, false,
			""},
		"other MACs": {func(inv *backends.Inventory) { inv.Guests[0].Interfaces[0].MAC = "00:50:56:ff:ff:ff" }, 21, nil, false,
			"which is none of its adapters'"},
		"no interface": {func(inv *backends.Inventory) { inv.Guests[0].Interfaces = nil }, 21, nil, false, "it shows none"},
		"a VLAN on it": {func(inv *backends.Inventory) {
			g := &inv.Guests[0]
			g.Interfaces = append(g.Interfaces, backends.Interface{Name: "ens192.100", MAC: g.Interfaces[0].MAC, MTU: 1500, Up: true, Virtual: true})
		}, 21, nil, true, ""},
		"members of a bond": {func(inv *backends.Inventory) {
			g := &inv.Guests[0]
			g.Interfaces = append(g.Interfaces, backends.Interface{Name: "ens224", MAC: g.Interfaces[0].MAC, MTU: 1500, Up: true})
		}, 21, nil, false, "ens192 and ens224 have one MAC"},
		"off": {func(inv *backends.Inventory) { inv.VMs[0].Power = "poweredOff"; inv.Guests = inv.Guests[1:] }, 21, nil, false,
			"while the VM is off"},
	} {
		t.Run(name, func(t *testing.T) {
			inv := newInventory(2)
			inv.VMs[0].Hardware, inv.VMs[0].Firmware = 19, "efi"
			c.change(inv)
			a := newAnswers(inv)
			a.VMs[0].Hardware = answers.Hardware(fmt.Sprint(c.wish))
			p, err := recipe.Build(a, inv, plan.Options{Skip: c.skip})
			if c.refused != "" {
				var r *plan.Refused
				if !errors.As(err, &r) || !slices.ContainsFunc(r.Refusals, func(r plan.Refusal) bool {
					return r.Check == "VM-HWVER-SLOT-004" && strings.Contains(r.Why, c.refused) && strings.Contains(r.Why, "KB 407595")
				}) {
					t.Errorf("%v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if n := len(slices.DeleteFunc(slices.Clone(p.Changes), func(c plan.Change) bool { return c.Kind != backends.KindNICName })); n > 1 {
				t.Errorf("%d names", n)
			}
			id := "guest/vm-01/nic-name/" + strings.ToLower(inv.Guests[0].Interfaces[0].MAC)
			name, upgrade := p.Change(id), p.Change("vm/vm-01/hardware")
			if upgrade == nil || (name != nil) != c.kept {
				t.Fatalf("name %v, upgrade %v", name, upgrade)
			}
			if c.kept && (name.To != backends.ValueOf("ens192") || len(name.Within) > 0 || !slices.Contains(upgrade.After, id)) {
				t.Errorf("name %+v\nupgrade %+v", name, upgrade)
			}
		})
	}
}
