// Package entry contains what the screen and the plain questions of the wizard share: explanations, validation of answers,
// formatting of answers and findings, and the outcome of the wizard. It does no I/O.
package entry

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/ui/plain"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/engine"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
	"github.com/rdma-setup/rdma-setup/wizard/report"
)

// Members returns the hosts that take part.
func Members(a *answers.Answers) map[string]bool {
	m := make(map[string]bool, len(a.Hosts.Names))
	for _, n := range a.Hosts.Names {
		m[n] = true
	}
	return m
}

// Problem returns the first problem of the answers at a path or below it.
func Problem(a *answers.Answers, path string) error {
	all, _ := errors.AsType[answers.Problems](a.Validate())
	for _, p := range all {
		if rest, ok := strings.CutPrefix(p.Path, path); !ok || rest != "" && rest[0] != '.' && rest[0] != '[' {
			continue
		}
		target, i := "", 0
		if n, _ := fmt.Sscanf(p.Path, "vms[%d]", &i); n == 1 && i < len(a.VMs) {
			target = a.VMs[i].Name
		}
		return backends.Usagef(target, p.Hint, "%s", p.What)
	}
	return nil
}

// OrNone joins a list with commas; an empty list is "none".
func OrNone(list []string) string { return cmp.Or(strings.Join(list, ", "), "none") }

// Refusals lists the reasons; targets with the same reason are grouped.
func Refusals(b *strings.Builder, refused *plan.Refused) {
	type cause struct{ why, remedy string }
	var who plain.Gathered[cause, string]
	for _, r := range refused.Refusals {
		who.Add(cause{r.Why, r.Remedy}, r.Target.Name)
	}
	for c, names := range who.All() {
		_ = plain.Printf(b, "\n%s: %s\n  remedy: %s\n", plain.Names(names), c.why, c.remedy)
	}
}

// An Outcome is the result of the wizard.
type Outcome struct {
	Answers   *answers.Answers
	Path      string // where the answers were saved, "" if they were not
	Result    engine.Result
	Report    *report.Report // nil if it did not get that far
	Inspected *report.Report // report of a check that changed nothing
	Err       error          // of the run
	// Interrupted means that Ctrl-C, a signal or a lost terminal ended it before anything was started.
	Interrupted bool
}
