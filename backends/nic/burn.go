package nic

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
)

// DatastorePath returns the path of a file as ESXi sees it. It also accepts vSphere's form [DATASTORE] DIR/FILE.
func DatastorePath(file string) string {
	if store, name, ok := strings.Cut(strings.TrimPrefix(file, "["), "]"); ok && strings.HasPrefix(file, "[") {
		return "/vmfs/volumes/" + store + "/" + strings.TrimSpace(name)
	}
	return file
}

// ImageVersion returns the firmware version in a file's name, "" if no family recognizes it.
func ImageVersion(file string) string {
	for _, f := range Families() {
		if r := f.Firmware(); r != nil && r.ImageVersion != nil && r.ImageVersion(file) != "" {
			return r.ImageVersion(file)
		}
	}
	return ""
}

// A Burn is the planned firmware of a card whose board id is not known yet: the file for its board, if it is newer.
type Burn struct {
	Files     map[string]string `json:"files"`     // by PSID
	Vendor    string            `json:"vendor"`    // PCI vendor id of the card
	Device    string            `json:"device"`    // PCI device id
	Untrusted bool              `json:"untrusted"` // untrusted VMs get VFs of the card
}

// Images returns the files in the answers that may be for a port's card: those for its board if psid is known, else those for its
// chip, which is the first number of a version.
func Images(n *backends.NIC, psid string, files map[string]string) map[string]string {
	chip, _, known := strings.Cut(n.Firmware, ".")
	out := map[string]string{}
	for id, file := range files {
		file = DatastorePath(file)
		of, _, _ := strings.Cut(ImageVersion(file), ".")
		if psid == id || psid == "" && (!known || of == chip) {
			out[id] = file
		}
	}
	return out
}

// Outdated reports whether one of the files is newer than the firmware that a port's card runs.
func (b Burn) Outdated(running string) bool {
	return slices.ContainsFunc(slices.Collect(maps.Values(b.Files)), func(file string) bool { return newer(ImageVersion(file), running) })
}

// Unsafe returns the first of the files, by board, whose firmware has a published vulnerability; "" if there is none.
func (b Burn) Unsafe() (file string, list []backends.Advisory) {
	for _, psid := range slices.Sorted(maps.Keys(b.Files)) {
		if list, _ := Vulnerable(b.with(ImageVersion(b.Files[psid]))); len(list) > 0 {
			return b.Files[psid], list
		}
	}
	return "", nil
}

func (b Burn) with(version string) *backends.NIC {
	return &backends.NIC{Vendor: b.Vendor, PCIDeviceID: b.Device, Firmware: version}
}

// Pending reports whether a card's flash has firmware that is as new as its board's file while the card runs an older one: a boot
// that cuts its power loads it.
func (b Burn) Pending(running string, holds backends.FirmwareImage) bool {
	file, named := b.Files[holds.PSID]
	return named && !newer(ImageVersion(file), holds.Version) && newer(holds.Version, running)
}

// Resolve returns the firmware that a card should have, once its board id and current firmware are known. Firmware that is as new
// as the file, or whose board has no file, is kept. It fails if that is not acceptable: an OEM's board without its image, or
// firmware with a published vulnerability if untrusted VMs get VFs.
func (b Burn) Resolve(host, card string, has backends.FirmwareImage) (backends.FirmwareImage, error) {
	file, named := b.Files[has.PSID]
	to := has
	if named && newer(ImageVersion(file), has.Version) {
		to = backends.FirmwareImage{PSID: has.PSID, Version: ImageVersion(file), File: file}
	}
	if !named && OEM(OfCard(b.Vendor), has.PSID) {
		return has,
			backends.Refusedf(host, "get the image of this board from the server's vendor and name it as sriov.firmware: {"+
				has.PSID+": FILE}, or leave the host out",
				"the card %s is an OEM's (PSID %s), whose firmware comes from the server's vendor alone, and sriov.firmware names none for it", card,
				has.PSID)
	}
	if list, _ := Vulnerable(b.with(to.Version)); b.Untrusted && len(list) > 0 {
		n := b.with(to.Version)
		return has,
			backends.Refusedf(host, "name newer firmware for PSID "+has.PSID+" under sriov.firmware, or set trust: trusted",
				"the card %s (PSID %s) would have firmware %s, which is vulnerable to users of a VF, and VMs get VFs of it that are not trusted: %s",
				card, has.PSID, to.Version, Named(list, n))
	}
	return to, nil
}

// NICMode fails for a card whose own CPU owns the ports instead of the host (a BlueField in DPU mode), according to the current
// keys or those of the next boot. Cards without such a key have no such CPU.
func NICMode(host, card string, keys map[string]string) error {
	for _, f := range Families() {
		r := f.Firmware()
		if r == nil || r.Mode == "" {
			continue
		}
		if v, there := keys[r.Mode]; there && v != r.NICMode {
			return backends.Refusedf(host, fmt.Sprintf(r.NoNICMode, card),
				"the card %s is a BlueField in DPU mode (%s is %s, %s is %s): its Arm cores own the ports, and NIC mode is needed", card, r.Mode, v,
				r.CPU, cmp.Or(keys[r.CPU], "not read"))
		}
	}
	return nil
}

// HasCPU reports whether a port belongs to a card with its own CPU, whose mode a boot may change (BlueField).
func HasCPU(n *backends.NIC) bool {
	r := FirmwareOf(OfCard(n.Vendor))
	return r != nil && slices.Contains(r.CPUCards, n.PCIDeviceID)
}

// BurnCommand returns the command for the ESXi shell that writes a file to a card.
func BurnCommand(vendor, card, file string) string {
	r := FirmwareOf(OfCard(vendor))
	if r == nil || r.Burn == "" {
		return ""
	}
	return fmt.Sprintf(r.Burn, card, file)
}

// LoadedCommand is what an operator types in the ESXi shell to see whether a card runs the firmware of its flash.
func LoadedCommand(card string) string {
	for _, f := range Families() {
		if r := f.Firmware(); r != nil {
			return fmt.Sprintf(r.Loaded, card)
		}
	}
	return ""
}

// newer compares firmware versions number by number: 16.35.8008 is newer than 16.35.4030. An invalid version counts as oldest.
func newer(a, b string) bool {
	x, y := numbers(a), numbers(b)
	return x != nil && slices.Compare(x, y) > 0
}

func numbers(version string) []int {
	version, _, _ = strings.Cut(strings.TrimSpace(version), " ")
	var out []int
	for _, word := range strings.Split(version, ".") {
		n, err := strconv.Atoi(word)
		if err != nil {
			return nil
		}
		out = append(out, n)
	}
	return out
}
