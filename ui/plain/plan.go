// Package plain shows plans, events and findings as lines: for pipes, dumb terminals and logs. It draws nothing and
// moves no cursor.
package plain

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
)

// NoChanges is the text for an empty plan.
const NoChanges = "no changes: the current state matches the answers"

// Plan prints the changes, then the cost. A change that many targets share is printed once.
func Plan(w io.Writer, p *plan.Plan) error {
	out := &writer{w: w}
	list(out, p)
	if !p.Empty() {
		out.line("")
		out.line("cost: %s", Cost(p))
		alsoOff(out, p)
	}
	if !p.Empty() || len(p.Conflicts) == 0 {
		for _, n := range notes(p) {
			out.line("note: %s", n)
		}
	}
	return out.err
}

// alsoOff names the VMs that are powered off although the plan changes nothing of them, each reason once.
func alsoOff(out *writer, p *plan.Plan) {
	var who Gathered[string, string]
	for _, b := range p.Brackets {
		if b.Effect == plan.VMPowerCycle && !slices.ContainsFunc(p.Changes, func(c plan.Change) bool { return c.Target == b.Target }) {
			who.Add(b.Why, b.Target.Name)
		}
	}
	for why, names := range who.All() {
		out.line("also powered off and on: %s: %s", Names(names), backends.Clean(why))
	}
}

// notes returns the notes of a plan, and how to save the configuration of hosts that it changes.
func notes(p *plan.Plan) []string {
	if slices.ContainsFunc(p.Changes, func(c plan.Change) bool { return c.Target.Type == backends.TypeHost }) {
		return append(slices.Clone(p.Notes), plan.OwnBackup)
	}
	return p.Notes
}

// Changes prints the same as Plan without the cost, for a page that shows the cost itself. The notes follow; notes that say
// the same about several targets are combined.
func Changes(w io.Writer, p *plan.Plan) error {
	out := &writer{w: w}
	list(out, p)
	all := groupedNotes(p.Notes)
	if len(all) > 0 {
		out.line("")
		out.line("%s", Counted(len(all), "note"))
	}
	for _, n := range all {
		out.line("  note: %s", n)
	}
	return out.err
}

// groupedNotes combines "esx-1: text" and "esx-2: text", in the order of their first occurrence.
func groupedNotes(notes []string) []string {
	var who Gathered[string, string]
	for _, n := range notes {
		name, text, targeted := strings.Cut(n, ": ")
		if !targeted || strings.ContainsAny(name, " (") {
			name, text = "", n
		}
		who.Add(text, name)
	}
	var out []string
	for text, names := range who.All() {
		if names[0] != "" {
			text = Listed(names) + ": " + text
		}
		out = append(out, text)
	}
	return out
}

func list(out *writer, p *plan.Plan) {
	for _, c := range p.Conflicts {
		out.line("left alone: %s", c)
		out.line("      remedy: %s", c.Remedy)
	}
	for _, c := range p.Left {
		out.line("kept: %s", c)
	}
	if p.Empty() {
		if len(p.Conflicts) == 0 {
			out.line(NoChanges)
		}
		return
	}
	for _, s := range sections(p) {
		out.line("%s", s.heading())
		for _, e := range s.entries {
			entryLines(out, s, e)
		}
	}
}

func entryLines(out *writer, s *section, e *entry) {
	c := e.changes[0]
	out.line("  %s %s", sign(c), e.title())
	if len(e.changes) < len(s.targets) {
		out.line("      on %s", Names(e.names()))
	}
	moves := e.moves()
	for _, m := range moves {
		who := ""
		if len(moves) > 1 {
			who = Names(m.names) + ": "
		}
		out.line("      %s%s -> %s", who, m.from, m.to)
	}
	if c.Why != "" {
		out.line("      %s", c.Why)
	}
	if words := disruptions(c); words != "-" {
		out.line("      disrupts: %s", words)
	}
	if c.Irreversible != "" {
		out.line("      cannot be undone: %s", c.Irreversible)
	}
}

// Cost describes the effects of a plan in one line.
func Cost(p *plan.Plan) string {
	n := p.Ceiling()
	targets, flaps := map[backends.Ref]bool{}, map[backends.Ref]bool{}
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
	parts := []string{Counted(len(p.Changes), "change") + " on " + Counted(len(targets), "target"),
		Counted(n.HostReboots, "host reboot"), Counted(n.PowerCycles, "VM power cycle")}
	if len(flaps) > 0 {
		parts = append(parts, "uplinks flap on "+Counted(len(flaps), "target"))
	}
	if irreversible > 0 {
		parts = append(parts, Counted(irreversible, "irreversible step"))
	}
	if p.Stages > 0 {
		parts = append(parts, "some values are read during the run")
	}
	return strings.Join(parts, ", ")
}

func disruptions(c plan.Change) string {
	words := Mapped(c.Disrupts, func(d plan.Disruption) string { return string(d) })
	return cmp.Or(strings.Join(words, ", "), "-")
}

// sign returns + for something new, - for something removed, ~ for something changed, ? for a value that cannot be read yet.
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

// A writer keeps the first error, so that callers need not check after every line.
type writer struct {
	w   io.Writer
	err error
}

func (w *writer) line(format string, args ...any) {
	if w.err == nil {
		w.err = Printf(w.w, format+"\n", args...)
	}
}

// Printf is fmt.Fprintf for people: every argument is as backends.Shown has it, so that data brings no line break and no escape.
func Printf(w io.Writer, format string, args ...any) error {
	_, err := fmt.Fprintf(w, format, backends.Shown(args)...)
	return err
}
