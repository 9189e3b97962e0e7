package checks

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// A Scope is what a check examines.
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

// A Fix is how a problem can be fixed.
type Fix string

// The fixes.
const (
	Automatic Fix = "automatic" // rdma-setup can do it after consent
	Reboot    Fix = "reboot"    // requires a host reboot or a VM power cycle
	Manual    Fix = "manual"    // must be done manually
	NoFix     Fix = "none"
)

// A Check is a row of the catalogue: one read-only question about each target of its scope.
type Check struct {
	ID         string
	Scope      Scope
	Link       LinkName       // place in the chain
	Modes      []answers.Mode // the site uses one of these; empty: it applies to every site
	Except     []answers.Mode // nor does it use one of these
	Quick      bool           // belongs to the quick check
	HostCall   bool           // needs a call per host, so only a full check evaluates it
	Preflight  bool           // must not fail before a run
	Criteria   string         // criteria for pass / warn / fail, as shown in the catalogue
	Remedy     string         // one sentence
	Source     string
	Fix        Fix             // "": Automatic if Fixes names a kind
	Fixes      []backends.Kind // the kinds of change that fix it, on its target or, for guests, on their VM
	Unverified bool            // without a public source: warns, never fails
	// Run returns the answers for all targets; nil if the fact cannot be read, which is unknown with the reason in NoChannel.
	Run       func(f *Facts) []Answer
	NoChannel string
	// Drift compares a target with the baseline; nil if the row has nothing to compare.
	Drift Drift
}

// An Answer is the result of a check for one target.
type Answer struct {
	Target   backends.Ref
	Status   Status
	Evidence string
	Remedy   string // in place of the check's; "": the check's
	Quiet    bool
}

// A Selection limits a run of the catalogue.
type Selection struct {
	Uses      []answers.Mode // what the site uses (Answers.Uses); empty: everything
	Quick     bool
	Preflight bool
	Only      []string
	Skip      []string
}

// covers reports whether a check belongs to the selection.
func (s Selection) covers(c Check) bool {
	if len(s.Only) > 0 {
		return slices.Contains(s.Only, c.ID)
	}
	return !slices.Contains(s.Skip, c.ID) && (!s.Quick || c.Quick && !c.HostCall) && (!s.Preflight || c.Preflight)
}

// applies reports whether a row is about something that a site uses.
func (c Check) applies(uses []answers.Mode) bool {
	within := func(modes []answers.Mode) bool {
		return slices.ContainsFunc(modes, func(m answers.Mode) bool { return slices.Contains(uses, m) })
	}
	return len(uses) == 0 || (len(c.Modes) == 0 || within(c.Modes)) && !within(c.Except)
}

// Ask evaluates the selected rows, in order; each returns at least one finding. A row that applies to nothing returns one with the
// status NotApplicable, whether the selection covers it or not. A check that panics or is interrupted by ctx is
// unknown. Checks are pure functions of facts that were read before, with time limits there, so they need neither goroutines nor
// limits of their own: all rows for 500 hosts and 1000 VMs take a fraction of a second.
func Ask(ctx context.Context, rows []Check, f *Facts, s Selection) []Finding {
	views := f.rails()
	var out []Finding
	for _, c := range rows {
		switch {
		case len(s.Only) == 0 && !c.applies(s.Uses):
			out = append(out, Finding{ID: c.ID, Scope: string(c.Scope), Status: NotApplicable})
		case s.covers(c):
			out = append(out, c.findings(ctx, views)...)
		}
	}
	return out
}

func (c Check) findings(ctx context.Context, views []*Facts) (out []Finding) {
	f := views[0]
	row := Finding{ID: c.ID, Scope: string(c.Scope), Remedy: c.Remedy, Source: c.Source, Fix: string(c.Fix)}
	unknown := func(why string, quiet bool) []Finding {
		row.Target, row.Status, row.Evidence, row.Quiet = backends.Ref{Type: backends.TypeVCenter, Name: f.Inventory.VCenter.URL}, Unknown, why,
			quiet
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
		return []Finding{{ID: c.ID, Scope: string(c.Scope), Status: NotApplicable}}
	}
	for _, a := range said {
		r := row
		r.Target, r.Host, r.Status, r.Evidence, r.Quiet = a.Target, f.HostOf(a.Target), a.Status, a.Evidence, a.Quiet
		r.Remedy = cmp.Or(a.Remedy, c.Remedy)
		out = append(out, r)
	}
	return out
}

// ask evaluates the row for each target of every rail.
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

// A Drift describes how a target differs from the baseline in what its row examines: "MTU was 9000". It is "" if nothing differs
// or one of the values was not read: unknown values do not count as drift.
type Drift func(f *Facts, t backends.Ref) string

// drifted adds the drift to an answer, and raises a pass to a warning.
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
