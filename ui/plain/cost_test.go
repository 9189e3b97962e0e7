package plain_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks/perftest"
	"github.com/rdma-setup/rdma-setup/ui/plain"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
)

// The cost lists reboots, power-offs and how many happen at a time, other VMs, what cannot be undone, and other traffic on the
// same driver or card.
func TestCostLines(t *testing.T) {
	reboot := []string{(&plan.Bracket{Kind: backends.BracketReboot, Target: backends.HostRef("esx-2")}).ID()}
	power := func(vm string) plan.Bracket {
		return plan.Bracket{Kind: backends.BracketVMPower, Target: backends.VMRef(vm), Effect: plan.VMPowerCycle, Around: reboot}
	}
	p := &plan.Plan{
		Changes: []plan.Change{
			{Setting: backends.Setting{Target: backends.VMRef("vm-10"), Kind: backends.KindHardware}, To: backends.ValueOf(14),
				Irreversible: "a hardware version cannot be lowered"},
			{Setting: backends.Setting{Target: backends.HostRef("esx-1"), Kind: backends.KindModuleParams, Name: "nic_driver"},
				To: backends.ValueOf("max_vfs=8")},
			{Setting: backends.Setting{Target: backends.HostRef("esx-2"), Kind: backends.KindFirmware, Name: "0000:3b:00.0"},
				To: backends.ValueOf("x")},
			{Setting: backends.Setting{Target: backends.SwitchRef("D"), Kind: backends.KindSwitch}, To: backends.ValueOf("x"),
				Disrupts: []plan.Disruption{plan.UplinkFlap}},
		},
		Brackets: []plan.Bracket{
			{Kind: backends.BracketReboot, Target: backends.HostRef("esx-1")}, {Kind: backends.BracketReboot, Target: backends.HostRef("esx-1"),
				Round: 2},
			{Kind: backends.BracketReboot, Target: backends.HostRef("esx-2")}, power("vm-2"), power("vm-10"), power("billing-01"),
		},
	}
	a := answers.Default(answers.SRIOV)
	a.VMs = []answers.VM{{Name: "vm-2"}, {Name: "vm-10"}}
	nics := []backends.NIC{{Device: "vmnic0", Driver: "nic_driver", PCI: "0000:3b:00.1", Roles: []string{"vMotion"}},
		{Device: "vmnic2", Driver: "nic_driver", PCI: "0000:3b:00.0"}}
	inv := &backends.Inventory{
		VMs: []backends.VM{{Name: "vm-2"}, {Name: "vm-10"}, {Name: "billing-01"}}, Hosts: []backends.Host{{Name: "esx-1", NICs: nics},
			{Name: "esx-2", NICs: nics}},
	}
	want := []string{
		"3 host reboots on 2 hosts, at most 1 at a time; 3 VM power cycles, at most 3 VMs off at a time",
		"about 54 min if a host is out of service for 25 min and a VM off for 5 min",
		"VMs that are not in the answers and are powered off: billing-01",
		"other pNICs affected: vmnic0 (vMotion) on esx-1, esx-2",
		"uplinks go down and up: D",
		"afterwards the fabric is loaded: incast: 4 rounds with up to 3 senders at once: about 40 s, 300 GB, at most 100 Gb/s; if nothing is " +
			"congested, one more round (6 s, 75 GB); other traffic on these ports is slowed down meanwhile",
		"4 changes in total",
	}
	got := plain.CostLines(p, a, inv,
		[]perftest.LoadPlan{{Load: perftest.LoadIncast, Rounds: 4, Senders: 3, Bytes: 300e9, Time: 40 * time.Second, PeakGbps: 100,
			RaisedBytes: 75e9, RaisedSeconds: 6}}, 54*time.Minute)
	for _, line := range want {
		if !slices.Contains(got, line) {
			t.Errorf("%q is missing", line)
		}
	}
	if !slices.ContainsFunc(got, func(s string) bool {
		return strings.HasPrefix(s, "cannot be undone: ") && strings.HasSuffix(s, " on vm-10")
	}) || len(got) != len(want)+1 {
		t.Errorf("%s", strings.Join(got, "\n"))
	}
	only := &plan.Plan{Brackets: []plan.Bracket{power("vm-2")}}
	if got, want := plain.CostLines(only, a, inv, nil, 24*time.Minute)[1],
		"about 24 min if a VM is off for 5 min, changes in guests included"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := plain.CostLines(&plan.Plan{}, a, inv, nil, 0); !slices.Equal(got,
		[]string{"0 host reboots; 0 VM power cycles", "0 changes in total"}) {
		t.Errorf("nothing to do: %q", got)
	}
}
