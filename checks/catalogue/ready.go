package catalogue

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	goversion "github.com/hashicorp/go-version"

	"github.com/rdma-setup/rdma-setup/assets"
	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/wizard/sizing"
)

// Ready checks a site against a release that its hosts are to be upgraded to: blockers fail, other required steps warn. The
// findings are in the order of the upgrade steps. The release is one of assets.Releases.
func Ready(ctx context.Context, f *checks.Facts, to assets.Release) []checks.Finding {
	r := readiness{to: to, version: goversion.Must(goversion.NewVersion(to.Version))}
	return checks.Ask(ctx, r.rows(), f, checks.Selection{})
}

// readiness checks a site against one release.
type readiness struct {
	to      assets.Release
	version *goversion.Version
}

func (r readiness) rows() []checks.Check {
	images := r.to.Fact("software of hosts")
	return []checks.Check{
		{ID: "READY-VCENTER-001", Scope: checks.VCenter, Fix: checks.Manual, Source: "vCenter Server Upgrade, Before Upgrading: vCenter is upgraded before its hosts",
			Remedy: "Upgrade vCenter first.", Run: r.vcenter},
		{ID: "READY-IMAGE-002", Scope: checks.Host, Fix: checks.Manual, Source: cmp.Or(images.Source, "unverified"), Unverified: images.Source == "",
			Remedy: "Convert the cluster to an image of vSphere Lifecycle Manager.", Run: r.images},
		{ID: "READY-PATH-003", Scope: checks.Host, Fix: checks.Manual, Source: "unverified; VMware Product Interoperability Matrix, Upgrade Path", Unverified: true,
			Remedy: "Look up the upgrade path in the interoperability matrix, and upgrade to the intermediate release first.", Run: r.path},
		{ID: "READY-CARD-004", Scope: checks.Host, Fix: checks.Manual, Unverified: true,
			Source: "unverified; drivers of each release by esxcli software vib list; Broadcom KB 391170 (devices that ESX 9.0 drops or restricts)",
			Remedy: "Replace the card, or leave the host at its release.", Run: r.cards},
		{ID: "READY-DRIVER-005", Scope: checks.Host, Fix: checks.Manual, Source: "Broadcom KB 78389: packages of drivers that were made for an older release may stop the upgrade",
			Remedy: "Add the vendor's package for the target release to the image, with the matching firmware.", Run: r.drivers},
		{ID: "READY-DVS-006", Scope: checks.Switch, Fix: checks.Manual, Source: "Broadcom KB 434420; vmware/terraform-provider-vsphere, pull request 2580 (9.0.0)",
			Remedy: "Upgrade the DVS when all hosts run the new release; this cannot be undone.", Run: r.switches},
		{ID: "READY-SLOT-007", Scope: checks.VM, Fix: checks.Manual, Source: "Broadcom KB 407595",
			Remedy: "Leave the hardware version as it is, or bind the guest's interface names to MAC addresses before it is raised.", Run: r.slots},
	}
}

// older reports whether a version is older than the release; ok is false if it cannot be read.
func (r readiness) older(version string) (older, ok bool) {
	v, err := goversion.NewVersion(version)
	if err != nil {
		return false, false
	}
	return v.Core().LessThan(r.version), true
}

// major returns the first number of the release.
func (r readiness) major() string { return strconv.Itoa(r.version.Segments()[0]) }

// vcenter requires a vCenter that is not older than the release. Since 7.0 U3 a vCenter manages hosts of every update of its own
// generation (vSphere Host Profiles 7.0, vCenter Server and ESXi Version Interoperability), apparently also later ones: there an
// older vCenter is a warning.
func (r readiness) vcenter(f *checks.Facts) []checks.Answer {
	t := f.VCenterRef()
	older, ok := r.older(f.Inventory.VCenter.Version)
	switch {
	case !ok:
		return []checks.Answer{{Target: t, Status: checks.Unknown, Evidence: fmt.Sprintf("vCenter reports the version %q", f.Inventory.VCenter.Version)}}
	case older && strings.HasPrefix(f.Inventory.VCenter.Version, r.major()+"."):
		return []checks.Answer{{Target: t, Status: checks.Warn,
			Evidence: fmt.Sprintf("vCenter %s: whether it manages hosts of %s, a newer release of its own generation, is unverified", f.Inventory.VCenter.Version, r.to.Name)}}
	case older:
		return []checks.Answer{{Target: t, Status: checks.Fail, Evidence: fmt.Sprintf("vCenter %s manages no hosts of %s", f.Inventory.VCenter.Version, r.to.Name)}}
	}
	return []checks.Answer{{Target: t, Status: checks.Pass, Evidence: "vCenter " + f.Inventory.VCenter.Version}}
}

// hosts checks every connected host that is older than the release.
func (r readiness) hosts(f *checks.Facts, ask func(h *backends.Host) (checks.Status, string)) []checks.Answer {
	var out []checks.Answer
	for _, h := range f.Connected() {
		a := checks.Answer{Target: backends.HostRef(h.Name)}
		if older, ok := r.older(h.Version); !ok {
			a.Status, a.Evidence = checks.Unknown, fmt.Sprintf("the host reports the version %q", h.Version)
		} else if !older {
			a.Status, a.Evidence = checks.Pass, "runs "+h.Version+" already"
		} else {
			a.Status, a.Evidence = ask(h)
		}
		out = append(out, a)
	}
	return out
}

