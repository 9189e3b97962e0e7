package plain

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/catalogue"
	"github.com/rdma-setup/rdma-setup/wizard/report"
)

// Findings prints problems, worst first, grouped by check; then how many passed. Consequences of a cause are only counted.
func Findings(w io.Writer, all []checks.Finding, causes ...report.Cause) error {
	out := &writer{w: w}
	unfolded := all
	all, folded := Unexplained(all, causes)
	unread, repeated := unreadGuests(all)
	for _, status := range []checks.Status{checks.Fail, checks.Warn, checks.Unknown} {
		for _, g := range Grouped(all, status) {
			g.Findings = slices.DeleteFunc(g.Findings, func(f checks.Finding) bool { return repeated(f) || f.State() == checks.NotRead })
			if len(g.Findings) == 0 {
				continue
			}
			f := g.Findings[0]
			out.line("%-7s %s  %s", strings.ToUpper(string(status)), f.ID, g.Targets())
			for _, e := range g.Evidence() {
				out.line("        %s", e)
			}
			if f.Remedy != "" && status != checks.Unknown {
				out.line("        remedy: %s", f.Remedy)
			}
		}
	}
	for _, g := range Unverified(all) {
		out.line("%-7s %s  %s", "NOTE", g.Findings[0].ID, g.Targets())
		for _, e := range g.Evidence() {
			out.line("        %s", e)
		}
	}
	waiting := Grouped(slices.DeleteFunc(slices.Clone(all), func(f checks.Finding) bool { return !f.Quiet }), checks.Unknown)
	if n := len(waiting); n > fewNames {
		out.line("NOT READ %d checks; -o json names them, and says why", n)
		waiting = nil
	}
	for _, g := range waiting {
		out.line("NOT READ %s  %s: %s", g.Findings[0].ID, g.Targets(), strings.Join(g.Evidence(), "; "))
	}
	for u, guests := range unread.All() {
		each := ""
		if len(guests) > 1 {
			each = " each"
		}
		out.line("%-7s %d checks%s  %s", "UNKNOWN", u.checks, each, Names(guests))
		out.line("        %s", u.reason)
		out.line("        -o json lists each of them")
	}
	if folded > 0 {
		out.line("%s", Folded(folded))
	}
	out.line("%s", Tally(unfolded))
	return out.err
}

// An unread is what guests share: the same number of checks that could not be evaluated, all for the same reason.
type unread struct {
	reason string
	checks int
}

// unreadGuests groups the unknown findings that repeat one reason for one guest; repeated reports whether a finding is one of them.
func unreadGuests(all []checks.Finding) (out Gathered[unread, string], repeated func(checks.Finding) bool) {
	type why struct {
		guest  backends.Ref
		reason string
	}
	n := map[why]int{}
	for _, f := range all {
		if f.State() == checks.Unknown && f.Target.Type == backends.TypeGuest {
			n[why{f.Target, f.Evidence}]++
		}
	}
	guests := slices.SortedFunc(maps.Keys(n), func(a, b why) int {
		return cmp.Or(Natural(a.guest.Name, b.guest.Name), strings.Compare(a.reason, b.reason))
	})
	for _, w := range guests {
		if n[w] > 1 {
			out.Add(unread{w.reason, n[w]}, w.guest.Name)
		}
	}
	return out, func(f checks.Finding) bool { return f.State() == checks.Unknown && n[why{f.Target, f.Evidence}] > 1 }
}

// Unexplained returns the findings that follow from none of the causes, and how many do. A failure is never left out because
// something else could not be evaluated or is only a warning.
func Unexplained(all []checks.Finding, causes []report.Cause) ([]checks.Finding, int) {
	fails := map[string]bool{}
	for _, f := range all {
		if f.Status == checks.Fail {
			fails[f.ID+" "+f.Target.String()] = true
		}
	}
	follows := map[checks.Finding]bool{}
	for _, c := range causes {
		broken := c.Check == "" || slices.ContainsFunc(c.Targets, func(t backends.Ref) bool { return fails[c.Check+" "+t.String()] })
		for _, f := range c.Consequences {
			if broken || f.Status != checks.Fail {
				follows[f] = true
			}
		}
	}
	out := slices.DeleteFunc(slices.Clone(all), func(f checks.Finding) bool { return follows[f] })
	return out, len(all) - len(out)
}

// Folded returns the line about findings that are not listed because they are consequences of listed ones.
func Folded(n int) string {
	return Counted(n, "finding") + map[bool]string{true: " follows", false: " follow"}[n == 1] + " from the causes above and " +
		map[bool]string{true: "is", false: "are"}[n == 1] + " not listed here; -o html and -o json list all"
}

// Chain prints the links in order with their states, then the first problem with its remedy. Links to which nothing applies are
// left out.
func Chain(w io.Writer, links []checks.Link, first *checks.Finding) error {
	out := &writer{w: w}
	var said []string
	for _, l := range links {
		if l.Worst == checks.NotApplicable {
			continue
		}
		text := string(l.Name) + " " + LinkWord(l.Worst)
		if n := l.Count[checks.NotRead]; n > 0 && l.Worst != checks.NotRead {
			text += fmt.Sprintf(" (%d not read)", n)
		}
		said = append(said, text)
	}
	out.line("chain   %s", strings.Join(said, " > "))
	if f := first; f != nil {
		out.line("first   %s: %s %s: %s", catalogue.LinkOf(f.ID), f.ID, f.Target.Name, f.Evidence)
		if f.Remedy != "" && f.Status != checks.Unknown {
			out.line("        remedy: %s", f.Remedy)
		}
	}
	return out.err
}

