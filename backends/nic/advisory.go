package nic

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
)

// Listed reports whether one of the embedded advisories names a port's card. Of other cards nothing is published there.
func Listed(n *backends.NIC) bool {
	f := OfCard(n.Vendor)
	return f != nil && slices.ContainsFunc(f.Advisories(), func(a backends.Advisory) bool { return len(a.Fixed[n.PCIDeviceID]) > 0 })
}

// Vulnerable returns the advisories of which the firmware of a port is not known to be free. known is false if its version is not
// known, and where no embedded advisory names the card (Listed): nothing can be said then.
//
// Firmware versions are family.branch.build (16.35.4030), and branches are fixed apart: in a branch that has a fixed version,
// older builds are vulnerable; of other branches, those before the newest fixed one ("all versions prior to", "or newer").
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

// FixedIn names the firmware versions of a card that are free of an advisory: "16.35.8002".
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

// Named tells advisories in one line: "CVE-2025-23351 (9.0, code execution, fixed in 16.35.8002)".
func Named(list []backends.Advisory, n *backends.NIC) string {
	var out []string
	for _, a := range list {
		out = append(out, fmt.Sprintf("%s (%.1f, %s, fixed in %s)", a.CVE, a.Score, a.Impact, FixedIn(a, n)))
	}
	return strings.Join(out, ", ")
}

// branchOf reads 16.35.4030, and with the id of the board as drivers print it, 16.35.4030 (DEL0000000004).
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
