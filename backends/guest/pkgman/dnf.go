package pkgman

import (
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/ssh"
)

// dnf uses dnf and yum, which have the same output, through assets/scripts/dnf.sh.
func dnf(name string) Manager {
	table := func(headings ...string) func(string) []string {
		return func(out string) []string {
			var names []string
			in := false
			for line := range strings.SplitSeq(out, "\n") {
				if line != "" && line[0] != ' ' { // "Installing dependencies:", "Transaction Summary"
					in = slices.ContainsFunc(headings, func(h string) bool { return strings.HasPrefix(line, h) })
					continue
				}
				// A long name is on a line of its own; its columns follow on the next line, indented further.
				if w := strings.Fields(line); in && len(w) > 0 && len(line) > 2 && line[1] != ' ' {
					names = append(names, w[0])
				}
			}
			return names
		}
	}
	run := func(what string) func([]string) string {
		return func(names []string) string { return ssh.Script("dnf.sh", append([]string{name, what}, names...)...) }
	}
	return Manager{
		Install: run("install"), Simulate: run("would-install"), Remove: run("remove"), SimulateRemove: run("would-remove"),
		Exact:        func(versions map[string]string) string { return run("exact")(each(versions, "-")) },
		WouldInstall: table("Installing"),
		WouldMove:    table("Upgrading", "Updating", "Downgrading"), // yum prints Updating
		WouldRemove:  table("Removing"),
		Unavailable:  "Enable the repository that has them (CodeReady Builder or PowerTools, EPEL), or point the guest at a mirror.",
	}
}
