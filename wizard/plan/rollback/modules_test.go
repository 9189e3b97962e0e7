package rollback_test

import (
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
	"github.com/rdma-setup/rdma-setup/wizard/plan/rollback"
)

// A rollback unloads modules that the run has loaded, and the driver of an adapter that was removed. Modules that were loaded
// before and no longer are, are not loaded again.
func TestModulesAreNeverLoadedAgain(t *testing.T) {
	all := []string{"ib_umad", "rdma_cm", "vmw_pvrdma"}
	for name, c := range map[string]struct {
		before backends.Value
		now    []string
		to     backends.Value // Unknown: no change
		bare   bool           // the VM has no PVRDMA adapter
		fixed  []string       // built into the kernel
	}{
		"as the run left it": {backends.ValueOf([]string{"vmw_pvrdma"}), all, backends.ValueOf([]string{"vmw_pvrdma"}), false,
			nil},
		"none before":  {backends.Absent, all, backends.ValueOf([]string{}), false, nil},
		"after a boot": {backends.ValueOf([]string{"vmw_pvrdma"}), nil, backends.Unknown("no change"), false, nil},
		"as before": {backends.ValueOf([]string{"vmw_pvrdma"}), []string{"vmw_pvrdma"}, backends.Unknown("no change"),
			false, nil},
		"the adapter has gone since": {backends.ValueOf([]string{"vmw_pvrdma"}), []string{"ib_umad", "rdma_cm"},
			backends.ValueOf([]string{}), false, nil},
		"no adapter is left, its driver is": {backends.ValueOf([]string{"vmw_pvrdma"}), all, backends.ValueOf([]string{}), true, nil},
		"built in since, by another kernel": {backends.Absent, all, backends.ValueOf([]string{"rdma_cm"}), false, []string{"rdma_cm"}},
		"all built in":                      {backends.ValueOf(all), all, backends.Unknown("no change"), true, all},
		"none before, none after boot":      {backends.Absent, nil, backends.Unknown("no change"), false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			inv := world()
			inv.Guests[0].Loaded, inv.Guests[0].BuiltIn = c.now, c.fixed
			if !c.bare {
				inv.VMs[0].Adapters = []backends.Adapter{{Type: "pvrdma"}}
			}
			s := backends.Setting{Target: backends.GuestRef("vm-01"), Kind: backends.KindModules, Name: "rdma"}
			p, err := rollback.Build([]plan.Prior{{Change: plan.Change{Setting: s, To: backends.ValueOf(all)}, Prior: c.before,
				Found: backends.ValueOf(all)}},
				inv, rollback.Options{})
			if err != nil {
				t.Fatal(err)
			}
			to := backends.Unknown("no change")
			for _, ch := range p.Changes {
				to = ch.To
			}
			if to != c.to || len(p.Changes) > 1 || len(p.Conflicts) > 0 {
				t.Errorf("to %s, want %s\n%+v", to, c.to, p)
			}
		})
	}
}

// A driver that the run unloaded and could not load again is loaded by the next boot, which does not load all of the others.
func TestModulesThatABootLoads(t *testing.T) {
	inv := world()
	inv.Guests[0].Loaded = []string{"rdma_cm", "vmw_pvrdma"}
	inv.VMs[0].Adapters = []backends.Adapter{{Type: "pvrdma"}}
	s := backends.Setting{Target: backends.GuestRef("vm-01"), Kind: backends.KindModules, Name: "rdma"}
	p, err := rollback.Build([]plan.Prior{{Change: plan.Change{Setting: s, To: backends.ValueOf([]string{"ib_umad", "rdma_cm", "vmw_pvrdma"})},
		Prior: backends.ValueOf([]string{"vmw_pvrdma"}), Found: backends.ValueOf([]string{"ib_umad", "rdma_cm"})}}, inv, rollback.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Changes) != 1 || p.Changes[0].To != backends.ValueOf([]string{"vmw_pvrdma"}) || len(p.Conflicts) > 0 {
		t.Errorf("changes %v, conflicts %v, want that rdma_cm is unloaded", p.Changes, p.Conflicts)
	}
}

// A module that the run did not leave loaded, although it was to be, was loaded by somebody else since.
func TestModulesOfSomebodyElse(t *testing.T) {
	inv := world()
	inv.Guests[0].Loaded = []string{"ib_umad", "rdma_cm"}
	s := backends.Setting{Target: backends.GuestRef("vm-01"), Kind: backends.KindModules, Name: "rdma"}
	p, err := rollback.Build([]plan.Prior{{Change: plan.Change{Setting: s, To: backends.ValueOf([]string{"ib_umad", "rdma_cm", "rdma_ucm"})},
		Prior: backends.Absent, Found: backends.ValueOf([]string{"ib_umad"})}}, inv, rollback.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Changes) > 0 || len(p.Conflicts) != 1 {
		t.Errorf("changes %v, conflicts %v, want one conflict", p.Changes, p.Conflicts)
	}
}
