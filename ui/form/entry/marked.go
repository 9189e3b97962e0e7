package entry

import (
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// mark is the prefix of a line that describes an error in the next one.
const mark = "# error: "

// Marked returns a text of answers with the errors above each line.
func Marked(text string, wrong answers.Problems) string {
	lines := strings.Split(text, "\n")
	for _, p := range slices.Backward(wrong) {
		at := min(max(0, p.Line-1), len(lines))
		what := p.What
		if p.Hint != "" {
			what += " (" + p.Hint + ")"
		}
		lines = slices.Insert(lines, at, mark+strings.ReplaceAll(what, "\n", " "))
	}
	return strings.Join(lines, "\n")
}

// Unmarked removes these lines.
func Unmarked(text string) string {
	return strings.Join(slices.DeleteFunc(strings.Split(text, "\n"), func(l string) bool { return strings.HasPrefix(l, mark) }), "\n")
}

// Missing returns the hosts and VMs of edited answers that the vCenter does not have: a page could not show them.
func Missing(a *answers.Answers, inv *backends.Inventory, text string) answers.Problems {
	var wrong answers.Problems
	lines := strings.Split(text, "\n")
	missing := func(path, what, name string) {
		line := slices.IndexFunc(lines, func(l string) bool { return slices.Contains(strings.FieldsFunc(l, between), name) })
		wrong = append(wrong, answers.Problem{Line: line + 1, Path: path, What: "the vCenter has no " + what + " " + name})
	}
	for _, name := range a.Hosts.Names {
		if inv.Host(name) == nil {
			missing("hosts.names", "host", name)
		}
	}
	for _, v := range a.VMs {
		if inv.VM(v.Name) == nil {
			missing("vms", "VM", v.Name)
		}
	}
	return wrong
}

// between reports whether a character separates words in YAML.
func between(r rune) bool { return strings.ContainsRune(" \t,[]{}\"'", r) }
