package driver

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/nic"
	"github.com/rdma-setup/rdma-setup/wizard/plan/draft"
)

// ATS plans Address Translation Services on the RDMA card if the answers request it: with ATS a card requests translations from the
// IOMMU itself, and switches can forward its requests directly (NVIDIA, ATS and ACS configuration). For a card that is passed
// through, the key is set while the host still has the card; afterwards only the guest can read it.
func ATS(b *draft.Draft, h *draft.Host) {
	if !b.Answers.GPUDirect.ATS {
		return
	}
	if b.Virtual() {
		for _, n := range h.Ports {
			if n == nil || h.Shell != "" {
				continue
			}
			if r := nic.FirmwareOf(nic.Of(n.Driver)); r != nil {
				b.NoteEach(h.Name, "%s of %s was not read: its VFs exist, and SSH is not started for this key alone; in the ESXi shell: "+r.Query,
					r.ATS, n.Device, n.PCI, r.ATS)
			}
		}
		return
	}
	d := &driverPart{Draft: b, h: h, ref: backends.HostRef(h.Name), sys: h.System}
	var r *backends.FirmwareRules
	var cards []string
	for _, v := range b.VMs {
		for _, card := range v.Cards {
			if v.Host != h.Name {
				continue
			}
			d.fam = nic.OfCard(card.Vendor)
			switch r = nic.FirmwareOf(d.fam); {
			case r == nil:
				b.Refuse(d.ref, "HOST-PNIC-DRIVER-006", "set gpudirect.ats to false", "no firmware tool is known for its RDMA card at %s", card.Address)
				return
			case card.Active:
				b.NoteEach(h.Name,
					"%s of [its RDMA card was not read: the card is|their RDMA cards was not read: the cards are] passed through already; "+
						"in the guest: "+r.Query+" (a change takes a reboot of the host)", r.ATS, "DEVICE", r.ATS)
			case !slices.ContainsFunc(cards, func(at string) bool { return nic.CardAddress(at) == nic.CardAddress(card.Address) }):
				cards = append(cards, card.Address)
			}
		}
	}
	if len(cards) == 0 {
		return
	}
	why := "nobody asked"
	if d.sys != nil {
		why = cmp.Or(d.sys.VIBs.Reason(), d.sys.NextVIBs.Reason(), d.sys.Acceptance.Reason())
	}
	if why != "" {
		b.Refuse(d.ref, "HOST-CONN-001",
			"check the host's connection, and that the account has Host.Config.Settings, or set gpudirect.ats to false",
			"its firmware tools could not be read through esxcli: %s", why)
		return
	}
	d.cardATS(cards, r)
}

// cardATS sets the key between a reboot that activates the tools, if they are missing, and the one that enables passthrough.
func (d *driverPart) cardATS(cards []string, r *backends.FirmwareRules) {
	install, ok := d.components(true)
	if !ok {
		return
	}
	round := 1
	if !nic.ToolsRun(d.fam, d.sys) {
		d.first = d.reboot(round, "the firmware tools run after it")
		round++
	}
	install = slices.DeleteFunc(install, func(c backends.Component) bool { return !d.tool(c.Name) })
	d.remediated(install, nil)
	for _, c := range install {
		d.component(c, d.first)
	}
	var set []string
	for _, pci := range cards {
		fw, ok := d.setFirmware(pci, map[string]string{r.ATS: "1"},
			r.ATS+"=1 lets the card ask the IOMMU itself (NVIDIA: for GPUDirect RDMA in VMs); read when it is due",
			"the card is its VM's then; "+fmt.Sprintf(r.Undo, pci, r.ATS+"=0")+" and a reboot of the host undo it")
		if !ok {
			return
		}
		set = append(set, fw)
	}
	d.last = d.reboot(round, "ATS of the RDMA card takes effect at the next boot")
	d.Brackets[d.last].After = draft.IDs(append([]string{d.first}, set...)...)
	d.h.Ready = append(d.h.Ready, draft.IDs(d.first, d.last)...)
}
