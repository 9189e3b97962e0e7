package plain

import (
	"cmp"
	"io"
	"reflect"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
)

// Diff prints how a plan differs from the plan in a file: added, removed and changed settings, and the cost of both.
func Diff(w io.Writer, file string, before, after *plan.Plan) error {
	out, d := &writer{w: w}, plan.Compare(before, after)
	switch {
	case before.Hash() == after.Hash():
		out.line("no difference: the plan is the same as that of %s", file)
		return out.err
	case before.Mode != after.Mode:
		out.line("mode: %s, in %s %s", after.Mode, file, before.Mode)
	}
	if d.Empty() {
		out.line("the changes are the same as those of %s; only their order or their reasons differ", file)
	}
	diffList(out, "added: "+Counted(len(d.Added), "change")+" that "+file+" does not have", d.Added)
	diffList(out, "removed: "+Counted(len(d.Removed), "change")+" that only "+file+" has", d.Removed)
	if len(d.Changed) > 0 {
		out.line("changed: %s", Counted(len(d.Changed), "change"))
		changed(out, d.Changed)
	}
	interruptions(out, "added", d.Brackets.Added)
	interruptions(out, "removed", d.Brackets.Removed)
	out.line("")
	out.line("cost in %s: %s", file, Cost(before))
	out.line("cost now: %s", Cost(after))
	return out.err
}

// diffList prints changes as in a plan, indented below a heading.
func diffList(out *writer, head string, changes []plan.Change) {
	if len(changes) == 0 {
		return
	}
	var b strings.Builder
	list(&writer{w: &b}, &plan.Plan{Changes: changes})
	out.line("%s", head)
	for line := range strings.Lines(b.String()) {
		out.line("  %s", strings.TrimSuffix(line, "\n"))
	}
}

// changed prints the settings that both plans change differently; a difference that many targets share is printed once.
func changed(out *writer, all []plan.Changed) {
	type key struct {
		of          backends.TargetType
		kind        backends.Kind
		name, lines string
	}
	var by Gathered[key, plan.Change]
	for _, c := range all {
		by.Add(key{c.After.Target.Type, c.After.Kind, c.After.Name, strings.Join(differences(c.Before, c.After), "\n")}, c.After)
	}
	for k, changes := range by.All() {
		e := &entry{changes}
		out.line("  %s", (&section{kind: k.of, targets: e.names()}).heading())
		out.line("    ~ %s", e.title())
		for line := range strings.SplitSeq(k.lines, "\n") {
			out.line("        %s", line)
		}
	}
}

// differences returns the lines about what two changes of one setting do differently.
func differences(before, after plan.Change) []string {
	was, now := told(before.From)+" -> "+told(before.To), told(after.From)+" -> "+told(after.To)
	if before.From == after.From {
		was, now = unlike(before.To, after.To)
	}
	lines := []string{"was: " + was, "now: " + now}
	if !slices.Equal(before.Disrupts, after.Disrupts) {
		lines = append(lines, "disrupts: was "+disruptions(before)+", now "+disruptions(after))
	}
	if before.Irreversible != after.Irreversible {
		lines = append(lines, "cannot be undone: was "+cmp.Or(before.Irreversible, "-")+", now "+cmp.Or(after.Irreversible, "-"))
	}
	return lines
}

// unlike formats two values that differ; for two objects, only the members that differ.
func unlike(a, b backends.Value) (string, string) {
	var before, after map[string]any
	if a.Decode(&before) != nil || b.Decode(&after) != nil {
		return told(a), told(b)
	}
	for key, x := range before {
		if y, both := after[key]; both && reflect.DeepEqual(x, y) {
			delete(before, key)
			delete(after, key)
		}
	}
	return told(backends.ValueOf(before)), told(backends.ValueOf(after))
}

// interruptions prints the reboots and power cycles that only one of the plans has.
func interruptions(out *writer, word string, list []plan.Bracket) {
	var by Gathered[plan.Disruption, backends.Ref]
	for _, b := range list {
		if b.Effect != "" {
			by.Add(b.Effect, b.Target)
		}
	}
	for effect, targets := range by.All() {
		out.line("%s: %s of %s", word, effect, Targets(targets))
	}
}

// LineDiff lists the lines that differ between two texts: those of the first with -, those of the second with +, in order, and "..."
// for equal lines between them. The lines are safe to show on a terminal.
func LineDiff(a, b string) string {
	x, y := strings.Split(strings.TrimRight(a, "\n"), "\n"), strings.Split(strings.TrimRight(b, "\n"), "\n")
	if len(x)*len(y) > 4<<20 {
		x, y = Mapped(x, func(l string) string { return "- " + l }), Mapped(y, func(l string) string { return "+ " + l })
		return strings.Join(backends.Shown(append(x, y...)), "\n") // too long to compare
	}
	// same[i][j] is the number of lines that x[i:] and y[j:] have in common, in order.
	same := make([][]int, len(x)+1)
	for i := range same {
		same[i] = make([]int, len(y)+1)
	}
	for i := len(x) - 1; i >= 0; i-- {
		for j := len(y) - 1; j >= 0; j-- {
			if x[i] == y[j] {
				same[i][j] = same[i+1][j+1] + 1
			} else {
				same[i][j] = max(same[i+1][j], same[i][j+1])
			}
		}
	}
	var out []string
	for i, j := 0, 0; i < len(x) || j < len(y); {
		switch {
		case i < len(x) && j < len(y) && x[i] == y[j]:
			if n := len(out); n == 0 || out[n-1] != "..." {
				out = append(out, "...")
			}
			i, j = i+1, j+1
		case j == len(y) || i < len(x) && same[i+1][j] >= same[i][j+1]:
			out = append(out, "- "+x[i])
			i++
		default:
			out = append(out, "+ "+y[j])
			j++
		}
	}
	return strings.Join(backends.Shown(out), "\n")
}
