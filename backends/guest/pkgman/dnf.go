package pkgman

import (
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/ssh"
)

// dnf speaks to dnf and to yum, which answer alike.
func dnf(name string) Manager {
	table := func(heading string) func(string) []string {
		return func(out string) []string {
			var names []string
			in := false
			for line := range strings.SplitSeq(out, "\n") {
				if line != "" && line[0] != ' ' { // "Installing dependencies:", "Transaction Summary"
					in = strings.HasPrefix(line, heading)
					continue
				}
				// A long name stands alone on its line; what belongs to it is indented further.
				if w := strings.Fields(line); in && len(w) > 0 && len(line) > 2 && line[1] != ' ' {
					names = append(names, w[0])
				}
			}
			return names
		}
	}
	// One name that cannot be had keeps dnf from installing the others (and the option against that differs between
	// dnf 4 and 5).
	available := func(names []string) string {
		return "can=\nfor p in " + ssh.QuoteAll(names...) + "; do " + name + " -q list $p >/dev/null 2>&1 && can=\"$can $p\"; done\n[ -n \"$can\" ] || can=" +
			ssh.Quote(ssh.QuoteAll(names...)) + "\n"
	}
	return Manager{
		Install:  func(names []string) string { return available(names) + "eval \"" + name + " -y install $can\"" },
		Simulate: func(names []string) string { return available(names) + "eval \"" + name + " --assumeno install $can\"" },
		Remove: func(names []string) string {
			return name + " -y --setopt=clean_requirements_on_remove=0 remove " + ssh.QuoteAll(names...)
		},
		SimulateRemove: func(names []string) string {
			return name + " --assumeno --setopt=clean_requirements_on_remove=0 remove " + ssh.QuoteAll(names...)
		},
		WouldInstall: table("Installing"),
		WouldRemove:  table("Removing"),
		Unavailable:  "Enable the repository that has them (CodeReady Builder or PowerTools, EPEL), or point the guest at a mirror.",
	}
}