func (r readiness) images(f *checks.Facts) []checks.Answer {
	said := r.to.Fact("software of hosts").Is
	return r.hosts(f, func(h *backends.Host) (checks.Status, string) {
		switch {
		case h.Imaged():
			return checks.Pass, "its cluster is managed by an image"
		case !strings.HasPrefix(said, "images: "):
			return checks.Pass, "software of hosts of " + r.to.Name + ": " + said
		}
		return checks.Warn, "its cluster is not managed by an image; " + strings.TrimPrefix(said, "images: ")
	})
}

// path warns of hosts that are more than one major release behind.
func (r readiness) path(f *checks.Facts) []checks.Answer {
	return r.hosts(f, func(h *backends.Host) (checks.Status, string) {
		from, to := goversion.Must(goversion.NewVersion(h.Version)).Segments()[0], r.version.Segments()[0]
		if to-from > 1 {
			return checks.Warn, fmt.Sprintf("runs %s: more than one major release before %s", h.Version, r.to.Name)
		}
		return checks.Pass, "runs " + h.Version
	})
}

// cards finds pNICs whose driver the release, or one before it, has dropped.
func (r readiness) cards(f *checks.Facts) []checks.Answer {
	all, err := assets.Releases()
	return r.hosts(f, func(h *backends.Host) (checks.Status, string) {
		if err != nil {
			return checks.Unknown, err.Error()
		}
		var gone []string
		for _, n := range h.NICs {
			for _, rel := range all {
				if older, ok := r.older(rel.Version); (older && ok || rel.Version == r.to.Version) && slices.Contains(rel.Removed, n.Driver) {
					gone = append(gone, fmt.Sprintf("%s (%s, %s): no driver since %s", n.Device, n.Model, n.Driver, rel.Name))
				}
			}
		}
		if len(gone) > 0 {
			return checks.Fail, strings.Join(gone, "; ")
		}
		rest := ""
		if r.major() == "9" {
			rest = "; Broadcom's lists of devices that it drops or restricts (KB 391170) are not evaluated"
		}
		return checks.Pass, fmt.Sprintf("no driver of its %d pNICs is known to be removed%s", len(h.NICs), rest)
	})
}

// drivers finds vendor packages, which are made for one release: their version names it after OEM.
func (r readiness) drivers(f *checks.Facts) []checks.Answer {
	return r.hosts(f, func(h *backends.Host) (checks.Status, string) {
		n := f.NIC(h)
		switch {
		case n == nil:
			return checks.Unknown, "its RDMA pNIC is not known"
		case strings.Contains(n.DriverVersion, "OEM"):
			return checks.Warn, fmt.Sprintf("%s: %s %s is the vendor's package for the release that it runs now (firmware %s)", n.Device, n.Driver, n.DriverVersion, n.Firmware)
		case strings.Contains(n.DriverVersion, "vmw"):
			return checks.Pass, fmt.Sprintf("%s: %s %s comes with ESXi", n.Device, n.Driver, n.DriverVersion)
		}
		return checks.Unknown, fmt.Sprintf("%s: %s %s: its version does not show whether it comes with ESXi or from the vendor; see: esxcli software vib list",
			n.Device, n.Driver, cmp.Or(n.DriverVersion, "of unknown version"))
	})
}

func (r readiness) switches(f *checks.Facts) []checks.Answer {
	newest := r.to.Fact("newest DVS version").Is
	var out []checks.Answer
	for _, a := range f.Answers.AllRails() {
		sw := f.Inventory.Switch(a.Switch.Name)
		if sw == nil {
			continue
		}
		status := checks.Pass
		if has, err := goversion.NewVersion(sw.Version); err != nil {
			status = checks.Unknown
		} else if has.LessThan(goversion.Must(goversion.NewVersion(newest))) {
			status = checks.Warn
		}
		out = append(out, checks.Answer{Target: backends.SwitchRef(sw.Name), Status: status,
			Evidence: fmt.Sprintf("version %s; hosts of %s support up to %s", sw.Version, r.to.Name, newest)})
	}
	return out
}

func (r readiness) slots(f *checks.Facts) []checks.Answer {
	found, _ := f.VMs()
	var out []checks.Answer
	for _, v := range found {
		a := checks.Answer{Target: backends.VMRef(v.Name), Status: checks.Pass, Evidence: fmt.Sprintf("vmx-%d, firmware %s", v.Hardware, v.Firmware)}
		if v.Firmware == "efi" && v.Hardware < sizing.HardwareSlots && r.to.Hardware >= sizing.HardwareSlots {
			a.Status = checks.Warn
			a.Evidence += fmt.Sprintf(": after an upgrade to %d or later its PCI devices get new slots, and interfaces of the guest may be renamed", sizing.HardwareSlots)
		}
		out = append(out, a)
	}
	return out
}
