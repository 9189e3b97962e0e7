package plain

import (
	"io"
	"strings"

	"github.com/rdma-setup/rdma-setup/wizard/plan"
)

// Markdown prints the plan as a page for a change board: what it costs, then every change with before and after, what
// it disrupts and how it is undone.
func Markdown(w io.Writer, p *plan.Plan) error {
	out := &writer{w: w}
	out.line("# rdma-setup plan: %s\n", cell(p.Mode))
	out.line("Plan `%s`\n", p.Hash())
	if p.Empty() {
		out.line("No changes: everything is as the answers ask.")
		return out.err
	}
	out.line("**Cost:** %s\n", Cost(p))
	for _, n := range p.Notes {
		out.line("- %s", cell(n))
	}
	for _, group := range byTarget(p) {
		out.line("\n## %s\n", cell(group.target.String()))
		out.line("| change | before | after | disrupts | undo |")
		out.line("|---|---|---|---|---|")
		for _, c := range group.changes {
			undo := "rollback"
			switch {
			case c.Irreversible != "":
				undo = "none: " + c.Irreversible
			case c.State:
				undo = "nothing to undo"
			}
			out.line("| %s | %s | %s | %s | %s |", cell(plan.Title(c)), cell(c.From.String()), cell(c.To.String()), cell(disruptions(c)), cell(undo))
		}
	}
	return out.err
}

func disruptions(c plan.Change) string {
	var words []string
	for _, d := range c.Disrupts {
		words = append(words, string(d))
	}
	return dash(strings.Join(words, ", "))
}

// cell makes text harmless inside a Markdown table.
func cell(s string) string {
	return strings.NewReplacer("|", `\|`, "<", "&lt;", ">", "&gt;", "`", "'", "*", `\*`, "_", `\_`, "[", `\[`).Replace(Clean(s))
}
