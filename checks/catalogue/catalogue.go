// Package catalogue combines the rows of all scopes, compares them with the baseline, evaluates them, and sorts the findings in
// the order of the chain.
package catalogue

import (
	"context"
	"slices"

	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/guest"
	"github.com/rdma-setup/rdma-setup/checks/host"
	"github.com/rdma-setup/rdma-setup/checks/network"
	"github.com/rdma-setup/rdma-setup/checks/vcenter"
	"github.com/rdma-setup/rdma-setup/checks/vm"
)

// Checks returns all checks, from vCenter to the pairs of guests.
func Checks() []checks.Check {
	all := slices.Concat(vcenter.Checks(), host.Checks(), network.Checks(), vm.Checks(), guest.Checks(), guest.PairChecks())
	held := drifts()
	for i := range all {
		if all[i].Drift = held[all[i].ID]; all[i].Drift != nil {
			all[i].Criteria += "; other than the baseline: warns"
		}
	}
	return all
}

// Run evaluates the selected checks of the catalogue.
func Run(ctx context.Context, f *checks.Facts, s checks.Selection) []checks.Finding {
	return checks.Ask(ctx, Checks(), f, s)
}

// LinkOf returns the link of a row in the chain, "" for unknown rows.
func LinkOf(id string) checks.LinkName {
	for _, c := range Checks() {
		if c.ID == id {
			return c.Link
		}
	}
	return ""
}

// Chain groups findings by link, in the order of the chain. A link passes if the rows that prove it were evaluated and passed,
// and is unknown otherwise; the root of a problem comes first. Findings of unknown rows are left out.
func Chain(findings []checks.Finding) []checks.Link {
	where := map[string]checks.LinkName{}
	for _, c := range Checks() {
		where[c.ID] = c.Link
	}
	by := map[checks.LinkName]*checks.Link{}
	out := make([]checks.Link, len(checks.Links()))
	for i, name := range checks.Links() {
		out[i] = checks.Link{Name: name, Worst: checks.Unknown, Count: map[checks.Status]int{}}
		by[name] = &out[i]
	}
	for i := range findings {
		f := &findings[i]
		if l := by[where[f.ID]]; l != nil {
			l.Count[f.Status]++
			if weight(f) > 0 && (l.First == nil || weight(f) > weight(l.First)) {
				l.First, l.Worst = f, f.Status
			}
		}
	}
	if first := FirstBroken(findings); first != nil {
		l := by[where[first.ID]]
		l.First = first
		if first.Status == checks.Unknown && l.Worst == checks.Pass {
			l.Worst = checks.Unknown
		}
	}
	for i := range out {
		if out[i].First == nil && proven(out[i].Name, findings) {
			out[i].Worst = checks.Pass
		}
	}
	return out
}

// proven reports whether a row that proves a link passed, and none of them is unknown.
func proven(link checks.LinkName, findings []checks.Finding) bool {
	passed := false
	for i := range findings {
		if f := &findings[i]; slices.Contains(proofs[link], f.ID) {
			if f.Status == checks.Unknown && !f.NotAsked() {
				return false
			}
			passed = passed || f.Status == checks.Pass
		}
	}
	return passed
}

// weight returns the severity of a finding: 0 for quiet findings and passes.
func weight(f *checks.Finding) int {
	if f.Quiet {
		return 0
	}
	return f.Status.Weight()
}

// FirstBroken returns the finding to look at first: the one that causes most of the worst findings, so that a closed firewall on
// a host comes before its effects in guests. Without a failure it is the first warning, then the first unknown that matters; nil
// if there is no problem.
func FirstBroken(findings []checks.Finding) *checks.Finding {
	if roots := Roots(findings); len(roots) > 0 {
		return roots[0].Finding
	}
	return nil
}
