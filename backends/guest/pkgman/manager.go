// Package pkgman describes the package managers of Linux guests: the scripts that run as root, and how their output is parsed. It
// does no I/O.
package pkgman

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/ssh"
)

// A Manager describes one package manager. Its scripts are not interactive.
type Manager struct {
	Repair         string                      // completes an interrupted run, "" if there is no such command
	Update         string                      // updates the package lists, "" if that is automatic
	Install        func(names []string) string // installs all of the names that are available
	Simulate       func(names []string) string
	Remove         func(names []string) string
	SimulateRemove func(names []string) string
	Exact          func(versions map[string]string) string // installs installed packages in these versions, also older ones
	WouldInstall   func(out string) []string               // what a simulation would newly install, without upgrades
	WouldMove      func(out string) []string               // packages that a simulation would install in another version
	WouldRemove    func(out string) []string
	Unavailable    string // hint for names that are not available
}

// each returns the words of a command that name packages with versions, sorted by name.
func each(versions map[string]string, between string) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(versions)) {
		out = append(out, name+between+versions[name])
	}
	return out
}

// For returns the Manager for apt-get, dnf or yum.
func For(program string) (Manager, bool) {
	switch program {
	case "apt-get":
		return apt(), true
	case "dnf", "yum":
		return dnf(program), true
	}
	return Manager{}, false
}

var (
	lockTaken = regexp.MustCompile(
		`(?i)could not get lock|unable to (acquire|lock)|dpkg frontend (lock )?(is|was) locked by|waiting for process with pid|existing lock .*yum\.pid`)
	unreachable = regexp.MustCompile(
		`Temporary failure resolving|Could not resolve|Unable to fetch some archives|Failed to fetch|Cannot download|` +
			`Failed to download metadata|Cannot find a valid baseurl|Could not connect`)
	repairable  = regexp.MustCompile(`(?i)dpkg was interrupted|fix-broken`)
	unknownName = regexp.MustCompile(
		`(?i)unable to locate package|has no installation candidate|no package .* available|no match for argument|unable to find a match`)
)

// dpkgError is an error of dpkg about one package; its reason follows on indented lines.
var dpkgError = regexp.MustCompile(`(?m)^dpkg: error processing (?:package|archive) (\S+) \(--\w+\):\n((?: .*(?:\n|$))+)`)

// Reason returns the first error that dpkg prints about a package, as one line, "" if there is none.
func Reason(said string) string {
	m := dpkgError.FindStringSubmatch(strings.ReplaceAll(said, "\r", ""))
	if m == nil {
		return ""
	}
	return m[1] + ": " + strings.Join(strings.Fields(m[2]), " ")
}

// OnlyUnknown reports whether a package manager reports no errors other than unknown names.
func OnlyUnknown(said string) bool { return unknownName.MatchString(said) && !HasOtherError(said) }

// HasOtherError reports whether there is an error that is not about unknown names.
func HasOtherError(said string) bool {
	for line := range strings.SplitSeq(said, "\n") {
		if (strings.HasPrefix(line, "E: ") || strings.HasPrefix(line, "Error: ")) && !unknownName.MatchString(line) {
			return true
		}
	}
	return false
}

// Undetermined reports whether a package manager cannot determine what it would do: unknown names, a full disk, unreadable lists. An
// interrupted installation does not count: it is completed before the next one.
func Undetermined(said string) bool {
	return (unknownName.MatchString(said) || HasOtherError(said)) && !repairable.MatchString(said)
}

// Locked reports whether another package manager is running.
func Locked(said string) bool { return lockTaken.MatchString(said) }

// Unreachable reports whether the repositories cannot be reached.
func Unreachable(said string) bool { return unreachable.MatchString(said) }

// apt uses apt-get through assets/scripts/apt-get.sh.
func apt() Manager {
	run := func(what string) func([]string) string {
		return func(names []string) string { return ssh.Script("apt-get.sh", append([]string{what}, names...)...) }
	}
	return Manager{
		Repair: ssh.Script("apt-get.sh", "repair"), Update: ssh.Script("apt-get.sh", "update"),
		Install: run("install"), Simulate: run("would-install"), Remove: run("remove"), SimulateRemove: run("would-remove"),
		WouldInstall: func(out string) []string {
			var names []string
			for line := range strings.SplitSeq(out, "\n") { // "Inst perftest (4.5 Debian:12/stable [amd64])"; an upgrade has [old version] third
				if w := strings.Fields(line); len(w) > 2 && w[0] == "Inst" && !strings.HasPrefix(w[2], "[") {
					names = append(names, w[1])
				}
			}
			return names
		},
		Exact: func(versions map[string]string) string { return run("exact")(each(versions, "=")) },
		WouldMove: func(out string) []string {
			var names []string
			for line := range strings.SplitSeq(out, "\n") {
				if w := strings.Fields(line); len(w) > 2 && w[0] == "Inst" && strings.HasPrefix(w[2], "[") {
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
