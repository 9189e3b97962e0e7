package recipe_test

import (
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
)

func TestTitles(t *testing.T) {
	inv := newInventory(1)
	a := newAnswers(inv)
	p := mustBuild(t, a, inv, plan.Options{})
	for id, want := range map[string]string{
		"dvs/RDMA-DVS/switch":                 "create distributed switch RDMA-DVS",
		"portgroup/RDMA-PG/portgroup":         "create port group RDMA-PG",
		"host/esx-01/member/RDMA-DVS":         "join distributed switch RDMA-DVS with vmnic2",
		"host/esx-01/option/Net.PVRDMAVmknic": "set option Net.PVRDMAVmknic to vmk0",
		"host/esx-01/firewall/pvrdma":         "enable firewall ruleset pvrdma",
		"vm/vm-01/memory":                     "reserve all memory",
		"vm/vm-01/adapter/RDMA-PG":            "add PVRDMA adapter on RDMA-PG",
		"guest/vm-01/packages/rdma": "install packages ibverbs-providers, ibverbs-utils, infiniband-diags, perftest, rdma-core, " +
			"rdmacm-utils",
		"guest/vm-01/modules/rdma":    "load RDMA modules",
		"guest/vm-01/persist":         "load RDMA modules at every boot",
		"guest/vm-01/address/RDMA-PG": "set address 192.168.50.10/24, MTU 9000 on RDMA-PG",
		"guest/vm-01/memlock":         "set locked-memory limit to unlimited",
		"guest/vm-01/port/RDMA-PG":    "bring RDMA port up on RDMA-PG",
	} {
		if c := p.Change(id); c == nil || plan.Title(*c) != want {
			t.Errorf("%s: %+v", id, c)
		}
	}
	for want, c := range map[string]plan.Change{
		"disable firewall ruleset pvrdma": {Setting: backends.Setting{Kind: backends.KindFirewall, Name: "pvrdma"},
			To: backends.ValueOf(false)},
		"clear option X": {Setting: backends.Setting{Kind: backends.KindOption, Name: "X"}, To: backends.ValueOf("")},
		"leave distributed switch D": {Setting: backends.Setting{Kind: backends.KindMember, Name: "D"},
			From: backends.ValueOf(backends.MemberSpec{})},
		"remove distributed switch D": {Setting: backends.Setting{Target: backends.SwitchRef("D"), Kind: backends.KindSwitch},
			From: backends.ValueOf(1)},
		"remove PVRDMA adapter from P": {Setting: backends.Setting{Kind: backends.KindAdapter, Name: "P"},
			From: backends.ValueOf(backends.AdapterSpec{Type: "pvrdma"})},
		"reserve 0 MB of memory": {Setting: backends.Setting{Kind: backends.KindMemory},
			To: backends.ValueOf(backends.MemorySpec{})},
		"remove packages b": {Setting: backends.Setting{Kind: backends.KindPackages},
			From: backends.ValueOf(backends.PackageSpec{Installed: []string{"a", "b"}}),
			To:   backends.ValueOf(backends.PackageSpec{Installed: []string{"a"}})},
		"install RDMA packages":                    {Setting: backends.Setting{Kind: backends.KindPackages}, To: backends.Unknown("x")},
		"remove the address of the interface on P": {Setting: backends.Setting{Kind: backends.KindAddress, Name: "P"}, From: backends.ValueOf(1)},
		"upgrade hardware version to 17":           {Setting: backends.Setting{Kind: backends.KindHardware}, To: backends.ValueOf(17)},
	} {
		if got := plan.Title(c); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	b := plan.Bracket{Kind: backends.BracketVMPower, Leave: backends.ValueOf("poweredOn")}
	if plan.OpenTitle(b) != "shut down" || plan.CloseTitle(b) != "power on" {
		t.Errorf("%q, %q", plan.OpenTitle(b), plan.CloseTitle(b))
	}
}
