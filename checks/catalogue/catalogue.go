// Package catalogue combines the rows of all scopes, compares them with the baseline, evaluates them, and sorts the findings in
// the order of the chain.
package catalogue

import (
	"context"
	"slices"

	"github.com/rdma-setup/rdma-setup/backends"
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
		if all[i].Fix == "" && len(all[i].Fixes) > 0 {
			all[i].Fix = checks.Automatic
		}
		if all[i].Drift = held[all[i].ID]; all[i].Drift != nil {
			all[i].Criteria += "; other than the baseline: warns"
		}
	}
	return all
}

// Fixes returns the kinds of change that fix the findings of each row.
func Fixes() map[string][]backends.Kind {
	out := map[string][]backends.Kind{}
	for _, c := range Checks() {
		out[c.ID] = c.Fixes
	}
	return out
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

// Chain groups findings by link, in the order of the chain; nothing are the rows that apply to nothing. A link shows its worst
// problem, the root of a problem first. Without one it passes only if each of its rows was read and passed: rows that have no
// finding or wait for something make it partly read, or not read. Rows without a public source decide nothing either way.
// Findings of unknown rows are left out.
func Chain(findings []checks.Finding, nothing ...string) []checks.Link {
	rows := map[string]checks.Check{}
	by := map[checks.LinkName]*checks.Link{}
	out := make([]checks.Link, len(checks.Links()))
	for i, name := range checks.Links() {
		out[i] = checks.Link{Name: name, Count: map[checks.Status]int{}}
		by[name] = &out[i]
	}
	asked, unread := map[string]bool{}, map[checks.LinkName]bool{}
	for _, c := range Checks() {
		rows[c.ID] = c
	}
	for i := range findings {
		f := &findings[i]
		c := rows[f.ID]
		l := by[c.Link]
		if l == nil || f.Status == checks.NotApplicable {
			continue
		}
		asked[f.ID] = true
		l.Count[f.State()]++
		if weight(f) > 0 && (l.First == nil || weight(f) > weight(l.First)) {
			l.First, l.Worst = f, f.Status
		}
		unread[c.Link] = unread[c.Link] || f.Quiet && f.Status == checks.Unknown && !c.Unverified
	}
	for id, c := range rows {
		if !asked[id] && !slices.Contains(nothing, id) && !c.Unverified {
			unread[c.Link] = true
		}
	}
	if first := FirstBroken(findings); first != nil && first.Status == by[rows[first.ID].Link].Worst {
		by[rows[first.ID].Link].First = first
	}
	for i := range out {
		if l := &out[i]; l.First == nil {
			l.Worst = quietly(l.Count, unread[l.Name])
		}
	}
	return out
}

// quietly returns the state of a link without problems.
func quietly(n map[checks.Status]int, unread bool) checks.Status {
	switch {
	case n[checks.Pass] > 0 && unread:
		return checks.PartlyRead
	case n[checks.Pass] > 0:
		return checks.Pass
	case n[checks.NotRead] > 0 || unread:
		return checks.NotRead
	}
	return checks.NotApplicable
}

// weight returns the severity of a finding: 0 for quiet findings and passes.
func weight(f *checks.Finding) int {
	if f.Quiet {
		return 0
	}
	return f.Status.Weight()
}

// FirstBroken returns the finding to look at first: the one that causes most of the worst findings, so that a closed firewall on
// a host comes before its effects in guests. Without a failure it is the first warning, or the first row that should have been
// read and was not; nil if there is no problem.
func FirstBroken(findings []checks.Finding) *checks.Finding {
	if roots := Roots(findings); len(roots) > 0 {
		return roots[0].Finding
	}
	return nil
}
