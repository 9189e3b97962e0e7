package driver

import (
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/nic"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
	"github.com/rdma-setup/rdma-setup/wizard/plan/draft"
)

// pause plans global pause only for the chosen pNICs (VMware, lossless network). Any driver supports it. It comes after the reboot
// that disables PFC, because both must not be active (Mellanox DOC-2581).
func (d *driverPart) pause(after string) {
	if d.h.System == nil {
		return
	}
	for _, p := range d.all {
		d.pauseOf(p, after)
	}
}

func (d *driverPart) pauseOf(p port, after string) {
	set := backends.Setting{Target: backends.HostRef(d.h.Name), Kind: backends.KindPause, Name: p.Device}
	from := d.Now(set)
	if !from.Known() {
		d.Refuse(set.Target, "HOST-PNIC-PAUSE-014", "set qos.lossless to none or pfc", "the pause parameters of %s could not be read", p.Device)
		return
	}
	d.Add(plan.Change{Setting: set, From: from, To: backends.ValueOf(backends.PauseSpec{Rx: true, Tx: true}), After: draft.IDs(after),
		Why: "global pause stops all traffic of a sender when the port is full; the switch port also needs flow control in both directions"})
	d.Note(
		"global pause acts between each host and its switch port: the switch must have flow control (802.3x) on for the RDMA ports, which " +
			"cannot be detected")
}

// withoutPFC removes PFC from a module's parameters if it is set: it would disable global pause.
func (d *driverPart) withoutPFC(core map[string]string) map[string]string {
	out, was := nic.WithoutPFC(d.fam, core)
	if was {
		d.NoteEach(d.h.Name, "PFC is disabled on every %s port, so also on %s: the answers ask for global pause, and the two exclude each other",
			d.fam.Name(),
			strings.Join(nic.Others(d.h.Host, d.fam, d.nics()...), ", "))
	}
	return out
}
