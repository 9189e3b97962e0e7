package driver

import (
	"maps"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/nic"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
	"github.com/rdma-setup/rdma-setup/wizard/plan/draft"
)

// updates returns the cards of the host that may get newer firmware from the files in the answers, by the address of their first
// function. Only the firmware tools can read a card's board id: the run reads it when the update is due.
func (d *driverPart) updates() (map[string]nic.Burn, bool) {
	out, pending := map[string]nic.Burn{}, map[string]nic.Burn{}
	if len(d.Answers.SRIOV.Firmware) == 0 || !d.vfs || nic.FirmwareOf(d.fam) == nil {
		return out, true
	}
	untrusted := slices.ContainsFunc(d.VMs, func(v *draft.VM) bool { return v.Host == d.h.Name && v.Wish.Trust == answers.Untrusted })
	for _, p := range d.all {
		card := nic.CardAddress(p.PCI)
		psid := d.sys.Firmware[card].PSID
		b := nic.Burn{Files: nic.Images(p.NIC, psid, d.Answers.SRIOV.Firmware), Vendor: p.Vendor, Device: p.PCIDeviceID, Untrusted: untrusted}
		switch {
		case len(b.Files) == 0 && nic.OEM(d.fam, psid):
			_, err := b.Resolve(d.ref.Name, card, backends.FirmwareImage{PSID: psid})
			d.Refuse(d.ref, "HOST-PNIC-PSID-008", backends.HintOf(err), "%v", err)
			return nil, false
		case len(b.Files) == 0:
			d.NoteEach(d.ref.Name, "sriov.firmware names no file for %s, whose firmware stays %s", p.Device, p.Firmware)
		case p.Firmware == "" && p.Hidden == "":
			d.NoteEach(d.ref.Name, "the firmware of %s is not updated: neither vCenter nor esxcli network nic get shows its version", p.Device)
		case b.Pending(p.Firmware, d.Options.Flashed[d.set(backends.KindFirmwareImage, card).ID()]):
			d.unloaded = append(d.unloaded, card)
			pending[card] = b
		case b.Outdated(p.Firmware):
			out[card] = b
			d.pair(p.NIC, b)
		}
	}
	if len(out)+len(pending) == 0 {
		return out, true
	}
	if c := d.Inventory.Cluster(d.h.Cluster); c != nil && c.Image != nil && len(c.Image.Hardware) > 0 {
		d.Refuse(backends.ClusterRef(d.h.Cluster), check, "update the firmware through that manager and take sriov.firmware out",
			"the hardware support manager %s owns the firmware of its hosts, and sriov.firmware asks for other",
			strings.Join(c.Image.Hardware, ", "))
		return nil, false
	}
	d.h.Updates = maps.Clone(out)
	maps.Copy(d.h.Updates, pending)
	return out, true
}

// pair compares the files for a card with the oldest firmware that is documented for its driver, in the version that the host has.
func (d *driverPart) pair(n *backends.NIC, b nic.Burn) {
	for _, psid := range slices.Sorted(maps.Keys(b.Files)) {
		version := nic.ImageVersion(b.Files[psid])
		pair, known := nic.PairOf(n, n.DriverVersion, version)
		documented := "at least " + pair.Least + " is documented for " + n.Driver + " " + pair.Since
		switch {
		case !known:
			d.NoteEach(d.ref.Name,
				"whether firmware %s goes with %s %s is not checked (unverified): the vendor's release notes pair firmware and driver", version,
				n.Driver, n.DriverVersion)
		case pair.Later && pair.Fits:
			d.NoteEach(d.ref.Name, "firmware %s: %s; that %s needs no newer one is unverified: see its release notes", version, documented,
				n.DriverVersion)
		case pair.Later:
			d.NoteEach(d.ref.Name, "firmware %s is too old: %s; what %s needs is unverified: see its release notes", version, documented,
				n.DriverVersion)
		case !pair.Fits:
			d.Object(d.ref, "HOST-PNIC-FWMATRIX-007", "name newer firmware under sriov.firmware", "firmware %s of %s is too old for its driver: %s",
				version, b.Files[psid], documented)
		}
	}
}

// loaded plans to check, after the last reboot, which firmware cards run: cards with new firmware, and cards whose mode a boot may
// change if their firmware is set. VMs get no VF before.
func (d *driverPart) loaded(updates map[string]nic.Burn, keys []string) (ids []string) {
	cards := slices.AppendSeq(slices.Clone(d.unloaded), maps.Keys(updates))
	for _, p := range d.all {
		if card := nic.CardAddress(p.PCI); nic.HasCPU(p.NIC) && slices.Contains(keys, d.set(backends.KindFirmware, card).ID()) {
			cards = append(cards, card)
		}
	}
	slices.Sort(cards)
	for _, card := range slices.Compact(cards) {
		ssh := d.shellAfter(d.last)
		set := d.set(backends.KindActiveFirmware, card)
		d.Add(plan.Change{Setting: set, From: backends.Unknown(ssh), To: backends.ValueOf(true), State: true, Within: []string{ssh},
			After: draft.IDs(d.last),
			Why: "read after the reboot: a card that keeps its power over a reboot loads new firmware, or another mode, only when the server was " +
				"without power; " +
				"until then VMs of this host get no VF"})
		ids = append(ids, set.ID())
	}
	return ids
}

// update plans writing the files, after the firmware keys and before the reboot that loads both.
func (d *driverPart) update(updates map[string]nic.Burn, keys []string) (ids []string) {
	for _, card := range slices.Sorted(maps.Keys(updates)) {
		ssh := d.shell()
		c := plan.Change{Setting: d.set(backends.KindFirmwareImage, card), From: backends.Unknown(ssh), To: backends.Unknown(ssh),
			Late:   backends.ValueOf(updates[card]),
			Within: []string{ssh}, After: append(draft.IDs(d.first), keys...), Disrupts: []plan.Disruption{plan.HostReboot},
			Why: "only the image of its own board (PSID), only a newer one, never with a flag that forces it; it takes minutes, the card runs on " +
				"the old firmware until " +
				"the reboot, and an interrupted update leaves that in place",
			Irreversible: "rollback leaves the newer firmware on the card: the older one may have published vulnerabilities"}
		d.Add(c)
		ids = append(ids, c.ID())
	}
	return ids
}
