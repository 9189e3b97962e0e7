package plain

import (
	"fmt"
	"io"
	"strings"

	"github.com/rdma-setup/rdma-setup/checks"
)

// Findings prints what is not well, worst first, findings of one cause together; then how many passed.
func Findings(w io.Writer, all []checks.Finding) error {
	out := &writer{w: w}
	for _, status := range []checks.Status{checks.Fail, checks.Warn, checks.Unknown} {
		for _, g := range Grouped(all, status) {
			f := g.Findings[0]
			out.line("%-7s %s  %s", strings.ToUpper(string(status)), f.ID, Clean(g.Targets()))
			out.line("        %s", Clean(g.Evidence()))
			if f.Remedy != "" && status != checks.Unknown {
				out.line("        remedy: %s", Clean(f.Remedy))
			}
		}
	}
	n := Count(all)
	out.line("%d passed, %d warnings, %d failed, %d unknown", n[checks.Pass], n[checks.Warn], n[checks.Fail], n[checks.Unknown])
	return out.err
}

// Count counts findings by status.
func Count(all []checks.Finding) map[checks.Status]int {
	n := map[checks.Status]int{}
	for _, f := range all {
		n[f.Status]++
	}
	return n
}

// A Group is findings of one check with one status: one cause, several targets.
type Group struct {
	Findings []checks.Finding
	Of       int // how many targets the check looked at
}

// Grouped gathers the findings of one status by check, in the order of the catalogue.
func Grouped(all []checks.Finding, status checks.Status) []Group {
	var groups []Group
	at := map[string]int{}
	of := map[string]int{}
	for _, f := range all {
		of[f.ID]++
		if f.Status != status {
			continue
		}
		i, ok := at[f.ID]
		if !ok {
			i = len(groups)
			at[f.ID] = i
			groups = append(groups, Group{})
		}
		groups[i].Findings = append(groups[i].Findings, f)
	}
	for i := range groups {
		groups[i].Of = of[groups[i].Findings[0].ID]
	}
	return groups
}

// Targets names the targets, or how many of how many when they are more than three.
func (g Group) Targets() string {
	var names []string
	for _, f := range g.Findings {
		names = append(names, f.Target.Name)
	}
	if len(names) > 3 {
		return fmt.Sprintf("%d of %d: %s, ... %s", len(names), g.Of, strings.Join(names[:2], ", "), names[len(names)-1])
	}
	return strings.Join(names, ", ")
}

// Evidence is what was seen, once when all saw the same.
func (g Group) Evidence() string {
	first := g.Findings[0].Evidence
	for _, f := range g.Findings {
		if f.Evidence != first {
			return first + " (and others alike)"
		}
	}
	return first
}
