package report

import (
	"slices"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/catalogue"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
)

// FixChanges returns the changes of a plan that fix findings, with everything that has to be done before them, in the plan's
// order. left are the problems for which it has none.
func FixChanges(p *plan.Plan, found []checks.Finding) (ids []string, left []checks.Finding) {
	wanted, kinds := map[string]bool{}, catalogue.Fixes()
	for _, f := range found {
		if w := f.State(); w != checks.Fail && w != checks.Warn {
			continue
		}
		if !AutomaticFix(f) {
			left = append(left, f)
			continue
		}
		any := false
		for _, c := range p.Changes {
			if slices.Contains(kinds[f.ID], c.Kind) && sameTarget(c.Target, f.Target) {
				any = true
				withRequired(p, c.ID(), wanted)
			}
		}
		if !any {
			left = append(left, f)
		}
	}
	for _, c := range p.Changes {
		if wanted[c.ID()] {
			ids = append(ids, c.ID())
		}
	}
	return ids, left
}

// AutomaticFix reports whether this program can fix a finding by itself, after consent.
func AutomaticFix(f checks.Finding) bool {
	return f.Fix == string(checks.Automatic) && (f.State() == checks.Fail || f.State() == checks.Warn)
}

func sameTarget(c, found backends.Ref) bool {
	return c == found || found.Type == backends.TypeGuest && c.Type == backends.TypeVM && c.Name == found.Name
}

// withRequired adds a change and what has to be done before it.
func withRequired(p *plan.Plan, id string, wanted map[string]bool) {
	c := p.Change(id)
	if c == nil || wanted[id] {
		return
	}
	wanted[id] = true
	for _, before := range c.After {
		withRequired(p, before, wanted)
	}
}
