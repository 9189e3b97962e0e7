// Package pkgman speaks to the package managers of Linux guests: the scripts that root runs, and what their answers say.
// It is pure: text in, text out.
package pkgman

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

// A Manager is how one package manager is spoken to. Scripts never ask anybody anything.
type Manager struct {
	Repair         string                      // finishes what a run that was cut short left undone, "" if there is no such thing
	Update         string                      // fetches the lists, "" if that happens by itself
	Install        func(names []string) string // installs all of the names that can be had
	Simulate       func(names []string) string
	Remove         func(names []string) string
	SimulateRemove func(names []string) string
	Exact          func(versions map[string]string) string // installs what is there in these versions, older ones too
	WouldInstall   func(out string) []string               // what a simulation would newly install, upgrades apart
	WouldMove      func(out string) []string               // what a simulation would install in another version than the one that is there
	WouldRemove    func(out string) []string
	Unavailable    string // hint where names cannot be had
}

// each returns the words of a command that name packages in their versions, in the order of their names.
func each(versions map[string]string, between string) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(versions)) {
		out = append(out, name+between+versions[name])
	}
	return out
}

// For returns the Manager behind apt-get, dnf or yum.
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

// OnlyUnknown reports whether a package manager complains of nothing but names that it does not know.
func OnlyUnknown(said string) bool { return unknownName.MatchString(said) && !Complains(said) }

// Complains reports whether there is an error that is not about unknown names.
func Complains(said string) bool {
	for line := range strings.SplitSeq(said, "\n") {
		if (strings.HasPrefix(line, "E: ") || strings.HasPrefix(line, "Error: ")) && !unknownName.MatchString(line) {
			return true
		}
	}
	return false
}

// Helpless reports whether a package manager cannot work out what it would do: names that it does not know, a full disk,
// lists that it cannot read. What an interrupted installation has left does not count: it is completed before the next one.
func Helpless(said string) bool {
	return (unknownName.MatchString(said) || Complains(said)) && !repairable.MatchString(said)
}

// Locked reports whether another package manager is at work.
func Locked(said string) bool { return lockTaken.MatchString(said) }

// Unreachable reports whether the repositories cannot be reached.
func Unreachable(said string) bool { return unreachable.MatchString(said) }
