package recipe_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
	"github.com/rdma-setup/rdma-setup/wizard/plan/recipe"
	"github.com/rdma-setup/rdma-setup/wizard/plan/rollback"
)

// vmknics returns the planned vmknics and the option that names them: "esx-01 10.1.0.11 (RDMA-DVS 9000)".
func vmknics(p *plan.Plan) string {
	var out []string
	for _, c := range p.Changes {
		var spec backends.VMKSpec
		switch {
		case c.Kind == backends.KindVMKNic && c.To.Decode(&spec) == nil:
			out = append(out, fmt.Sprintf("%s %s/%d %s %d", c.Target.Name, c.Name, spec.PrefixLen, spec.PortGroup, spec.MTU))
		case c.Kind == backends.KindOption && c.To.Known():
			out = append(out, c.Target.Name+" has "+c.To.String())
		case c.Kind == backends.KindOption:
			out = append(out, c.Target.Name+" waits")
		case c.Kind == backends.KindPortGroup && c.Target.Name == "VMK":
			out = append(out, "VMK is made")
		}
	}
	return strings.Join(out, "; ")
}

func TestVMKNicsAreCreated(t *testing.T) {
	vmk := func(device, ip string) backends.VMKernelNIC {
		return backends.VMKernelNIC{Device: device, IP: ip, PrefixLen: 24, MTU: 9000, PortGroup: "VMK", Switch: "RDMA-DVS",
			NetStack: "defaultTcpipStack"}
	}
	group := func(inv *backends.Inventory, vlan string) {
		inv.Switches = append(inv.Switches, backends.Switch{Name: "OTHER", Datacenter: inv.Hosts[0].Datacenter, MTU: 1500,
			Uplinks: []string{"u1"},
			Members: map[string]backends.Member{"esx-01": {}, "esx-02": {}, "esx-03": {}}, PortGroups: []string{"VMK"}})
		inv.PortGroups = append(inv.PortGroups, backends.PortGroup{Name: "VMK", Switch: "OTHER", VLAN: vlan, Active: []string{"u1"},
			Binding: "earlyBinding"})
	}
	for name, tt := range map[string]struct {
		change func(*answers.Answers, *backends.Inventory)
		opts   plan.Options
		want   string // planned changes, or a part of the refusal
	}{
		"from nothing": {nil, plan.Options{},
			"VMK is made; esx-01 10.1.0.11/24 VMK 9000; esx-02 10.1.0.12/24 VMK 9000; esx-03 10.1.0.13/24 VMK 9000; esx-01 waits; esx-02 waits; " +
				"esx-03 waits"},
		"a limit moves nobody": {nil, plan.Options{Limit: []string{"esx-02"}}, "VMK is made; esx-02 10.1.0.12/24 VMK 9000; esx-02 waits"},
		"one is there": {func(_ *answers.Answers, inv *backends.Inventory) {
			group(inv, "0")
			inv.Hosts[1].VMKs = append(inv.Hosts[1].VMKs, vmk("vmk4", "10.1.0.11"))
		}, plan.Options{}, "esx-01 10.1.0.12/24 VMK 1500; esx-03 10.1.0.13/24 VMK 1500; esx-01 waits; esx-02 has vmk4; esx-03 waits"},
		"a guest has the address": {func(_ *answers.Answers, inv *backends.Inventory) { inv.VMs[0].IPs = []string{"10.1.0.12"} },
			plan.Options{Limit: []string{"esx-02"}},
			"VMK is made; esx-02 10.1.0.13/24 VMK 9000; esx-02 waits"},
		"one host is named": {func(a *answers.Answers, _ *backends.Inventory) {
			a.PVRDMA.VMKNic.Names = map[string]string{"esx-01": "vmk0", "esx-02": "vmk0"}
		}, plan.Options{}, "VMK is made; esx-03 10.1.0.11/24 VMK 9000; esx-01 has vmk0; esx-02 has vmk0; esx-03 waits"},
		"a port group that is there": {func(_ *answers.Answers, inv *backends.Inventory) { group(inv, "0") },
			plan.Options{Limit: []string{"esx-01"}},
			"esx-01 10.1.0.11/24 VMK 1500; esx-01 waits"},
		"its VLAN is another": {func(_ *answers.Answers, inv *backends.Inventory) { group(inv, "7") }, plan.Options{}, "has VLAN 7, not 0"},
		"no host on it": {func(_ *answers.Answers, inv *backends.Inventory) {
			group(inv, "0")
			delete(inv.Switches[0].Members, "esx-03")
		}, plan.Options{}, "is not a member of OTHER"},
		"no address is left": {func(a *answers.Answers, _ *backends.Inventory) {
			a.PVRDMA.VMKNic.Create.Start = netip.MustParseAddr("10.1.0.253")
		}, plan.Options{}, "no address of 10.1.0.0/24 is left"},
		"a second vmknic in the network": {func(_ *answers.Answers, inv *backends.Inventory) {
			inv.Hosts[0].VMKs[0].IP = "10.1.0.1"
		}, plan.Options{}, "its vmk0 (10.1.0.1) is in 10.1.0.0/24 already"},
		"a port group of a standard switch": {func(_ *answers.Answers, inv *backends.Inventory) {
			inv.Hosts[0].VMKs[0].PortGroup = "VMK"
		}, plan.Options{}, "a network of this name exists already"},
	} {
		t.Run(name, func(t *testing.T) {
			inv := newInventory(3)
			a := newAnswers(inv)
			a.PVRDMA.VMKNic = answers.VMKNic{Create: &answers.VMKCreate{PortGroup: "VMK", Network: netip.MustParsePrefix("10.1.0.0/24"),
				Start: netip.MustParseAddr("10.1.0.11")}}
			if tt.change != nil {
				tt.change(a, inv)
			}
			p, err := recipe.Build(a, inv, tt.opts)
			if err != nil {
				if !strings.Contains(err.Error(), tt.want) {
					t.Errorf("refused: %v\nwant %s", err, tt.want)
				}
				return
			}
			if got := vmknics(p); got != tt.want {
				t.Errorf("planned %s\nwant    %s", got, tt.want)
			}
		})
	}
}

