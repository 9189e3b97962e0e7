package guest

import (
	"regexp"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/ssh"
)

// A manager is how one package manager is spoken to: scripts for root, and what its simulations say.
type manager struct {
	update         string
	install        func(names []string) string
	simulate       func(names []string) string
	remove         func(names []string) string
	simulateRemove func(names []string) string
	wouldInstall   func(out string) []string // without upgrades
	wouldRemove    func(out string) []string
	noSuchName     string // hint
}

// apt speaks to apt-get. Configuration files that somebody changed stay; nobody is asked anything.
func apt() manager {
	const get = "DEBIAN_FRONTEND=noninteractive NEEDRESTART_MODE=l apt-get -q -y -o DPkg::Lock::Timeout=60 -o Dpkg::Options::=--force-confdef -o Dpkg::Options::=--force-confold "
	// Of names that cannot be had, apt-get installs none of the others: those that can are found out one by one.
	available := func(names []string) string {
		return `can=
if apt-get -s -qq install -- ` + ssh.QuoteAll(names...) + ` >/dev/null 2>&1; then can=` + ssh.Quote(ssh.QuoteAll(names...)) + `
else for p in ` + ssh.QuoteAll(names...) + `; do said=$(apt-get -s -qq install -- $p 2>&1 >/dev/null) && can="$can $p" || echo "$said" >&2; done; fi
`
	}
	return manager{
		update: get + "update",
		install: func(names []string) string {
			return available(names) + `[ -z "$can" ] || eval "` + get + `--no-install-recommends install -- $can"`
		},
		simulate: func(names []string) string {
			return available(names) + `[ -z "$can" ] || eval "apt-get -s -q --no-install-recommends install -- $can"`
		},
		remove:         func(names []string) string { return get + "purge -- " + ssh.QuoteAll(names...) },
		simulateRemove: func(names []string) string { return "apt-get -s -q purge -- " + ssh.QuoteAll(names...) },
		wouldInstall: func(out string) []string {
			var names []string
			for line := range strings.SplitSeq(out, "\n") { // "Inst perftest (4.5 Debian:12/stable [amd64])"; an upgrade has [old version] third
				if w := strings.Fields(line); len(w) > 2 && w[0] == "Inst" && !strings.HasPrefix(w[2], "[") {
					names = append(names, w[1])
				}
			}
			return names
		},
		wouldRemove: func(out string) []string {
			var names []string
			for line := range strings.SplitSeq(out, "\n") {
				if w := strings.Fields(line); len(w) > 1 && (w[0] == "Remv" || w[0] == "Purg") {
					names = append(names, w[1])
				}
			}
			return names
		},
		noSuchName: "Enable the repository that has them (on Ubuntu: universe), or point the guest at a mirror.",
	}
}

// dnf speaks to dnf and to yum, which answer alike.
func dnf(name string) manager {
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
				if in && len(line) > 2 && line[0] == ' ' && line[1] != ' ' {
					names = append(names, strings.Fields(line)[0])
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
	return manager{
		install:  func(names []string) string { return available(names) + "eval \"" + name + " -y install $can\"" },
		simulate: func(names []string) string { return available(names) + "eval \"" + name + " --assumeno install $can\"" },
		remove: func(names []string) string {
			return name + " -y --setopt=clean_requirements_on_remove=0 remove " + ssh.QuoteAll(names...)
		},
		simulateRemove: func(names []string) string {
			return name + " --assumeno --setopt=clean_requirements_on_remove=0 remove " + ssh.QuoteAll(names...)
		},
		wouldInstall: table("Installing"),
		wouldRemove:  table("Removing"),
		noSuchName:   "Enable the repository that has them (CodeReady Builder or PowerTools, EPEL), or point the guest at a mirror.",
	}
}

// explain says why names are still missing after an installation.
func (m manager) explain(vm string, left []string, r ssh.Result, lists string) error {
	what := "install " + strings.Join(left, ", ")
	said := lists + "\n" + r.Stderr
	for _, sign := range []string{"Temporary failure resolving", "Could not resolve", "Unable to fetch some archives", "Failed to fetch", "Cannot download",
		"Failed to download metadata", "Cannot find a valid baseurl", "Could not connect"} {
		if strings.Contains(said+r.Stdout, sign) {
			return backends.Errorf(backends.KindUnreachable, label(vm), "Give the guest a way to its package repositories, or a local mirror.",
				"%s: the repositories cannot be reached: %s", what, lastLines(said, 2))
		}
	}
	if r.ExitCode != 0 && !onlyUnknown(r.Stderr) || r.ExitCode == 0 && complains(r.Stderr) {
		return failed(vm, what, r)
	}
	return backends.Errorf(backends.KindPermanent, label(vm), m.noSuchName, "%s: the guest's repositories do not have them; the others are installed", what)
}

var unknownName = regexp.MustCompile(`(?i)unable to locate package|has no installation candidate|no package .* available|no match for argument|unable to find a match`)

// onlyUnknown tells whether a package manager complains of nothing but names that it does not know.
func onlyUnknown(said string) bool { return unknownName.MatchString(said) && !complains(said) }

// complains tells whether there is an error that is not about unknown names.
func complains(said string) bool {
	for line := range strings.SplitSeq(said, "\n") {
		if (strings.HasPrefix(line, "E: ") || strings.HasPrefix(line, "Error: ")) && !unknownName.MatchString(line) {
			return true
		}
	}
	return false
}
