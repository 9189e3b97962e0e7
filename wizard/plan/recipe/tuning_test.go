package recipe_test

import (
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
	"github.com/rdma-setup/rdma-setup/wizard/plan/recipe"
	"github.com/rdma-setup/rdma-setup/wizard/plan/rollback"
)

// tunable is an inventory whose hosts report their cores and whose VMs report their reservations.
func tunable(hosts int) *backends.Inventory {
	inv := newInventory(hosts)
	for i := range inv.Hosts {
		inv.Hosts[i].Sockets, inv.Hosts[i].Cores, inv.Hosts[i].CPUMHz = 2, 48, 2400
		for j := range inv.Hosts[i].NICs {
			inv.Hosts[i].NICs[j].NUMA = 1
		}
	}
	for i := range inv.VMs {
		inv.VMs[i].CPUReserved, inv.VMs[i].NodeAffinity = new(int64), new(string)
	}
	return inv
}

func vmChange(vm string, kind backends.Kind, name string) string {
	return backends.Setting{Target: backends.VMRef(vm), Kind: kind, Name: name}.ID()
}

// RoCE SR-IOV Setup and Performance Study on vSphere 7.x (VMware, 2022), Table 1:
// the CPU reserved, latency sensitivity high; vhpc-toolkit: vCPUs x MHz, the node of the device.
func TestTuning(t *testing.T) {
	all := answers.Tuning{Latency: "high", NUMA: "nic"}
	for name, c := range map[string]struct {
		tuning answers.Tuning
		want   map[string]string // id -> value
	}{
		"nothing asked for": {answers.Tuning{Latency: "normal", NUMA: "none"}, nil},
		"the CPU alone": {answers.Tuning{ReserveCPU: true, Latency: "normal", NUMA: "none"},
			map[string]string{vmChange("vm-01", backends.KindCPU, ""): "19200"}},
		"high brings the CPU": {all, map[string]string{vmChange("vm-01", backends.KindCPU, ""): "19200",
			vmChange("vm-01", backends.KindLatency, ""): "high"}},
		"the node is that of vmnic": {all, map[string]string{vmChange("vm-02", backends.KindExtra, "numa.nodeAffinity"): "1"}},
	} {
		t.Run(name, func(t *testing.T) {
			inv := tunable(2)
			a := newAnswers(inv)
			a.Tuning = c.tuning
			p, err := recipe.Build(a, inv, plan.Options{})
			if err != nil {
				t.Fatal(err)
			}
			for id, to := range c.want {
				if got := p.Change(id); got == nil || strings.Trim(got.To.String(), `"`) != to {
					t.Errorf("%s: %+v, want %s", id, got, to)
				}
			}
			for _, ch := range p.Changes {
				switch ch.Kind {
				case backends.KindCPU, backends.KindLatency, backends.KindExtra:
					if c.want == nil {
						t.Errorf("planned: %s", ch.ID())
					}
					if len(ch.Within) != 1 {
						t.Errorf("%s is not made while the VM is off", ch.ID())
					}
				}
			}
		})
	}
}

func TestTuningIsAppliedOnceAndRolledBack(t *testing.T) {
	inv := tunable(2)
	before := clone(t, inv)
	a := newAnswers(inv)
	a.Tuning = answers.Tuning{Latency: "high", NUMA: "nic"}
	back := apply(t, a, inv)
	again, err := recipe.Build(a, inv, plan.Options{})
	if err != nil || len(again.Changes) > 0 {
		t.Fatalf("a second plan has %d changes: %v", len(again.Changes), err)
	}
	p, err := rollback.Build(back.priors, inv, rollback.Options{Brackets: back.brackets})
	if err != nil || len(p.Conflicts) > 0 {
		t.Fatalf("%v, %+v", err, p.Conflicts)
	}
	for id, want := range map[string]backends.Value{
		vmChange("vm-01", backends.KindCPU, ""):                         backends.ValueOf(*before.VMs[0].CPUReserved),
		vmChange("vm-01", backends.KindLatency, ""):                     backends.ValueOf("normal"),
		vmChange("vm-01", backends.KindExtra, backends.NodeAffinityKey): backends.Absent,
	} {
		if c := p.Change(id); c == nil || c.To != want {
			t.Errorf("%s goes back to %+v, want %s", id, c, want)
		}
	}
}

func TestTuningThatNoHostCanGive(t *testing.T) {
	high := answers.Tuning{Latency: "high", NUMA: "none"}
	for name, c := range map[string]struct {
		tuning answers.Tuning
		change func(*backends.Inventory)
		check  string
	}{
		"more MHz than there are": {answers.Tuning{ReserveCPU: true, Latency: "normal", NUMA: "none"},
			func(inv *backends.Inventory) { inv.VMs[0].CPUs = 50 }, "VM-CPURES-012"},
		"no core left for ESXi": {high, func(inv *backends.Inventory) { inv.VMs[0].CPUs = 48 }, "VM-LATSENS-011"},
		"clock not known":       {high, func(inv *backends.Inventory) { inv.Hosts[0].CPUMHz = 0 }, "VM-CPURES-012"},
		"others have reserved it": {high, func(inv *backends.Inventory) {
			v := newVM(9, "esx-01")
			mhz := int64(100000)
			v.CPUReserved = &mhz
			inv.VMs = append(inv.VMs, v)
		}, "VM-CPURES-012"},
		"more vCPUs than a node": {answers.Tuning{Latency: "normal", NUMA: "nic"}, func(inv *backends.Inventory) { inv.VMs[0].CPUs = 25 },
			"VM-NUMA-013"},
		"node of the NIC unknown": {answers.Tuning{Latency: "normal", NUMA: "nic"},
			func(inv *backends.Inventory) { inv.Hosts[0].NIC("vmnic2").NUMA = -1 }, "HOST-PNIC-NUMA-011"},
	} {
		t.Run(name, func(t *testing.T) {
			inv := tunable(2)
			a := newAnswers(inv)
			a.Tuning = c.tuning
			c.change(inv)
			_, err := recipe.Build(a, inv, plan.Options{})
			if r, is := err.(*plan.Refused); !is || len(r.Refusals) != 1 || r.Refusals[0].Check != c.check {
				t.Errorf("%v, want %s", err, c.check)
			}
		})
	}
}
