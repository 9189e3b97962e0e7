package checks

import (
	"context"
	"fmt"
	"slices"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// A Scope says what a check looks at.
type Scope string

// The scopes, in the order of the chain.
const (
	VCenter Scope = "vcenter"
	Cluster Scope = "cluster"
	Host    Scope = "host"
	Switch  Scope = "switch"
	VM      Scope = "vm"
	Guest   Scope = "guest"
	Pair    Scope = "pair"
)

// A Fix says how a finding is fixed.
type Fix string

// The fixes.
const (
	Automatic Fix = "automatic" // rdma-setup can do it, after consent
	Reboot    Fix = "reboot"    // takes a host reboot or a VM power cycle
	Manual    Fix = "manual"    // a person has to do it
	NoFix     Fix = "none"
)

// A Check is a row of the catalogue: one read-only question about each target of its scope.
type Check struct {
	ID         string
	Scope      Scope
	Link       LinkName       // place in the chain
	Modes      []answers.Mode // empty: every mode
	Quick      bool           // belongs to the quick check
	HostCall   bool           // takes a call per host, so that the full check alone asks it, quick or not
	Preflight  bool           // must not fail before anything is written
	Criteria   string         // pass / warn / fail, as in the catalogue
	Remedy     string         // one sentence
	Source     string
	Fix        Fix
	Unverified bool // from no public source: warns, never fails
	// Run answers for every target; nil if no channel exists, which gives unknown with the reason in NoChannel.
	Run       func(f *Facts) []Answer
	NoChannel string
	// Drift holds a target against the baseline; nil if the row has nothing that is kept there.
	Drift Drift
}

// An Answer is what a check says of one target.
type Answer struct {
	Target   backends.Ref
	Status   Status
	Evidence string
	Quiet    bool
}

// A Selection narrows a run of the catalogue.
type Selection struct {
	Mode      answers.Mode
	Quick     bool
	Preflight bool
	Only      []string
	Skip      []string
}

// covers reports whether a check belongs to the selection.
func (s Selection) covers(c Check) bool {
	switch {
	case len(s.Only) > 0:
		return slices.Contains(s.Only, c.ID)
	case slices.Contains(s.Skip, c.ID):
		return false
	case s.Quick && (!c.Quick || c.HostCall), s.Preflight && !c.Preflight:
		return false
	case s.Mode != "" && len(c.Modes) > 0 && !slices.Contains(c.Modes, s.Mode):
		return false
	}
	return true
}

// Ask asks the selected rows, in their order; each gives at least one finding. A check that panics or is cut short by
// ctx gives unknown. Checks are pure and look at facts that were read before, with limits of their own
// there, so they need neither goroutines nor a limit each: all rows over 500 hosts and 1000 VMs take a fraction of a
// second.
func Ask(ctx context.Context, rows []Check, f *Facts, s Selection) []Finding {
	views := f.rails()
	var out []Finding
	for _, c := range rows {
		if !s.covers(c) {
			continue
		}
		out = append(out, c.findings(ctx, views)...)
	}
	return out
}

func (c Check) findings(ctx context.Context, views []*Facts) (out []Finding) {
	f := views[0]
	row := Finding{ID: c.ID, Scope: string(c.Scope), Remedy: c.Remedy, Source: c.Source, Fix: string(c.Fix)}
	unknown := func(why string, quiet bool) []Finding {
		row.Target, row.Status, row.Evidence, row.Quiet = backends.Ref{Type: backends.TypeVCenter, Name: f.Inventory.VCenter.URL}, Unknown, why, quiet
		return []Finding{row}
	}
	defer func() {
		if p := recover(); p != nil {
			out = unknown(fmt.Sprintf("the check itself failed: %v", p), false)
		}
	}()
	switch {
	case ctx.Err() != nil:
		return unknown("not asked: stopped", false)
	case c.Run == nil:
		return unknown(c.NoChannel, true)
	}
	said := c.ask(views)
	if len(said) == 0 {
		return unknown(noTarget, true)
	}
	for _, a := range said {
		r := row
		r.Target, r.Host, r.Status, r.Evidence, r.Quiet = a.Target, f.HostOf(a.Target), a.Status, a.Evidence, a.Quiet
		out = append(out, r)
	}
	return out
}

// ask asks the row about each target, of every rail.
func (c Check) ask(views []*Facts) []Answer {
	all := make([][]Answer, len(views))
	for i, f := range views {
		for _, a := range c.Run(f) {
			if c.Unverified {
				a.Quiet = true
				if a.Status == Fail {
					a.Status = Warn
				}
			}
			all[i] = append(all[i], c.drifted(f, a))
		}
	}
	return merged(views, all)
}

// A Drift tells how a target differs from the baseline in what its row looks at: "MTU was 9000". It is "" if nothing differs, and
// where one of both sides was not read: what is not known has not drifted.
type Drift func(f *Facts, t backends.Ref) string

// drifted adds what the baseline has otherwise to an answer, and raises one that was content.
func (c Check) drifted(f *Facts, a Answer) Answer {
	if c.Drift == nil || f.Baseline == nil {
		return a
	}
	said := c.Drift(f, a.Target)
	if said == "" {
		return a
	}
	a.Evidence += "; baseline: " + said
	if a.Status == Pass || a.Quiet {
		a.Status, a.Quiet = Warn, false
	}
	return a
}
