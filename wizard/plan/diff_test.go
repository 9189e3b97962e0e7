package plan_test

import (
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
)

// TestCompare checks the result of Compare for pairs of plans that differ in one thing each.
func TestCompare(t *testing.T) {
	t.Parallel()
	option := func(host, to string) plan.Change {
		return plan.Change{Setting: backends.Setting{Target: backends.HostRef(host), Kind: backends.KindOption, Name: "O"},
			To: backends.ValueOf(to), Why: "w"}
	}
	one := option("esx-1", "x")
	list := func(changes ...plan.Change) plan.Plan { return plan.Plan{Changes: changes} }
	under := func(brackets ...plan.Bracket) plan.Plan { return plan.Plan{Brackets: brackets} }
	other := func(do func(*plan.Change)) plan.Plan {
		c := one
		do(&c)
		return list(c)
	}
	reboot := plan.Bracket{Kind: backends.BracketReboot, Target: backends.HostRef("esx-1"), Effect: plan.HostReboot}
	second := reboot
	second.Round = 2
	for name, c := range map[string]struct {
		before, after plan.Plan
		want          [5]int // added, removed, changed; brackets added, removed
	}{
		"the same":          {list(one), list(one), [5]int{}},
		"another host":      {list(one), list(option("esx-2", "x")), [5]int{1, 1}},
		"another value":     {list(one), list(option("esx-1", "y")), [5]int{2: 1}},
		"from another":      {list(one), other(func(c *plan.Change) { c.From = backends.ValueOf("z") }), [5]int{2: 1}},
		"another effect":    {list(one), other(func(c *plan.Change) { c.Disrupts = []plan.Disruption{plan.HostReboot} }), [5]int{2: 1}},
		"irreversible now":  {list(one), other(func(c *plan.Change) { c.Irreversible = "i" }), [5]int{2: 1}},
		"another reason":    {list(one), other(func(c *plan.Change) { c.Why = "v" }), [5]int{}},
		"a reboot more":     {list(), under(reboot), [5]int{3: 1}},
		"a second reboot":   {under(reboot), under(reboot, second), [5]int{3: 1}},
		"no reboot anymore": {under(reboot), list(), [5]int{4: 1}},
	} {
		d := plan.Compare(&c.before, &c.after)
		if got := [5]int{len(d.Added), len(d.Removed), len(d.Changed), len(d.Brackets.Added), len(d.Brackets.Removed)}; got != c.want {
			t.Errorf("%s: %v, want %v: %+v", name, got, c.want, d)
		}
		if d.Empty() != (c.want == [5]int{}) {
			t.Errorf("%s: Empty() = %t", name, d.Empty())
		}
	}
}
