package plain

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
)

// Plan prints what would be done, grouped by target, then what it costs.
func Plan(w io.Writer, p *plan.Plan) error {
	out := &writer{w: w}
	for _, c := range p.Conflicts {
		out.line("left alone: %s", Clean(c.String()))
		out.line("      remedy: %s", Clean(c.Remedy))
	}
	if p.Empty() && len(p.Conflicts) > 0 {
		return out.err
	}
	if p.Empty() {
		out.line("no changes: everything is as the answers ask")
		notes(out, p)
		return out.err
	}
	for _, group := range byTarget(p) {
		out.line("%s", Clean(group.target.String()))
		for _, c := range group.changes {
			out.line("  %s %s", sign(c), Clean(plan.Title(c)))
			out.line("      %s -> %s", Clean(c.From.String()), Clean(c.To.String()))
			if c.Why != "" {
				out.line("      %s", Clean(c.Why))
			}
			if c.Irreversible != "" {
				out.line("      cannot be undone: %s", Clean(c.Irreversible))
			}
		}
	}
	out.line("")
	out.line("cost: %s", Cost(p))
	notes(out, p)
	return out.err
}

func notes(out *writer, p *plan.Plan) {
	for _, n := range p.Notes {
		out.line("note: %s", Clean(n))
	}
}

// Cost says in one line what people notice of a plan.
func Cost(p *plan.Plan) string {
	n := p.Ceiling()
	parts := []string{count(len(p.Changes), "change")}
	targets := map[backends.Ref]bool{}
	flaps := map[backends.Ref]bool{}
	irreversible := 0
	for _, c := range p.Changes {
		targets[c.Target] = true
		if slices.Contains(c.Disrupts, plan.UplinkFlap) {
			flaps[c.Target] = true
		}
		if c.Irreversible != "" {
			irreversible++
		}
	}
	parts[0] += " on " + count(len(targets), "target")
	parts = append(parts, count(n.HostReboots, "host reboot"), count(n.PowerCycles, "VM power cycle"))
	if len(flaps) > 0 {
		parts = append(parts, "uplinks flap on "+count(len(flaps), "target"))
	}
	if irreversible > 0 {
		parts = append(parts, count(irreversible, "irreversible step"))
	}
	if p.Stages > 0 {
		parts = append(parts, "read again after "+count(p.Stages, "stage"))
	}
	return strings.Join(parts, ", ")
}

type targetGroup struct {
	target  backends.Ref
	changes []plan.Change
}

// byTarget groups changes by target in the order of first appearance.
func byTarget(p *plan.Plan) []targetGroup {
	var groups []targetGroup
	at := map[backends.Ref]int{}
	for _, c := range p.Changes {
		i, ok := at[c.Target]
		if !ok {
			i = len(groups)
			at[c.Target] = i
			groups = append(groups, targetGroup{target: c.Target})
		}
		groups[i].changes = append(groups[i].changes, c)
	}
	return groups
}

// sign is + for something new, - for something removed, ~ for something changed, ? for what cannot be read yet.
func sign(c plan.Change) string {
	switch {
	case c.To.IsAbsent():
		return "-"
	case c.From.IsAbsent():
		return "+"
	case !c.From.Known():
		return "?"
	}
	return "~"
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// A writer keeps the first error so that callers need not look after every line.
type writer struct {
	w   io.Writer
	err error
}

func (w *writer) line(format string, args ...any) {
	if w.err == nil {
		_, w.err = fmt.Fprintf(w.w, format+"\n", args...)
	}
}
