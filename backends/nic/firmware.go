package nic

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
)

// Proven reports whether the running host shows that firmware and BIOS provide that many VFs on a port: they exist, or its PCI
// function offers them (maxVirtualFunctionSupported is the number that the firmware was booted with).
func Proven(n *backends.NIC, vfs int) bool {
	return n.SRIOV != nil && n.SRIOV.Capable && max(n.SRIOV.Max, n.SRIOV.VFs) >= vfs
}

// A Pair compares firmware with the oldest that the maker of a driver documents for the card.
type Pair struct {
	Since string // driver version that it is documented for
	Least string // oldest firmware
	Later bool   // the driver is newer than Since: whether it needs no newer firmware is unverified
	Fits  bool   // the firmware is not older
}

// PairOf pairs a version of a port's driver with firmware for its card. ok is false if nothing is documented for them.
func PairOf(n *backends.NIC, driver, firmware string) (p Pair, ok bool) {
	f := Of(n.Driver)
	if f == nil {
		return p, false
	}
	p.Since, p.Least = f.LeastFirmware(n.PCIDeviceID)
	driver, _, _ = strings.Cut(driver, "-")
	drv, since, has, least := numbers(driver), numbers(p.Since), numbers(firmware), numbers(p.Least)
	if drv == nil || has == nil || least == nil || slices.Compare(drv, since) < 0 {
		return p, false
	}
	p.Later, p.Fits = slices.Compare(drv, since) > 0, slices.Compare(has, least) >= 0
	return p, true
}

// FirmwareOf returns the rules of a family's firmware tools, nil if there is no family or it has no such tools.
func FirmwareOf(f Family) *backends.FirmwareRules {
	if f == nil {
		return nil
	}
	return f.Firmware()
}

// FirmwareTools returns the tools of the family that has some, for the shell of a host.
func FirmwareTools(s backends.HostShell) backends.FirmwareTools {
	for _, f := range Families() {
		if t := f.Tools(s); t != nil {
			return t
		}
	}
	return nil
}

// ATSKey returns the firmware key for ATS of the family that has one.
func ATSKey() string {
	for _, f := range Families() {
		if r := f.Firmware(); r != nil && r.ATS != "" {
			return r.ATS
		}
	}
	return ""
}

// FirmwareModules returns the VIBs of firmware tools that are kernel modules.
func FirmwareModules() []string {
	var out []string
	for _, f := range Families() {
		if r := f.Firmware(); r != nil {
			out = append(out, r.Module)
		}
	}
	return out
}

// FirmwareKeys returns the firmware keys of a card whose ports need the given VFs: SR-IOV enabled, the number of VFs (the sum
// plus one, never lowered), and these ports set to Ethernet. Keys that a card does not have are left out when they are set:
// Ethernet-only cards have no protocol key, single-port cards no key for port 2. It fails for a family without firmware tools.
func FirmwareKeys(f Family, ports []Port) (map[string]string, error) {
	r := FirmwareOf(f)
	if r == nil {
		return nil, fmt.Errorf("the firmware of %s cards cannot be set: this program has no firmware tools for driver %s", f.Cards(), f.Driver())
	}
	keys := map[string]string{}
	var vfs []int
	for _, p := range ports {
		vfs = append(vfs, p.VFs)
		keys[portKey(r, p.PCI)] = r.Ethernet
	}
	n, err := NumOfVFs(f.VFs(), 0, vfs)
	if err != nil {
		return nil, err
	}
	keys[r.SRIOV], keys[r.VFs] = "1", strconv.Itoa(n)
	return keys, nil
}

// FirmwareWhy describes in one line what a change of these keys sets.
func FirmwareWhy(f Family, keys map[string]string) string {
	var parts []string
	r := FirmwareOf(f)
	if r == nil {
		r = &backends.FirmwareRules{}
	}
	for _, k := range slices.Sorted(maps.Keys(keys)) {
		switch {
		case k == r.VFs:
			parts = append(parts, k+" at least "+keys[k])
		case r.LinkType != "" && strings.HasPrefix(k, r.LinkType), k == r.Advanced:
			parts = append(parts, k+"="+keys[k]+" where the card has it")
		default:
			parts = append(parts, k+"="+keys[k])
		}
	}
	return strings.Join(parts, ", ")
}

// MergeFirmware returns the requested keys of a card: keys that the card does not have are left out (single ports, Ethernet-only
// cards), keys that were not requested stay, and the number of VFs is never lowered. It fails if the card lacks an essential key.
func MergeFirmware(host, card string, want, have map[string]string) (map[string]string, error) {
	r := firmwareRules(want)
	if r == nil {
		r = &backends.FirmwareRules{}
	}
	if err := NICMode(host, card, have); err != nil {
		return nil, err
	}
	for _, key := range slices.Sorted(maps.Keys(want)) {
		old, there := have[key]
		switch {
		case !there && (key == r.SRIOV || key == r.VFs):
			return nil, backends.Refusedf(host, "choose a card whose firmware offers SR-IOV, or update the firmware",
				"the firmware of %s has no %s", card, key)
		case !there && key == r.ATS:
			return nil, backends.Refusedf(host, "set gpudirect.ats to false: "+r.NoATS+"; relax_acs does not need it",
				"the firmware of %s has no %s", card, key)
		case there && (key != r.VFs || count(old) < count(want[key])):
			have[key] = want[key]
		}
	}
	return have, nil
}

// count parses a decimal number; anything else is 0.
func count(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return 0
	}
	return n
}

// FirmwareCommand returns the command for the ESXi shell that sets keys of a card; "" if no family has these keys.
func FirmwareCommand(card string, keys map[string]string) string {
	r := firmwareRules(keys)
	if r == nil {
		return ""
	}
	var words []string
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		words = append(words, key+"="+keys[key])
	}
	return fmt.Sprintf(r.Command, card, strings.Join(words, " "))
}

// OEM reports whether a board id (PSID) belongs to a card sold by a server vendor: only the vendor provides its firmware.
func OEM(f Family, id string) bool {
	r := FirmwareOf(f)
	return r != nil && id != "" && !strings.HasPrefix(id, r.OwnIDs)
}

// BIOSHelp says how to enable SR-IOV in the BIOS of a vendor's servers.
func BIOSHelp(vendor string) string {
	v := strings.ToLower(vendor)
	switch {
	case strings.Contains(v, "dell"):
		return "enable SR-IOV Global: racadm set BIOS.IntegratedDevices.SriovGlobalEnable Enabled; racadm jobqueue create BIOS.Setup.1-1; " +
			"racadm serveraction powercycle"
	case strings.Contains(v, "hp"):
		return "enable SR-IOV and Intel VT-d (AMD IOMMU): ilorest set Sriov=Enabled --selector=Bios. and ilorest commit, then power-cycle; or " +
			"RBSU > Virtualization Options"
	case strings.Contains(v, "supermicro"):
		return "enable SR-IOV Support under Advanced > PCIe/PCI/PnP Configuration and VT-d under Chipset > IIO, then power-cycle"
	}
	return "enable SR-IOV and VT-d (AMD: IOMMU) in the BIOS (Dell: racadm set BIOS.IntegratedDevices.SriovGlobalEnable Enabled; HPE: " +
		"ilorest set " +
		"Sriov=Enabled; Supermicro: PCIe/PCI/PnP > SR-IOV Support), then power-cycle"
}

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
