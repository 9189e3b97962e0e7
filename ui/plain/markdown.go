package plain

import (
	"io"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
)

// Markdown prints the plan as a runbook for a change board: its cost, then every change with before and after, what it disrupts,
// how to undo it and how to make it manually.
func Markdown(w io.Writer, p *plan.Plan) error {
	out := &writer{w: w}
	out.line("# rdma-setup plan: %s\n", cell(p.Mode))
	out.line("Plan `%s`\n", p.Hash())
	for _, c := range p.Conflicts {
		out.line("- left alone: %s. Remedy: %s", cell(c.String()), cell(c.Remedy))
	}
	switch {
	case !p.Empty():
		out.line("**Cost:** %s\n", cell(Cost(p)))
	case len(p.Conflicts) == 0:
		out.line("No changes: the current state matches the answers.\n")
	}
	for _, n := range notes(p) {
		out.line("- %s", cell(n))
	}
	if p.Empty() {
		return out.err
	}
	step := 0
	for _, s := range sections(p) {
		out.line("\n## %s\n", cell(s.heading()))
		out.line("| # | change | who | before | after | disrupts | undo |")
		out.line("|---|---|---|---|---|---|---|")
		first := step
		for _, e := range s.entries {
			step++
			rows(out, s, e, step)
		}
		out.line("\nBy hand:\n")
		for i, e := range s.entries {
			out.line("%d. %s", first+i+1, manual(e.changes[0]))
		}
	}
	brackets(out, p)
	out.line("\n## Sign-off\n")
	out.line("| role | name | date |")
	out.line("|---|---|---|")
	for _, role := range []string{"requested", "reviewed", "approved"} {
		out.line("| %s | | |", role)
	}
	return out.err
}

func rows(out *writer, s *section, e *entry, step int) {
	c := e.changes[0]
	undo := "`rdma-setup rollback`"
	switch {
	case c.Irreversible != "":
		undo = "none: " + cell(c.Irreversible)
	case c.State:
		undo = "nothing to undo"
	}
	title := cell(e.title())
	if c.Why != "" {
		title += "<br>" + cell(c.Why)
	}
	for _, m := range e.moves() {
		who := "all"
		if len(m.names) < len(s.targets) || len(s.targets) == 1 {
			who = Names(m.names)
		}
		out.line("| %d | %s | %s | %s | %s | %s | %s |", step, title, cell(who), cell(m.from), cell(m.to), cell(disruptions(c)), undo)
	}
}

// brackets lists the hosts and VMs that are taken out of service for the changes, and brought back.
func brackets(out *writer, p *plan.Plan) {
	type way struct {
		open, end string
		of        backends.TargetType
	}
	if len(p.Brackets) == 0 {
		return
	}
	var by Gathered[way, string]
	for _, b := range p.Brackets {
		by.Add(way{plan.OpenTitle(b), plan.CloseTitle(b), b.Target.Type}, b.Target.Name)
	}
	out.line("\n## Who is interrupted\n")
	out.line("| who | before the changes | after the changes |")
	out.line("|---|---|---|")
	for k, names := range by.All() {
		s := section{kind: k.of, targets: names}
		out.line("| %s | %s | %s |", cell(s.heading()), cell(k.open), cell(k.end))
	}
}

func cell(s string) string {
	return strings.NewReplacer(`\`, `\\`, "|", `\|`, "<", "&lt;", ">", "&gt;", "&", "&amp;", "`", "'", "*", `\*`, "_", `\_`, "[", `\[`, "~",
		`\~`).Replace(s)
}