// A vmknic that a run has created stays, with its port group, while somebody uses it.
func TestCreatedVMKNicsThatStay(t *testing.T) {
	for name, c := range map[string]struct {
		change func(inv *backends.Inventory)
		want   []string
	}{
		"nobody uses them": {func(*backends.Inventory) {}, nil},
		"a later run gave another VM a PVRDMA adapter": {func(inv *backends.Inventory) {
			v := newVM(9, "esx-01")
			v.Adapters = append(v.Adapters, backends.Adapter{Type: "pvrdma", PortGroup: "OTHER-PG", Switch: "OTHER-DVS"})
			inv.VMs = append(inv.VMs, v)
		}, []string{"dvs/RDMA-DVS", "host/esx-01", "portgroup/VMK"}},
		"one carries vMotion now": {func(inv *backends.Inventory) { inv.Hosts[1].VMKs[1].Roles = []string{"vmotion"} },
			[]string{"dvs/RDMA-DVS", "host/esx-02", "portgroup/VMK"}},
	} {
		t.Run(name, func(t *testing.T) {
			inv := newInventory(2)
			a := newAnswers(inv)
			a.PVRDMA.VMKNic = answers.VMKNic{Create: &answers.VMKCreate{PortGroup: "VMK", Network: netip.MustParsePrefix("10.1.0.0/24"),
				Start: netip.MustParseAddr("10.1.0.11")}}
			back := apply(t, a, inv)
			c.change(inv)
			p, err := rollback.Build(back.priors, inv, rollback.Options{Brackets: back.brackets})
			if err != nil {
				t.Fatal(err)
			}
			got := conflicts(p)
			slices.Sort(got)
			if got = slices.Compact(got); !slices.Equal(got, c.want) {
				t.Errorf("stays %q, want %q", got, c.want)
			}
			carryOut(t, inv, p, nil)
		})
	}
}