// LinkWord returns the state of a link of the chain in words.
func LinkWord(s checks.Status) string {
	if s == checks.Unknown {
		return "not evaluated"
	}
	return strings.ReplaceAll(cmp.Or(string(s), "n/a"), "_", " ")
}

// Tally is "12 passed, 1 warning, 0 failed, 2 unknown, 30 not read".
func Tally(all []checks.Finding) string {
	n := checks.Count(all)
	said := fmt.Sprintf("%d passed, %s, %d failed, %d unknown", n[checks.Pass], Counted(n[checks.Warn], "warning"), n[checks.Fail],
		n[checks.Unknown])
	if n[checks.NotRead] > 0 {
		said += fmt.Sprintf(", %d not read", n[checks.NotRead])
	}
	return said
}

// A Group holds the findings of one check with one status: one cause, several targets.
type Group struct {
	Findings []checks.Finding
	Of       int // how many targets the check looked at
}

// Grouped gathers the findings of one status by check, in the order of the catalogue; the targets of each in their natural order.
func Grouped(all []checks.Finding, status checks.Status) []Group {
	var by Gathered[string, checks.Finding]
	of := map[string]int{}
	for _, f := range all {
		if of[f.ID]++; f.Status == status {
			by.Add(f.ID, f)
		}
	}
	var groups []Group
	for id, found := range by.All() {
		slices.SortStableFunc(found, func(a, b checks.Finding) int { return Natural(a.Target.Name, b.Target.Name) })
		groups = append(groups, Group{found, of[id]})
	}
	return groups
}

// Unverified gathers what rows noticed that decide nothing.
func Unverified(all []checks.Finding) []Group {
	return Grouped(slices.DeleteFunc(slices.Clone(all), func(f checks.Finding) bool { return !f.Quiet }), checks.Warn)
}

// Targets lists the targets, with the total if it is useful.
func (g Group) Targets() string {
	names := Mapped(g.Findings, func(f checks.Finding) string { return f.Target.Name })
	if len(names) > 3 {
		return fmt.Sprintf("%d of %d: %s", len(names), g.Of, FewNames(names, keepEvidence))
	}
	return Names(names)
}

// keepEvidence is how many lines of evidence a group has; the JSON contains every finding.
const keepEvidence = 5

// Evidence returns the evidence: one line if it is the same for all targets, else one for each different text with its targets.
func (g Group) Evidence() []string {
	var by Gathered[string, string]
	for _, f := range g.Findings {
		by.Add(f.Evidence, f.Target.Name)
	}
	if len(by.Keys) == 1 {
		return []string{by.Keys[0]}
	}
	var lines []string
	for e, names := range by.All() {
		if more := len(by.Keys) - len(lines); len(lines) == keepEvidence-1 && more > 1 {
			return append(lines, fmt.Sprintf("and %d more, each with different evidence", more))
		}
		lines = append(lines, Names(names)+": "+e)
	}
	return lines
}

// keepCauses is how many causes are listed at the top; the JSON contains all of them.
const keepCauses = 3

// fewNames is the largest number of names that are listed without being counted.
const fewNames = 5

// A Cause is the cause of a failure, as text.
type Cause struct {
	What   string // "esx-03: enable firewall ruleset pvrdma"
	Err    string
	Remedy string
	Follow string // its consequences, "" if there are none
}

// Causes formats the first causes of a report, and prints how many more there are.
func Causes(all []report.Cause) (out []Cause, more int) {
	for _, c := range all[:min(len(all), keepCauses)] {
		what := cmp.Or(c.Step, c.Check)
		if who := Listed(Mapped(c.Targets, func(t backends.Ref) string { return t.Name })); who != "" {
			what = who + ": " + what
		}
		out = append(out, Cause{What: cmp.Or(what, "the run ended"), Err: c.Err, Remedy: c.Remedy,
			Follow: c.Follow()})
	}
	return backends.Shown(out), max(0, len(all)-keepCauses)
}

// LeftBehind formats the state that an unfinished run has left behind, and the next step; "" for nil.
func LeftBehind(l *report.LeftBehind) (out []string, next string) {
	if l == nil {
		return nil, ""
	}
	for _, s := range []struct {
		what  string
		names []string
	}{{"VMs off", l.VMsOff}, {"hosts in maintenance mode", l.Maintenance}, {"SSH services on", l.SSH}, {"half done", l.HalfDone},
		{"not reached", l.Unreachable}} {
		if len(s.names) > 0 {
			out = append(out, s.what+": "+Listed(s.names))
		}
	}
	if l.Nothing() {
		out = append(out, "no VM off, no host in maintenance mode, no SSH service on")
	}
	return backends.Shown(out), backends.Clean(l.Continue)
}

// Listed joins names in their natural order, preceded by their number if there are more than a few.
func Listed(names []string) string {
	names = slices.Compact(slices.SortedFunc(slices.Values(names), Natural))
	if len(names) > fewNames {
		return fmt.Sprintf("%s (%d)", Names(names), len(names))
	}
	return Names(names)
}
