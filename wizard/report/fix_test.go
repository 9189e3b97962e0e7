package report_test

import (
	"slices"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/catalogue"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
	"github.com/rdma-setup/rdma-setup/wizard/report"
)

// everything is a plan with a change of every kind on every sort of target, and one far from all.
func everything() *plan.Plan {
	p := &plan.Plan{}
	for _, t := range targets() {
		for _, k := range []backends.Kind{
			backends.KindSwitch, backends.KindPortGroup, backends.KindMember, backends.KindOption, backends.KindFirewall, backends.KindPower,
			backends.KindComponent,
			backends.KindModuleParams, backends.KindFirmware, backends.KindVFs, backends.KindPassthrough, backends.KindHardware, backends.KindMemory,
			backends.KindAdapter,
			backends.KindExtra, backends.KindDevice, backends.KindPackages, backends.KindOFED, backends.KindModules, backends.KindPersist,
			backends.KindAddress, backends.KindMemlock, backends.KindPort, backends.KindImage, backends.KindTrafficClass, backends.KindPortQoS,
			backends.KindEnvironment,
			backends.KindGPUPersist, backends.KindPause, backends.KindLatency, backends.KindCPU,
		} {
			p.Changes = append(p.Changes, plan.Change{Setting: backends.Setting{Target: t, Kind: k}})
		}
	}
	p.Changes = append(p.Changes, plan.Change{Setting: backends.Setting{Target: backends.HostRef("far"), Kind: backends.KindFirewall}})
	return p
}

func targets() []backends.Ref {
	return []backends.Ref{backends.HostRef("it"), backends.SwitchRef("it"), backends.PortGroupRef("it"), backends.VMRef("it"),
		backends.GuestRef("it")}
}

// A row is automatic if and only if it names kinds of change, each of which fixes it on its target alone.
func TestEveryAutomaticFixHasAStep(t *testing.T) {
	p := everything()
	for _, c := range catalogue.Checks() {
		var ids []string
		for _, target := range targets() {
			found := []checks.Finding{{ID: c.ID, Target: target, Status: checks.Fail, Fix: string(c.Fix)}}
			got, left := report.FixChanges(p, found)
			if len(got) == 0 != (len(left) == 1) {
				t.Errorf("%s: %d changes, %d findings left", c.ID, len(got), len(left))
			}
			ids = append(ids, got...)
		}
		if (c.Fix == checks.Automatic) != (len(ids) > 0) || c.Fix == checks.Automatic && len(c.Fixes) == 0 || c.Fix == "" {
			t.Errorf("%s is fixed by %v, though its fix is %q", c.ID, ids, c.Fix)
		}
		if slices.Contains(ids, "host/far/firewall") {
			t.Errorf("%s touches another host", c.ID)
		}
	}
}

func TestPrerequisitesOfAFixAreIncluded(t *testing.T) {
	change := func(k backends.Kind, after ...string) plan.Change {
		return plan.Change{Setting: backends.Setting{Target: backends.GuestRef("a"), Kind: k}, After: after}
	}
	p := &plan.Plan{Changes: []plan.Change{change(backends.KindPackages), change(backends.KindModules, "guest/a/packages"),
		change(backends.KindMemlock), change(backends.KindPort, "guest/a/modules")}}
	found := []checks.Finding{
		{ID: "GST-PORT-010", Target: backends.GuestRef("a"), Status: checks.Fail, Fix: "automatic"},
		{ID: "GST-MEMLOCK-020", Target: backends.GuestRef("a"), Status: checks.Unknown, Fix: "automatic"}, // the state is unknown
		{ID: "GST-MEMLOCK-020", Target: backends.GuestRef("a"), Status: checks.Warn, Fix: "automatic", Quiet: true},
		{ID: "GST-MEMLOCK-020", Target: backends.GuestRef("b"), Status: checks.Fail, Fix: "automatic"},
	}
	ids, left := report.FixChanges(p, found)
	if want := []string{"guest/a/packages", "guest/a/modules", "guest/a/port"}; !slices.Equal(ids, want) || len(left) != 1 ||
		left[0].Target.Name != "b" {
		t.Errorf("%v, left %v", ids, left)
	}
	// What waits for the power cycle of a VM needs what is changed while the VM is off. Only what the plan changes is automatic.
	device := plan.Change{Setting: backends.Setting{Target: backends.VMRef("a"), Kind: backends.KindDevice}, Within: []string{"vm/a/power"}}
	p = &plan.Plan{Changes: []plan.Change{device, change(backends.KindPackages, "vm/a/power"), change(backends.KindMemlock)}}
	found = []checks.Finding{{ID: "GST-PERFTEST-023", Target: backends.GuestRef("a"), Status: checks.Fail, Fix: "automatic"},
		{ID: "GST-PORT-010", Target: backends.GuestRef("a"), Status: checks.Fail, Fix: "automatic"}}
	if ids, _ := report.FixChanges(p, found); !slices.Equal(ids, []string{"vm/a/device", "guest/a/packages"}) {
		t.Error(ids)
	}
	if report.Label(p, found); found[0].Fix != "automatic" || found[1].Fix != "manual" {
		t.Errorf("%+v", found)
	}
	if report.Label(nil, found); found[0].Fix != "manual" {
		t.Errorf("automatic without a plan: %+v", found[0])
	}
}
