// Package entry contains what the screen and the plain questions of the wizard share: explanations, validation of answers,
// formatting of answers and findings, and the outcome of the wizard. It does no I/O.
package entry

import (
	"errors"
	"fmt"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
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
	var all answers.Problems
	if !errors.As(a.Validate(), &all) {
		return nil
	}
	for _, p := range all {
		if rest, ok := strings.CutPrefix(p.Path, path); !ok || rest != "" && rest[0] != '.' && rest[0] != '[' {
			continue
		}
		target, i := "", 0
		if n, _ := fmt.Sscanf(p.Path, "vms[%d]", &i); n == 1 && i < len(a.VMs) {
			target = a.VMs[i].Name
		}
		return backends.Errorf(backends.KindUsage, target, p.Hint, "%s", p.What)
	}
	return nil
}

// OrNone joins a list with commas; an empty list is "none".
func OrNone(list []string) string {
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(list, ", ")
}

// Counted formats a number of things.
func Counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
