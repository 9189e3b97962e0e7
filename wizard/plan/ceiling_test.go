package plan_test

import (
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
)

// A VM that may be powered off may be restarted too: a resume can find another first VM than the plan that was accepted. Anything else
// that was not accepted exceeds the ceiling.
func TestCeilingCoversTheRestartOfAVMThatMayBePoweredOff(t *testing.T) {
	with := func(all ...backends.Setting) (p plan.Plan) {
		for _, s := range all {
			p.Changes = append(p.Changes, plan.Change{Setting: s, To: backends.ValueOf(true)})
		}
		return p
	}
	of := func(r backends.Ref, k backends.Kind) backends.Setting { return backends.Setting{Target: r, Kind: k} }
	accepted := with(of(backends.VMRef("vm-1"), backends.KindHardware), of(backends.GuestRef("vm-2"), backends.KindMemlock)).Ceiling()
	for _, test := range []struct {
		change  backends.Setting
		exceeds string
	}{
		{of(backends.GuestRef("vm-1"), backends.KindRestart), ""},
		{of(backends.GuestRef("vm-2"), backends.KindRestart), "guest/vm-2/restart"},
		{of(backends.GuestRef("vm-11"), backends.KindRestart), "guest/vm-11/restart"},
		{of(backends.GuestRef("vm-1"), backends.KindMemlock), "guest/vm-1/memlock"},
		{of(backends.GuestRef("vm-2"), backends.KindMemlock), ""},
	} {
		if got := accepted.Exceeds(with(test.change)); got != test.exceeds {
			t.Errorf("%s exceeds what was accepted with %q; want %q", test.change.ID(), got, test.exceeds)
		}
	}
}
