// Package pkgman describes the package managers of Linux guests: the scripts that run as root, and how their output is parsed. It
// does no I/O.
package pkgman

import (
	"maps"
	"regexp"
	"slices"
	"strings"
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
	lockTaken   = regexp.MustCompile(`(?i)could not get lock|unable to (acquire|lock)|dpkg frontend (lock )?(is|was) locked by|waiting for process with pid|existing lock .*yum\.pid`)
	unreachable = regexp.MustCompile(`Temporary failure resolving|Could not resolve|Unable to fetch some archives|Failed to fetch|Cannot download|` +
		`Failed to download metadata|Cannot find a valid baseurl|Could not connect`)
	repairable  = regexp.MustCompile(`(?i)dpkg was interrupted|fix-broken`)
	unknownName = regexp.MustCompile(`(?i)unable to locate package|has no installation candidate|no package .* available|no match for argument|unable to find a match`)
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
