package nic

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
)

// Listed reports whether one of the embedded advisories names a port's card. Nothing is known about other cards.
func Listed(n *backends.NIC) bool {
	f := OfCard(n.Vendor)
	return f != nil && slices.ContainsFunc(f.Advisories(), func(a backends.Advisory) bool { return len(a.Fixed[n.PCIDeviceID]) > 0 })
}

// Vulnerable returns the advisories that may apply to the firmware of a port. known is false if its version is unknown or no
// embedded advisory names the card (Listed); no statement is possible then.
//
// Firmware versions are family.branch.build (16.35.4030), and each branch is fixed separately: in a branch with a fixed version,
// older builds are vulnerable; of the other branches, those before the newest fixed one ("all versions prior to", "or newer").
func Vulnerable(n *backends.NIC) (list []backends.Advisory, known bool) {
	f := OfCard(n.Vendor)
	branch, build, err := branchOf(n.Firmware)
	if err != nil || !Listed(n) {
		return nil, false
	}
	for _, a := range f.Advisories() {
		fixed, newest := a.Fixed[n.PCIDeviceID], 0
		for b := range fixed {
			newest = max(newest, b)
		}
		least, own := fixed[branch]
		if own && build < least || !own && branch < newest {
			list = append(list, a)
		}
	}
	return list, true
}

// FixedIn returns the firmware versions of a card that fix an advisory: "16.35.8002".
func FixedIn(a backends.Advisory, n *backends.NIC) string {
	family, _, _ := strings.Cut(n.Firmware, ".")
	branch, _, err := branchOf(n.Firmware)
	newest := 0
	for b := range a.Fixed[n.PCIDeviceID] {
		newest = max(newest, b)
	}
	least, own := a.Fixed[n.PCIDeviceID][branch]
	if err != nil || !own {
		branch, least = newest, a.Fixed[n.PCIDeviceID][newest]
	}
	return fmt.Sprintf("%s.%d.%04d", family, branch, least)
}

// Named formats advisories in one line: "CVE-2025-23351 (9.0, code execution, fixed in 16.35.8002)".
func Named(list []backends.Advisory, n *backends.NIC) string {
	var out []string
	for _, a := range list {
		out = append(out, fmt.Sprintf("%s (%.1f, %s, fixed in %s)", a.CVE, a.Score, a.Impact, FixedIn(a, n)))
	}
	return strings.Join(out, ", ")
}

// branchOf parses 16.35.4030, also with a board id as drivers print it, 16.35.4030 (DEL0000000004).
func branchOf(version string) (branch, build int, err error) {
	version, _, _ = strings.Cut(strings.TrimSpace(version), " (")
	parts := strings.Split(version, ".")
	if len(parts) != 3 {
		return 0, 0, fmt.Errorf("%q is not a firmware version", version)
	}
	if branch, err = strconv.Atoi(parts[1]); err != nil {
		return 0, 0, err
	}
	build, err = strconv.Atoi(parts[2])
	return branch, build, err
}
