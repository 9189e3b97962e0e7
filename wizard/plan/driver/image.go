package driver

import (
	"cmp"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/nic"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
	"github.com/rdma-setup/rdma-setup/wizard/plan/draft"
)

// check is the row of the catalogue about images.
const check = "VC-VLCM-008"

// readableImage is the remedy for an image that cannot be read.
const readableImage = "give the account the VcIntegrity privileges of rdma-setup generate role at the root of the inventory; vCenter 7.0 " +
	"U2 or later is needed"

// imageComponents determines the components that the image of the host's cluster needs.
func (d *driverPart) imageComponents(firmware bool) ([]backends.Component, bool) {
	cluster := d.Inventory.Cluster(d.h.Cluster)
	img := &backends.ClusterImage{Error: "nobody asked"}
	if cluster != nil && cluster.Image != nil {
		img = cluster.Image
	}
	if img.Error == "" {
		needs := nic.NeededInImage(d.fam, d.sys, img, d.Answers.SRIOV.Components, firmware)
		if len(needs.Lacking) > 0 {
			return d.refuseImage(
				"name their offline bundles under sriov.components (https://SERVER/COMPONENT_VERSION_BUILD.zip, or files on this computer), "+
					"or import them: Lifecycle Manager, Actions, Import Updates",
				"is managed by an image; the firmware has to be set for VFs, and neither the image nor a depot of vCenter has %s",
				strings.Join(needs.Lacking, " and "))
		}
		if len(needs.Components) == 0 {
			return nil, true
		}
		for _, o := range d.sys.Offers {
			if o.Error != "" && slices.ContainsFunc(needs.Components, func(c backends.Component) bool { return c.Path == o.Path }) {
				return d.refuseImage("correct sriov.components", "an offline bundle cannot be read on this computer: %s", o.Error)
			}
		}
		d.upgrades = needs.Driver
		return needs.Components, d.editable(img, needs.Components)
	}
	if len(nic.Tools(d.fam)) == 0 || !firmware && len(d.Answers.SRIOV.Components) == 0 ||
		nic.ToolsRun(d.fam, d.sys) && len(d.Answers.SRIOV.Components) == 0 {
		return nil, true
	}
	return d.refuseImage(readableImage,
		"the image that manages it could not be read: %s", img.Error)
}

func (d *driverPart) refuseImage(remedy, format string, args ...any) ([]backends.Component, bool) {
	d.Refuse(backends.ClusterRef(d.h.Cluster), check, remedy, format, args...)
	return nil, false
}

// noteUnused names the packages in the answers that the host cannot use: an image gets packages from URLs or from files on this
// computer, a host without an image from datastores.
func (d *driverPart) noteUnused() {
	imaged := d.h.Imaged()
	unused := slices.DeleteFunc(slices.Clone(d.Answers.SRIOV.Components),
		func(location string) bool { return nic.ForImage(location) == imaged })
	switch {
	case len(unused) == 0:
	case imaged:
		d.NoteEach(d.h.Name,
			"managed by an image, which takes nothing from datastores: %s is not installed; name the URL of its offline bundle, its path on "+
				"this computer, or import it: Lifecycle Manager, Actions, Import Updates", strings.Join(unused, ", "))
	default:
		d.NoteEach(d.h.Name, "not managed by an image: %s is not installed; name its path on a datastore", strings.Join(unused, ", "))
	}
}

// editable refuses images that this program must not edit, and remediation that would do more than planned.
func (d *driverPart) editable(img *backends.ClusterImage, install []backends.Component) bool {
	edits := slices.ContainsFunc(install, func(c backends.Component) bool { return img.Components[c.Name] != c.Version })
	by := "add " + named(install) + " to the image by the vendor's way, remediate the hosts, then plan again"
	switch i := slices.IndexFunc(img.Drafts, func(d backends.ImageDraft) bool {
		return !slices.ContainsFunc(install, func(c backends.Component) bool { return img.Left(d, c.Name) })
	}); {
	case edits && len(img.Hardware) > 0:
		d.refuseImage(by, "its image holds firmware of the hardware support manager %s, which decides which drivers and tools fit it",
			strings.Join(img.Hardware, ", "))
		return false
	case edits && img.AddOn != "":
		d.refuseImage(by, "its image holds the vendor add-on %s, which brings the vendor's own drivers and tools", img.AddOn)
		return false
	case edits && i >= 0:
		d.refuseImage("let "+img.Drafts[i].Owner+" save or discard that draft (cluster, Updates, Image), then plan again",
			"%s edits its image; that draft stays as it is", img.Drafts[i].Owner)
		return false
	case img.Power != keepPower:
		d.refuseImage("set it in the remediation settings of the cluster: VM power state, Do not change power state",
			"remediation would change the power state of "+
				"VMs (%s)", cmp.Or(img.Power, "not read"))
		return false
	case img.QuickBoot:
		d.refuseImage("switch Quick Boot off in the remediation settings of the cluster",
			"remediation restarts hosts by Quick Boot, with which the settings of cards do not take effect")
		return false
	}
	return true
}

