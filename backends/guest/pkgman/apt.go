package pkgman

import (
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/ssh"
)

// apt speaks to apt-get. Configuration files that somebody changed stay; nobody is asked anything.
func apt() Manager {
	const quiet = "DEBIAN_FRONTEND=noninteractive NEEDRESTART_MODE=l "
	const get = quiet + "apt-get -q -y -o DPkg::Lock::Timeout=60 -o Dpkg::Options::=--force-confdef -o Dpkg::Options::=--force-confold "
	// Of names that cannot be had, apt-get installs none of the others: those that can are found out one by one.
	available := func(names []string) string {
		return `can=
if apt-get -s -qq install -- ` + ssh.QuoteAll(names...) + ` >/dev/null 2>&1; then can=` + ssh.Quote(ssh.QuoteAll(names...)) + `
else for p in ` + ssh.QuoteAll(names...) + `; do said=$(apt-get -s -qq install -- $p 2>&1 >/dev/null) && can="$can $p" || echo "$said" >&2; done; fi
`
	}
	return Manager{
		// Of a dpkg that was killed there is a journal, files with numbers for names, on account of which apt-get refuses;
		// of one that was stopped between two packages there are only those that are not configured.
		Mend: `if ls /var/lib/dpkg/updates 2>/dev/null | grep -q '^[0-9][0-9]*$' || [ -n "$(dpkg --audit 2>/dev/null)" ]; then
	` + quiet + `dpkg --force-confdef --force-confold --configure -a
fi`,
		Update: get + "update",
		Install: func(names []string) string {
			return available(names) + `[ -z "$can" ] || eval "` + get + `--no-install-recommends install -- $can"`
		},
		Simulate: func(names []string) string {
			return available(names) + `[ -z "$can" ] || eval "apt-get -s -q --no-install-recommends install -- $can"`
		},
		// What was cut short while it was unpacked can neither be configured nor, without this, removed.
		Remove: func(names []string) string {
			return get + "-o Dpkg::Options::=--force-remove-reinstreq purge -- " + ssh.QuoteAll(names...)
		},
		SimulateRemove: func(names []string) string { return "apt-get -s -q purge -- " + ssh.QuoteAll(names...) },
		WouldInstall: func(out string) []string {
			var names []string
			for line := range strings.SplitSeq(out, "\n") { // "Inst perftest (4.5 Debian:12/stable [amd64])"; an upgrade has [old version] third
				if w := strings.Fields(line); len(w) > 2 && w[0] == "Inst" && !strings.HasPrefix(w[2], "[") {
					names = append(names, w[1])
				}
			}
			return names
		},
		WouldRemove: func(out string) []string {
			var names []string
			for line := range strings.SplitSeq(out, "\n") {
				if w := strings.Fields(line); len(w) > 1 && (w[0] == "Remv" || w[0] == "Purg") {
					names = append(names, w[1])
				}
			}
			return names
		},
		Unavailable: "Enable the repository that has them (on Ubuntu: universe), or point the guest at a mirror.",
	}
}
