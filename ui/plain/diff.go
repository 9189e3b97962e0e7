package plain

import (
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
	file = backends.Clean(file)
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
	diffList(out, "added: "+count(len(d.Added), "change")+" that "+file+" does not have", d.Added)
	diffList(out, "removed: "+count(len(d.Removed), "change")+" that only "+file+" has", d.Removed)
	if len(d.Changed) > 0 {
		out.line("changed: %s", count(len(d.Changed), "change"))
		changed(out, d.Changed)
	}
	for _, b := range []struct {
		word string
		list []plan.Bracket
	}{{"added", d.Brackets.Added}, {"removed", d.Brackets.Removed}} {
		interruptions(out, b.word, b.list)
	}
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
	var order []key
	entries := map[key]*entry{}
	for _, c := range all {
		k := key{c.After.Target.Type, c.After.Kind, c.After.Name, strings.Join(differences(c.Before, c.After), "\n")}
		if entries[k] == nil {
			order = append(order, k)
			entries[k] = &entry{}
		}
		entries[k].changes = append(entries[k].changes, c.After)
	}
	for _, k := range order {
		e := entries[k]
		out.line("  %s", (&section{kind: k.of, targets: e.names()}).heading())
		out.line("    ~ %s", backends.Clean(e.title()))
		for line := range strings.SplitSeq(k.lines, "\n") {
			out.line("        %s", backends.Clean(line))
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
		lines = append(lines, "cannot be undone: was "+dash(before.Irreversible)+", now "+dash(after.Irreversible))
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
	var order []plan.Disruption
	targets := map[plan.Disruption][]backends.Ref{}
	for _, b := range list {
		if b.Effect == "" {
			continue
		}
		if targets[b.Effect] == nil {
			order = append(order, b.Effect)
		}
		targets[b.Effect] = append(targets[b.Effect], b.Target)
	}
	for _, effect := range order {
		out.line("%s: %s of %s", word, effect, Targets(targets[effect]))
	}
}
