package guest

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/assets"
	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
	"github.com/rdma-setup/rdma-setup/wizard/plan/current"
)

const (
	setOFED   = "ofed" // the set of packages that MLNX_OFED is built with
	checkOFED = "GST-OFED-024"
)

// ofed plans MLNX_OFED instead of the distribution's packages (RoCE SR-IOV Setup and Performance Study on vSphere 7.x, VMware,
// 2022, 2.4): the build dependencies of its installer, then the archive made for the guest. Everything else in the guest comes
// after it, because it replaces and reloads drivers and libraries.
func (g *guestPart) ofed(d assets.Distro, known bool) {
	want, doca, ok := g.archive()
	if !ok || g.asked && !known {
		return
	}
	from := g.until
	if g.asked {
		from = current.OFED(g.v.Guest)
		if current.Same(backends.KindOFED, from, want) {
			g.NoteEach(g.v.Name, "%s is installed and has its own libraries and tools: no packages are installed", g.v.Guest.MOFED)
			return
		}
	}
	g.coming = true
	needs, needed := g.until, g.until
	if g.asked {
		names := backends.Each(d.OFED, func(p string) string { return strings.ReplaceAll(p, "KERNEL", g.v.Guest.Kernel) })
		slices.Sort(names)
		needs, needed = current.Members(g.v.Guest, backends.KindPackages, names), backends.ValueOf(backends.PackageSpec{Installed: names})
	}
	g.change(backends.KindPackages, setOFED, needs, needed,
		"what MLNX_OFED is built with, and what its modules depend on (kernel-modules-extra, tk)", nil)
	g.change(backends.KindOFED, "", from, want, g.ofedWhy(), func(c *plan.Change) {
		c.Disrupts = []plan.Disruption{plan.GuestNetwork}
		c.After = append(c.After, g.id(backends.KindPackages, setOFED))
		var prior backends.OFEDSpec
		if from.Known() && !from.IsAbsent() && from.Decode(&prior) == nil && prior.Version != "" {
			c.Irreversible = "nothing says where the archive of " + prior.Version + " is, which was there before"
		}
	})
	id := g.id(backends.KindOFED, "")
	g.cycled, g.until, g.after = true, backends.Unknown(id), append(slices.Clone(g.after), id)
	if doca {
		g.NoteEach(g.v.Name,
			"DOCA-OFED is installed from the repository in the package doca-host (doca-ofed): it takes ten minutes and more, builds kernel "+
				"modules, and replaces the distribution's RDMA packages, which are recorded and restored by a rollback; it stops if another package "+
				"depends on them")
	} else {
		g.NoteEach(g.v.Name,
			"MLNX_OFED is installed by mlnxofedinstall --force --add-kernel-support --without-fw-update: it takes ten minutes and more, builds "+
				"kernel modules, and replaces the distribution's RDMA packages, which are recorded and restored by a rollback; it stops if another "+
				"package depends on them")
	}
	g.NoteEach(g.v.Name,
		"openibd is restarted instead of the guest: its RDMA devices and their interfaces are away meanwhile, and programs that use RDMA "+
			"keep it from that; packages that the installer downloads itself stay after a rollback")
}

// archive returns the archive made for the guest, as the value to set, and whether it is DOCA's. It is unknown until the guest
// was read.
func (g *guestPart) archive() (to backends.Value, doca, ok bool) {
	if !g.asked {
		return g.until, false, true
	}
	f := g.v.Guest
	var why []string
	for _, file := range g.Answers.Guest.OFED {
		a, err := answers.ParseOFED(file)
		if err == nil {
			err = a.Fits(f.OS, f.Version, f.Arch)
		}
		if err != nil {
			why = append(why, path.Base(file)+": "+err.Error())
			continue
		}
		return backends.ValueOf(backends.OFEDSpec{Version: a.Version, Archive: file}), a.DOCA, g.fitting(a, file)
	}
	g.Refuse(g.ref, "", "name the archive for "+cmp.Or(f.OS, "its system")+f.Version+" "+f.Arch+
		" under guest.ofed too, or remove guest.ofed: the distribution's drivers support RoCE too",
		"no archive in guest.ofed is for its system: %s", strings.Join(why, "; "))
	return backends.Absent, false, false
}

// fitting refuses an archive that would fail in the guest.
func (g *guestPart) fitting(a answers.OFEDArchive, file string) bool {
	f, ok := g.v.Guest, true
	if f.MOFED == a.Version && !f.OFEDUnfinished {
		return true // already installed
	}
	if there, read := f.Archives[file]; read && !there {
		g.Refuse(g.ref, "", "put it there, or on a share that the guests mount, and name its path as the guests see it",
			"%s is not there, or cannot be read", file)
		ok = false
	}
	g.bootUnread()
	if f.SecureBoot != nil && *f.SecureBoot {
		g.Object(g.ref, checkSecure,
			"enroll the key that signs modules in the guest (mokutil --import), or switch Secure Boot of the VM off, or stay with the "+
				"distribution's drivers",
			"Secure Boot is on: the modules of MLNX_OFED are built in the guest and not loaded")
		ok = ok && slices.Contains(g.Options.Skip, checkSecure)
	}
	if answers.NewerOFED(f.MOFED, a.Version) {
		g.Object(g.ref, checkOFED, "name an archive of that version or a later one", "has %s already, which is later than %s", f.MOFED, a.Version)
		ok = ok && slices.Contains(g.Options.Skip, checkOFED)
	}
	return ok
}

// ofedWhy names what is removed, if it is known.
func (g *guestPart) ofedWhy() string {
	const why = "as asked for by guest.ofed, in place of the distribution's"
	if !g.asked {
		return why
	}
	var gone []string
	if d, ok := assets.DistroFor(g.v.Guest.OS, g.v.Guest.Version, g.v.Guest.Like); ok {
		gone = current.Held(d.Packages, func(p string) bool { return g.v.Guest.Packages[p] != "" })
	}
	if len(gone) == 0 {
		return why + " RDMA packages, of which none is installed"
	}
	return why + " " + strings.Join(gone, ", ")
}

// afterOFED reports whether more can be planned for GPUs now: access to their memory depends on MLNX_OFED.
func (g *guestPart) afterOFED() bool {
	f := g.v.Guest
	if f.NVIDIA != nil && f.NVIDIA.Driver != "" && !f.NVIDIA.DMABuf {
		g.Object(g.ref, checkPeer,
			"remove the NVIDIA driver first and let gpudirect.driver bring it back after MLNX_OFED, or take its open kernel modules",
			"the NVIDIA driver was installed before MLNX_OFED: its nvidia-peermem is built for the distribution's ib_core and will not load")
		return false
	}
	if f.NVIDIA == nil {
		return true
	}
	g.cudaPerftest("")
	g.modulesFor(g.until, "how the NIC accesses GPU memory depends on MLNX_OFED")
	return false
}
