package recipe_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
	"github.com/rdma-setup/rdma-setup/wizard/plan/current"
	"github.com/rdma-setup/rdma-setup/wizard/plan/recipe"
	"github.com/rdma-setup/rdma-setup/wizard/plan/rollback"
)

func mustBuild(t *testing.T, a *answers.Answers, inv *backends.Inventory, opts plan.Options) *plan.Plan {
	t.Helper()
	p, err := recipe.Build(a, inv, opts)
	if err != nil {
		if r, ok := err.(*plan.Refused); ok {
			for _, x := range r.Refusals {
				t.Logf("%s [%s] %s (%s)", x.Target, x.Check, x.Why, x.Remedy)
			}
		}
		t.Fatal(err)
	}
	return p
}

// past is the content of a journal.
type past struct {
	priors   []plan.Prior
	brackets map[string]backends.Value
}

// read returns a value as a Setter would.
func read(t *testing.T, inv *backends.Inventory, c plan.Change) backends.Value {
	t.Helper()
	g := inv.Guest(c.Target.Name)
	var list, from []string
	var spec backends.PackageSpec
	switch {
	case c.Kind == backends.KindModules && c.To.Decode(&list) == nil:
		if c.From.Decode(&from) == nil && len(from) > len(list) {
			list = from
		}
		have := []string{}
		for _, m := range list {
			if slices.Contains(g.Loaded, m) {
				have = append(have, m)
			}
		}
		return backends.ValueOf(have)
	case c.Kind == backends.KindPackages && c.To.Decode(&spec) == nil:
		have := []string{}
		for p := range g.Packages {
			have = append(have, p)
		}
		slices.Sort(have)
		return backends.ValueOf(backends.PackageSpec{Installed: have})
	}
	return current.Value(inv, c.Setting)
}

// carryOut applies the changes of a plan in the order of its graph and adds them to the past. Values that are not known yet are
// left for the next stage, as the engine does.
func carryOut(t *testing.T, inv *backends.Inventory, p *plan.Plan, back *past) {
	t.Helper()
	g, err := p.Graph()
	if err != nil {
		t.Fatal(err)
	}
	brackets := map[string]plan.Bracket{}
	for _, b := range p.Brackets {
		brackets[b.ID()] = b
	}
	for _, node := range g.Order {
		if b, is := brackets[strings.TrimPrefix(node, "open ")]; is {
			v := inv.VM(b.Target.Name)
			if strings.HasPrefix(node, "open ") {
				if back != nil && back.brackets[b.ID()].IsAbsent() {
					back.brackets[b.ID()] = backends.ValueOf(v.Power)
				}
				v.Power = "poweredOff"
				continue
			}
			v.Power = decode[string](t, b.Leave)
			if v.Power == "poweredOn" {
				boot(inv, v)
			}
			continue
		}
		c := p.Change(node)
		if !c.From.Known() || !c.To.Known() {
			continue
		}
		prior := read(t, inv, *c)
		if prior != c.From && !c.State {
			t.Errorf("%s: planned from %s, found %s", node, c.From, prior)
		}
		setWorld(t, inv, c.Setting, c.To)
		if back != nil {
			back.add(plan.Prior{Change: *c, Prior: prior, Found: read(t, inv, *c)})
		}
	}
}

func (p *past) add(n plan.Prior) {
	for i := range p.priors {
		if p.priors[i].Change.ID() == n.Change.ID() {
			p.priors[i].Found, p.priors[i].Change = n.Found, n.Change
			return
		}
	}
	p.priors = append(p.priors, n)
}

// apply plans and applies until no change is left.
func apply(t *testing.T, a *answers.Answers, inv *backends.Inventory) *past {
	t.Helper()
	back := &past{brackets: map[string]backends.Value{}}
	for range 4 {
		p := mustBuild(t, a, inv, plan.Options{})
		if p.Empty() && len(p.Brackets) == 0 {
			return back
		}
		carryOut(t, inv, p, back)
	}
	p := mustBuild(t, a, inv, plan.Options{})
	for _, c := range p.Changes {
		t.Errorf("still planned: %s from %s to %s", c.ID(), c.From, c.To)
	}
	return back
}

// takeBack rolls back a past.
func takeBack(t *testing.T, inv *backends.Inventory, back *past) *plan.Plan {
	t.Helper()
	p, err := rollback.Build(back.priors, inv, rollback.Options{Mode: "pvrdma", Brackets: back.brackets})
	if err != nil {
		t.Fatal(err)
	}
	carryOut(t, inv, p, nil)
	return p
}

// equateEmpty lets a nil list equal an empty one.
var equateEmpty = cmpopts.EquateEmpty()
