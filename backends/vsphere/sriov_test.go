package vsphere_test

import (
	"context"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/lab"
	events "github.com/rdma-setup/rdma-setup/backends/lab/world"
	"github.com/rdma-setup/rdma-setup/backends/settertest"
	"github.com/rdma-setup/rdma-setup/backends/testclass"
	"github.com/rdma-setup/rdma-setup/backends/vsphere"
)

// connected creates a DVS with a port group over vmnic2 of the lab's hosts, and powers off vm-01.
func connected(t *testing.T, c *vsphere.Client, hosts ...string) map[backends.Kind]backends.Setter {
	t.Helper()
	set := c.Setters()
	mustSet(t, set, dvs, dvs1)
	mustSet(t, set, group, group1)
	for _, h := range hosts {
		mustSet(t, set, member(h), backends.MemberSpec{PNICs: []string{"vmnic2"}})
	}
	testclass.OK(t, c.Brackets()[backends.BracketVMPower].Open(t.Context(), backends.VMRef("vm-01"), nil))
	return set
}

func vf(pf string) backends.AdapterSpec {
	return backends.AdapterSpec{Type: "sriov", PortGroup: "RDMA-PG", Switch: "RDMA-DVS", Start: true, GuestMTU: true, PF: pf}
}

func TestVFAdapterOnLab(t *testing.T) {
	l, c := startLab(t, lab.Options{Hosts: 1, VMs: 1, Scenario: "sriov-ready"})
	set := connected(t, c, "esx-01")
	s := backends.Setting{Target: backends.VMRef("vm-01"), Kind: backends.KindAdapter, Name: "RDMA-PG"}
	fixed, anywhere := vf("0000:3b:00.0"), vf("")
	fixed.GuestMTU = false
	pvrdma := backends.AdapterSpec{Type: "pvrdma", PortGroup: "RDMA-PG", Switch: "RDMA-DVS", Protocol: "rocev2", Start: true}
	settertest.Run(t, settertest.Case{Setter: set[s.Kind], Setting: s, Removes: true, Writes: changes(l, events.VMDevices),
		Values: []backends.Value{
			backends.ValueOf(vf("0000:3b:00.0")), backends.ValueOf(fixed), backends.ValueOf(anywhere), backends.ValueOf(pvrdma),
			backends.ValueOf(vf("0000:3b:00.0")),
		}})
	err := set[s.Kind].Set(t.Context(), s, backends.ValueOf(vf("0000:3b:00.1")), nil)
	check(t, err, backends.KindPermanent, "the VM's host offers no VFs on 0000:3b:00.1")
}

// With its memory reserved a VM with a VF starts; without the reservation it does not.
func TestVFAdapterStarts(t *testing.T) {
	l, c := startLab(t, lab.Options{Hosts: 1, VMs: 1, Scenario: "sriov-ready"})
	set := connected(t, c, "esx-01")
	vm := backends.VMRef("vm-01")
	mustSet(t, set, backends.Setting{Target: vm, Kind: backends.KindAdapter, Name: "RDMA-PG"}, vf("0000:3b:00.0"))
	power := c.Brackets()[backends.BracketVMPower]
	on := backends.ValueOf("poweredOn")
	check(t, power.Close(t.Context(), vm, on, nil), backends.KindPermanent, "memory reservation")
	mustSet(t, set, backends.Setting{Target: vm, Kind: backends.KindMemory}, backends.MemorySpec{Locked: true, ReservationMB: 8192})
	testclass.OK(t, power.Close(t.Context(), vm, on, nil))
	l.World().View(func(s *events.State) {
		if v := s.VM("vm-01"); len(v.Adapters) != 2 || v.Adapters[1].VF == "" {
			t.Errorf("no VF: %+v", v.Adapters)
		}
	})
}

// A VM that somebody shuts down right after it was powered on did not power off by itself.
func TestVMThatSomebodyShutsDownAgain(t *testing.T) {
	_, c := startLab(t, lab.Options{Hosts: 1, VMs: 1})
	power := c.Brackets()[backends.BracketVMPower]
	for _, do := range []func() error{
		func() error { return power.Open(t.Context(), backends.VMRef("vm-01"), nil) },
		func() error {
			return power.Close(t.Context(), backends.VMRef("vm-01"), backends.ValueOf("poweredOn"), nil)
		},
		func() error { return power.Open(t.Context(), backends.VMRef("vm-01"), nil) }, // by another run
	} {
		testclass.OK(t, do())
	}
	check(t, c.OffAgain(t.Context(), "vm-01"), backends.KindConflict, "somebody else is working on this target: shut down by ")
}

// The message of a host when a VM with a VF does not start, and the hint.
func TestVFAdapterDoesNotStart(t *testing.T) {
	on := backends.ValueOf("poweredOn")
	t.Run("no VF left (KB 309346)", func(t *testing.T) {
		_, c := startLab(t, lab.Options{Hosts: 1, VMs: 1, Scenario: "sriov-added"})
		err := c.Brackets()[backends.BracketVMPower].Close(t.Context(), backends.VMRef("vm-01"), on, nil)
		check(t, err, backends.KindPermanent, "No SR-IOV virtual function")
		if hint := backends.HintOf(err); !strings.Contains(hint, "PCI order") {
			t.Errorf("hint %q", hint)
		}
	})
	t.Run("out of interrupt vectors (vSphere Networking)", func(t *testing.T) {
		_, c := startLab(t, lab.Options{Hosts: 1, VMs: 2, Scenario: "sriov-vectors"})
		set := connected(t, c, "esx-01")
		power := c.Brackets(vsphere.BracketOptions{Tools: true})[backends.BracketVMPower]
		for i, name := range []string{"vm-01", "vm-02"} {
			vm := backends.VMRef(name)
			testclass.OK(t, power.Open(t.Context(), vm, nil))
			mustSet(t, set, backends.Setting{Target: vm, Kind: backends.KindAdapter, Name: "RDMA-PG"}, vf("0000:3b:00.0"))
			mustSet(t, set, backends.Setting{Target: vm, Kind: backends.KindMemory}, backends.MemorySpec{Locked: true, ReservationMB: 8192})
			err := power.Close(t.Context(), vm, on, nil)
			if i == 0 && err != nil {
				t.Fatal(err)
			}
			if i == 1 {
				check(t, err, backends.KindPermanent, "it went off again by itself")
			}
		}
		// A VM that powers off again is also found if the bracket does not wait for Tools.
		testclass.OK(t, c.Brackets()[backends.BracketVMPower].Close(t.Context(), backends.VMRef("vm-02"), on, nil))
		check(t, c.OffAgain(t.Context(), "vm-02"), backends.KindPermanent, "it went off again by itself")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := c.OffAgain(ctx, "vm-01"); err != nil {
			t.Errorf("a VM that stays on: %v", err)
		}
	})
}
