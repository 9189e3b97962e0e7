package entry

import (
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// mark begins a line that says what is wrong with the next one.
const mark = "# error: "

// Marked is a text of answers with what is wrong above each line.
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

// Unmarked is the text without that.
func Unmarked(text string) string {
	return strings.Join(slices.DeleteFunc(strings.Split(text, "\n"), func(l string) bool { return strings.HasPrefix(l, mark) }), "\n")
}
