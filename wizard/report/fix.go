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
	wanted, fixing := map[string]bool{}, fixers(p)
	inside := map[string][]string{} // ids of changes, by the brackets in which they are made
	for _, c := range p.Changes {
		for _, id := range c.Within {
			inside[id] = append(inside[id], c.ID())
		}
	}
	for _, f := range found {
		if w := f.State(); w != checks.Fail && w != checks.Warn {
			continue
		}
		fix := fixing(f)
		for _, id := range fix {
			withRequired(p, id, inside, wanted)
		}
		if len(fix) == 0 {
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

// Label leaves the fix "automatic" to the findings that the plan for this site would change; p is nil if none can be made.
func Label(p *plan.Plan, found []checks.Finding) {
	if p == nil {
		p = &plan.Plan{}
	}
	fixing := fixers(p)
	for i, f := range found {
		if f.Fix == string(checks.Automatic) && (f.Status == checks.Fail || f.Status == checks.Warn) && len(fixing(f)) == 0 {
			found[i].Fix = string(checks.Manual)
		}
	}
}

// fixers returns the ids of the changes of a plan that fix a finding.
func fixers(p *plan.Plan) func(f checks.Finding) []string {
	kinds := map[string][]backends.Kind{}
	for _, c := range catalogue.Checks() {
		if c.Fix == checks.Automatic {
			kinds[c.ID] = c.Fixes
		}
	}
	return func(f checks.Finding) (ids []string) {
		for _, c := range p.Changes {
			if slices.Contains(kinds[f.ID], c.Kind) && sameTarget(c.Target, f.Target) {
				ids = append(ids, c.ID())
			}
		}
		return ids
	}
}

// AutomaticFix reports whether this program can fix a finding by itself, after consent.
func AutomaticFix(f checks.Finding) bool {
	return f.Fix == string(checks.Automatic) && (f.State() == checks.Fail || f.State() == checks.Warn)
}

func sameTarget(c, found backends.Ref) bool {
	return c == found || found.Type == backends.TypeGuest && c.Type == backends.TypeVM && c.Name == found.Name
}

// withRequired adds a change and what has to be done before it, also inside the power cycles and reboots that it waits for: what it
// needs to know is read after them.
func withRequired(p *plan.Plan, id string, inside map[string][]string, wanted map[string]bool) {
	c := p.Change(id)
	if c == nil || wanted[id] {
		return
	}
	wanted[id] = true
	for _, before := range c.After {
		for _, each := range append([]string{before}, inside[before]...) {
			withRequired(p, each, inside, wanted)
		}
	}
}
