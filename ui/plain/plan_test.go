package plain_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/testclass"
	"github.com/rdma-setup/rdma-setup/ui/plain"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
)

func setting(target backends.Ref, kind backends.Kind, name string) backends.Setting {
	return backends.Setting{Target: target, Kind: kind, Name: name}
}

// pvrdma returns a plan for a number of hosts, with one VM on each.
func pvrdma(hosts int) *plan.Plan {
	p := &plan.Plan{Mode: "pvrdma", Notes: []string{"PVRDMA keeps vMotion and snapshots",
		"memory of every VM is fully reserved: failover capacity shrinks"}}
	p.Changes = append(p.Changes,
		plan.Change{Setting: setting(backends.SwitchRef("RDMA-DVS"), backends.KindSwitch, ""), Why: "PVRDMA wants a switch of its own",
			To: backends.ValueOf(backends.SwitchSpec{Datacenter: "DC", Version: "8.0.0", Uplinks: 1, MTU: 9000, Discovery: "lldp listen"})},
		plan.Change{Setting: setting(backends.PortGroupRef("RDMA-PG"), backends.KindPortGroup, ""),
			To: backends.ValueOf(backends.PortGroupSpec{Switch: "RDMA-DVS", Active: []string{"Uplink 1"}, Binding: "earlyBinding"})})
	for i := 1; i <= hosts; i++ {
		host, vm, guest := backends.HostRef(fmt.Sprintf("esx-%03d", i)), backends.VMRef(fmt.Sprintf("vm-%03d", i)),
			backends.GuestRef(fmt.Sprintf("vm-%03d", i))
		nic, knic := "vmnic2", ""
		if i == 3 {
			nic, knic = "vmnic4", "vmk1"
		}
		p.Changes = append(p.Changes,
			plan.Change{Setting: setting(host, backends.KindMember, "RDMA-DVS"), To: backends.ValueOf(backends.MemberSpec{PNICs: []string{nic}}),
				Why: "the RDMA pNIC carries the switch"},
			plan.Change{Setting: setting(host, backends.KindOption, "Net.PVRDMAVmknic"), From: backends.ValueOf(knic), To: backends.ValueOf("vmk0"),
				Why: "PVRDMA opens its connections through this vmknic"},
			plan.Change{Setting: setting(host, backends.KindFirewall, "pvrdma"), From: backends.ValueOf(false), To: backends.ValueOf(true),
				Why: "hosts talk over TCP 28250"},
			plan.Change{Setting: setting(vm, backends.KindAdapter, "RDMA-PG"),
				To: backends.ValueOf(backends.AdapterSpec{Type: "pvrdma", PortGroup: "RDMA-PG", Switch: "RDMA-DVS", Protocol: "rocev2",
					Start: true}),
				Disrupts: []plan.Disruption{plan.VMPowerCycle}},
			plan.Change{Setting: setting(guest, backends.KindAddress, "RDMA-PG"), From: backends.Unknown(vm.String() + "/adapter/RDMA-PG"),
				To: backends.ValueOf(backends.AddressSpec{CIDR: fmt.Sprintf("192.168.50.%d/24", 10+i), MTU: 9000})})
		if i == 2 {
			p.Changes = append(p.Changes, plan.Change{Setting: setting(vm, backends.KindHardware, ""), From: backends.ValueOf(11),
				To:  backends.ValueOf(17),
				Why: "PVRDMA needs hardware version 13", Irreversible: "a hardware version cannot be lowered",
				Disrupts: []plan.Disruption{plan.VMPowerCycle}})
		}
		p.Brackets = append(p.Brackets, plan.Bracket{Kind: backends.BracketVMPower, Target: vm, Leave: backends.ValueOf("poweredOn"),
			Effect: plan.VMPowerCycle})
	}
	return p
}

// hostile returns a plan whose names contain control characters and the markup of tables.
func hostile() *plan.Plan {
	name := "esx\x1b[31m|\u202ered</td>`*_[x](y)\r\nnext"
	return &plan.Plan{Mode: "pvrdma", Changes: []plan.Change{{Setting: setting(backends.HostRef(name), backends.KindOption, "Net.X`;rm"),
		From: backends.ValueOf("a\x07b"), To: backends.ValueOf("c'd $(e)"), Why: "why\x9b2J not"}}, Notes: []string{"note\u200f of\tmany\nlines"}}
}

