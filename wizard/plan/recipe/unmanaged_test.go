package recipe_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
)

// An appliance gets its adapter and its memory reservation, whether its guest answers or not; nothing is planned inside it, and an
// appliance that is off stays off (VMware, "PVRDMA Support": only the adapter is assigned).
func TestUnmanagedGuestGetsTheAdapterAlone(t *testing.T) {
	inv := newInventory(2)
	a := newAnswers(inv)
	no := false
	a.VMs[1].Guest.Manage = &no
	inv.Guests[1].Error = "connection refused"
	for _, power := range []string{"poweredOn", "poweredOff"} {
		inv.VMs[1].Power = power
		p := mustBuild(t, a, inv, plan.Options{})
		kinds := map[backends.Kind]int{}
		for _, c := range p.Changes {
			if c.Target.Name == "vm-02" {
				kinds[c.Kind]++
				if c.Target.Type == backends.TypeGuest {
					t.Errorf("%s: planned inside the guest: %s", power, c.ID())
				}
			}
		}
		if kinds[backends.KindAdapter] != 1 || kinds[backends.KindMemory] != 1 {
			t.Errorf("%s: %v", power, kinds)
		}
		i := slices.IndexFunc(p.Brackets, func(b plan.Bracket) bool { return b.Target.Name == "vm-02" })
		if i < 0 || p.Brackets[i].Leave != backends.ValueOf(power) {
			t.Errorf("%s: bracket %+v", power, p.Brackets)
		}
		if !strings.Contains(strings.Join(p.Notes, "\n"), "guest.manage: false") {
			t.Errorf("not said: %v", p.Notes)
		}
	}
}

// Each host has the vmknic that the answers name for it.
func TestVMKNicByHost(t *testing.T) {
	inv := newInventory(2)
	inv.Hosts[1].VMKs = append(inv.Hosts[1].VMKs, backends.VMKernelNIC{Device: "vmk3", IP: "10.0.1.32", PrefixLen: 24, MTU: 1500})
	a := newAnswers(inv)
	a.PVRDMA.VMKNic.Names = map[string]string{"esx-02": "vmk3"}
	got := map[string]backends.Value{}
	for _, c := range mustBuild(t, a, inv, plan.Options{}).Changes {
		if c.Kind == backends.KindOption {
			got[c.Target.Name] = c.To
		}
	}
	if got["esx-01"] != backends.ValueOf("vmk0") || got["esx-02"] != backends.ValueOf("vmk3") {
		t.Errorf("%v", got)
	}
}

// A misspelled host name is reported: the intended host gets the vmknic of all others.
func TestVMKNicOfNoHost(t *testing.T) {
	inv := newInventory(2)
	a := newAnswers(inv)
	a.PVRDMA.VMKNic.Names = map[string]string{"esx-02": "vmk0", "esx-20": "vmk3"}
	var said []string
	for _, n := range mustBuild(t, a, inv, plan.Options{}).Notes {
		if strings.Contains(n, "vmknic.names") {
			said = append(said, n)
		}
	}
	if len(said) != 1 || !strings.Contains(said[0], "vmk3 for esx-20") {
		t.Errorf("%q", said)
	}
}

// Permissions for changes in guests are set for all VMs, and can be set for one VM.
func TestGuestSettingsOfOneVM(t *testing.T) {
	inv := newInventory(2)
	a := newAnswers(inv)
	a.VMs[1].Guest.Install, a.VMs[1].Guest.Persist = new(bool), new(bool)
	p := mustBuild(t, a, inv, plan.Options{})
	for _, c := range p.Changes {
		if c.Target == backends.GuestRef("vm-02") && (c.Kind == backends.KindPackages || c.Kind == backends.KindPersist) {
			t.Errorf("planned: %s", c.ID())
		}
	}
	if !slices.ContainsFunc(p.Changes, func(c plan.Change) bool {
		return c.Target == backends.GuestRef("vm-01") && c.Kind == backends.KindPersist
	}) {
		t.Error("nothing is kept in vm-01")
	}
}