// keepPower is the only policy under which hosts are remediated (Esx.Settings.Clusters.Policies.Apply).
const keepPower = "DO_NOT_CHANGE_VMS_POWER_STATE"

func named(list []backends.Component) string {
	return strings.Join(backends.Each(list, func(c backends.Component) string { return c.Name + " " + c.Version }), ", ")
}

// editImage plans components in the image, once per cluster. Hosts are remediated after all of them, to avoid a reboot for each.
func (d *driverPart) editImage(install []backends.Component) {
	for _, c := range install {
		set := backends.Setting{Target: backends.ClusterRef(d.h.Cluster), Kind: backends.KindImageComponent, Name: c.Name}
		planned := func(p plan.Change) bool { return p.ID() == set.ID() }
		from := "from a depot of vCenter"
		switch {
		case nic.IsFile(c.Path):
			from = "from " + c.Path + " on this computer, which serves it to vCenter by HTTP while vCenter imports it, and keeps it"
			d.Note("vCenter fetches offline bundles from this computer by HTTP, at a port that is open while it does: no firewall may prevent that")
		case c.Path != "":
			from = "from " + c.Path + ", which vCenter fetches and keeps"
		}
		if !slices.ContainsFunc(d.Plan.Changes, planned) &&
			d.Add(plan.Change{Setting: set, From: d.Now(set), To: backends.ValueOf(c.Version), Irreversible: d.oneWay(c),
				Why: from + "; the image belongs to the whole cluster, and its hosts that are not remediated stop being compliant"}) {
			d.ofAll()
		}
		if slices.ContainsFunc(d.Plan.Changes, planned) {
			d.before = append(d.before, set.ID())
		}
	}
}

// oneWay returns why a rollback does not remove a component, "" if it removes it.
func (d *driverPart) oneWay(c backends.Component) string {
	if slices.Contains(d.upgrades, c.Name) {
		return "rollback does not downgrade the driver: an image gets an older driver only with its base image or manually (KB 440252, KB 320562)"
	}
	return ""
}

// imageComponent plans the remediation of the host, which reboots it.
func (d *driverPart) imageComponent(c backends.Component, within string) {
	set := d.set(backends.KindImageComponent, c.Name)
	d.Add(plan.Change{Setting: set, From: d.Now(set), To: backends.ValueOf(c.Version), Within: []string{within},
		After:    slices.Clone(d.before),
		Disrupts: []plan.Disruption{plan.HostReboot}, Irreversible: d.oneWay(c),
		Why: "Lifecycle Manager remediates this host alone, with the whole image of its cluster, and accepts VMware's license terms " +
			"(EULA) for it"})
}

// ofAll adds a note that the image applies to all hosts of its cluster.
func (d *driverPart) ofAll() {
	var others []string
	for _, h := range d.Inventory.Hosts {
		if h.Cluster == d.h.Cluster && d.Part(h.Name) == nil {
			others = append(others, h.Name)
		}
	}
	if len(others) > 0 {
		d.Note(
			"%s: the image changes for the whole cluster, also for %s: hosts of this plan are remediated, those are not compliant until somebody "+
				"remediates them", d.h.Cluster, strings.Join(others, ", "))
	}
	d.Note("%s: --limit confines which hosts are remediated and rebooted; it cannot confine the image, which changes for the whole cluster",
		d.h.Cluster)
}

// remediated plans what comes before the remediation of a host: the image, and settings that take effect at the next boot,
// because the remediation reboots the host.
func (d *driverPart) remediated(install []backends.Component, body []plan.Change) {
	if !d.h.Imaged() {
		return
	}
	d.editImage(install)
	if d.first != "" {
		return
	}
	for _, c := range body {
		d.before = append(d.before, draft.IDs(c.ID())...)
	}
}