func TestPlanTexts(t *testing.T) {
	conflict := &plan.Plan{Mode: "rollback",
		Conflicts: []plan.Refusal{{Target: backends.HostRef("esx-01"), Why: "Net.PVRDMAVmknic is vmk7 now, the run left vmk0",
			Remedy: "Set it by hand."}}}
	for name, p := range map[string]*plan.Plan{"four": pvrdma(4), "fifty-hosts": pvrdma(50), "one": pvrdma(1), "hostile": hostile(),
		"conflict": conflict,
		"nothing":  {Mode: "pvrdma", Notes: []string{"PVRDMA keeps vMotion and snapshots"}}} {
		t.Run(name, func(t *testing.T) {
			for _, form := range []struct {
				ext    string
				render func(*bytes.Buffer) error
			}{
				{"txt", func(b *bytes.Buffer) error { return plain.Plan(b, p) }},
				{"md", func(b *bytes.Buffer) error { return plain.Markdown(b, p) }},
			} {
				var b bytes.Buffer
				testclass.OK(t, form.render(&b))
				testclass.Golden(t, "testdata/"+name+"."+form.ext, b.String())
			}
		})
	}
}

func TestAHundredHostsStayReadable(t *testing.T) {
	var four, hundred bytes.Buffer
	testclass.OK(t, plain.Plan(&four, pvrdma(4)))
	testclass.OK(t, plain.Plan(&hundred, pvrdma(100)))
	const addresses = 96 // one line for each VM that has an address of its own
	if few, many := bytes.Count(four.Bytes(), []byte("\n")), bytes.Count(hundred.Bytes(), []byte("\n")); many > few+addresses+2 {
		t.Errorf("%d lines for 4 hosts, %d for 100", few, many)
	}
}

func TestNames(t *testing.T) {
	for want, names := range map[string][]string{
		"":                                   nil,
		"a":                                  {"a"},
		"esx-01, esx-02, esx-03":             {"esx-01", "esx-02", "esx-03"},
		"esx-08 to esx-11":                   {"esx-08", "esx-09", "esx-10", "esx-11"},
		"esx-01 to esx-04, esx-06":           {"esx-01", "esx-02", "esx-03", "esx-04", "esx-06"},
		"esx-1.lab to esx-4.lab":             {"esx-1.lab", "esx-2.lab", "esx-3.lab", "esx-4.lab"},
		"esx-1.a, esx-2.b, esx-3.c, esx-4.d": {"esx-1.a", "esx-2.b", "esx-3.c", "esx-4.d"},
		"9, 10, 11, 12":                      {"9", "10", "11", "12"},
		"r1-h4, r2-h1, r2-h2, r2-h3":         {"r1-h4", "r2-h1", "r2-h2", "r2-h3"},
		"a?[0m":                              {"a\x1b[0m"},
	} {
		if got := plain.Names(names); got != want {
			t.Errorf("%v: %q, want %q", names, got, want)
		}
	}
}

// TestPlanSortsTargetsNaturally: the changes of hosts are in the order of the plan, their names in natural order.
func TestPlanSortsTargetsNaturally(t *testing.T) {
	t.Parallel()
	var p plan.Plan
	for _, host := range []string{"esx-10", "esx-9", "esx-1", "esx-2"} {
		p.Changes = append(p.Changes, plan.Change{
			Setting: backends.Setting{Target: backends.HostRef(host), Kind: backends.KindOption, Name: "O"},
			From:    backends.ValueOf("x"), To: backends.ValueOf("y"), Why: "w",
		})
	}
	var b strings.Builder
	if err := plain.Plan(&b, &p); err != nil || !strings.HasPrefix(b.String(), "4 hosts: esx-1, esx-2, esx-9, esx-10\n") {
		t.Errorf("%v\n%s", err, b.String())
	}
}
