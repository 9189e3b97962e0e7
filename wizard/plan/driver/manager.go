package driver

import (
	"slices"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/nic"
	"github.com/rdma-setup/rdma-setup/wizard/plan/draft"
)

// managerCheck is the row of the catalogue about the NVIDIA vGPU Manager.
const managerCheck = "HOST-VGPUMGR-019"

// VGPUManager plans the NVIDIA vGPU Manager of a host from the file that the answers name, if the host lacks it or has an older one. It
// runs after a reboot, and only then the GPUs can serve for vGPUs: the graphics type is set after it (NVIDIA AI Enterprise User Guide,
// "Installing the NVIDIA Virtual GPU Manager on VMware vSphere": install in maintenance mode, reboot, then change the graphics type).
// It reports whether
// the host can be set up.
func VGPUManager(b *draft.Draft, h *draft.Host) bool {
	d := &driverPart{Draft: b, h: h, ref: backends.HostRef(h.Name), sys: h.System}
	if d.sys == nil || !d.sys.Image().Known() {
		b.Refuse(d.ref, managerCheck, "check the host's connection, and that the account has Host.Config.Settings, or take gpudirect.manager out",
			"its VIBs could not be read through esxcli")
		return false
	}
	c, ok := d.manager()
	if !ok || c == nil {
		return ok
	}
	d.first = d.reboot(1, "the NVIDIA vGPU Manager runs after it")
	d.remediated([]backends.Component{*c}, nil)
	d.component(*c, d.first)
	d.last = d.reboot(2, "the graphics types of GPUs take effect at the next boot")
	d.Brackets[d.last].After = append(d.Brackets[d.last].After, d.first)
	h.Ready = append(h.Ready, draft.IDs(d.first, d.last)...)
	kind := backends.KindComponent
	if h.Imaged() {
		kind = backends.KindImageComponent
	}
	h.Manager = d.set(kind, c.Name).ID()
	return true
}

func (d *driverPart) manager() (*backends.Component, bool) {
	file := d.Answers.GPUDirect.Manager
	_, has := backends.VGPUManager(d.sys.Image().Value)
	if d.h.Imaged() {
		return d.imageManager(file, has)
	}
	if nic.ForImage(file) {
		d.Refuse(d.ref, managerCheck, "name its path on a datastore in gpudirect.manager: /vmfs/volumes/DATASTORE/FILE",
			"no image manages it, and it takes nothing from %s", file)
		return nil, false
	}
	why := "the host was not asked for it"
	for _, o := range d.sys.Offers {
		switch {
		case o.Path != file:
		case o.Error != "":
			why = o.Error
		case !backends.IsVGPUManager(o.Name):
			why = "it holds no NVIDIA vGPU Manager (NVD-* or NVIDIA-*), but " + o.Name
		case has.Version != "" && !nic.Older(has.Version, o.Version):
			return nil, true
		default:
			if err := nic.Accepts(d.sys, o); err != nil {
				d.Object(d.ref, "HOST-ACCEPT-014",
					"use the component signed for this level, or decide about the level yourself: esxcli software acceptance set", "%v", err)
			}
			return &o, true
		}
	}
	d.Refuse(d.ref, managerCheck, "check gpudirect.manager, and that every host sees that datastore", "%s cannot be installed: %s", file, why)
	return nil, false
}

// imageManager is manager for a host whose cluster is managed by an image: the image gets the component.
func (d *driverPart) imageManager(file string, has backends.VIB) (*backends.Component, bool) {
	cluster := d.Inventory.Cluster(d.h.Cluster)
	c, named := nic.Bundle(file)
	switch {
	case !named || !backends.IsVGPUManager(c.Name):
		d.refuseImage(
			"name NVIDIA's offline bundle in gpudirect.manager: https://SERVER/NVD-AIE-800_VERSION_BUILD.zip, or its path on this computer",
			"is managed by an image, and %s is not an offline bundle with the NVIDIA vGPU Manager for it", file)
		return nil, false
	case cluster == nil || cluster.Image == nil || cluster.Image.Error != "":
		why := "nobody asked"
		if cluster != nil && cluster.Image != nil {
			why = cluster.Image.Error
		}
		d.refuseImage(readableImage, "the image that manages it could not be read: %s", why)
		return nil, false
	case has.Version != "" && !nic.Older(has.Version, c.Version):
		return nil, true
	}
	for _, o := range d.sys.Offers {
		if o.Error != "" && o.Path == file {
			d.refuseImage("correct gpudirect.manager", "the offline bundle cannot be read on this computer: %s", o.Error)
			return nil, false
		}
	}
	if slices.Contains(cluster.Image.Offered[c.Name], c.Version) {
		c.Path = "" // vCenter need not fetch it
	}
	return &c, d.editable(cluster.Image, []backends.Component{c})
}
