package recipe_test

import (
	"slices"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
	"github.com/rdma-setup/rdma-setup/wizard/plan/rollback"
)

// No plan reads firmware: the rollback changes it from the run's value to the earlier one, in one reboot with the parameters.
func TestRollbackOfFirmwareAndParameters(t *testing.T) {
	inv := ready(newSRIOV(1))
	set := func(kind backends.Kind, name string) plan.Change {
		return plan.Change{Setting: backends.Setting{Target: backends.HostRef("esx-01"), Kind: kind, Name: name}}
	}
	was, left := backends.ValueOf(map[string]string{"SRIOV_EN": "0"}), backends.ValueOf(map[string]string{"SRIOV_EN": "1"})
	params := plan.Prior{Change: set(backends.KindModuleParams, connectX.Driver()), Prior: backends.ValueOf(map[string]string{}),
		Found: backends.ValueOf(inv.Hosts[0].System.Modules[connectX.Driver()].Value.Params)}
	tools := set(backends.KindComponent, "mft")
	tools.Irreversible = "components are not removed again"
	for name, c := range map[string]struct {
		firmware plan.Prior
		from     backends.Value // of the planned change; Absent: none is planned
	}{
		"as the run left it": {plan.Prior{Change: set(backends.KindFirmware, cardCX5), Prior: was, Found: left}, left},
		"nobody knows": {plan.Prior{Change: set(backends.KindFirmware, cardCX5), Prior: was, Uncertain: true},
			backends.Unknown("host/esx-01/host-ssh")},
		"put back in an attempt before": {plan.Prior{Change: set(backends.KindFirmware, cardCX5), Prior: was, Found: was}, backends.Absent},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := rollback.Build([]plan.Prior{{Change: tools, Prior: backends.Absent, Found: backends.ValueOf("4.28")}, c.firmware, params}, inv,
				rollback.Options{})
			if err != nil {
				t.Fatal(err)
			}
			fw := p.Change(hostChange("esx-01", backends.KindFirmware, cardCX5))
			if c.from.IsAbsent() != (fw == nil) || fw != nil && (fw.From != c.from || fw.To != was) {
				t.Errorf("firmware %+v", fw)
			}
			if n := p.Ceiling().HostReboots; n != 1 || len(p.Conflicts) != 0 || len(p.Notes) == 0 || p.Change(tools.ID()) != nil {
				t.Errorf("%d reboots, conflicts %v, notes %q", n, p.Conflicts, p.Notes)
			}
			g, err := p.Graph()
			if err != nil {
				t.Fatal(err)
			}
			if fw != nil && slices.Index(g.Order, fw.ID()) > slices.Index(g.Order, plan.OpenID("host/esx-01/host-reboot")) {
				t.Errorf("the firmware is set after the host has gone down: %q", g.Order)
			}
		})
	}
}

// A VM that an earlier attempt has left off, with no change of its own to roll back, starts once its host is back.
func TestRollbackKeepsVMsOffDuringTheReboot(t *testing.T) {
	const power, reboot = "vm/vm-01/vm-power", "host/esx-01/host-reboot"
	inv := ready(newSRIOV(1))
	inv.VM("vm-01").Power = "poweredOff"
	params := plan.Prior{
		Change: plan.Change{Setting: backends.Setting{Target: backends.HostRef("esx-01"), Kind: backends.KindModuleParams,
			Name: connectX.Driver()}},
		Prior: backends.ValueOf(map[string]string{}), Found: backends.ValueOf(inv.Hosts[0].System.Modules[connectX.Driver()].Value.Params),
	}
	for _, held := range [][]string{nil, {"vm-01"}} {
		p, err := rollback.Build([]plan.Prior{params}, inv, rollback.Options{Held: held})
		if err != nil {
			t.Fatal(err)
		}
		g, err := p.Graph()
		if err != nil {
			t.Fatal(err)
		}
		_, there := g.Waits[power]
		if there != (held != nil) || there && !slices.Contains(g.Waits[power], reboot) {
			t.Errorf("held %q: %q", held, g.Order)
		}
	}
}
