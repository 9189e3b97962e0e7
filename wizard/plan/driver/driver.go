// Package driver plans what a host needs for the driver of its RDMA NIC: components, firmware, module parameters, pause, with as
// few reboots as possible.
package driver

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/nic"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/plan/current"
	"github.com/rdma-setup/rdma-setup/wizard/plan/draft"
	"github.com/rdma-setup/rdma-setup/wizard/sizing"
)

// A driverPart plans the driver and firmware of one host's RDMA NIC.
type driverPart struct {
	*draft.Draft
	h   *draft.Host
	as  *backends.Host // the host as it will be: ports set to InfiniBand count as ports of the driver
	ref backends.Ref
	sys *backends.HostSystem
	fam nic.Family
	vfs bool   // VFs are requested, not only PFC
	all []port // the chosen ports that belong to the family, by rail

	first string // id of the reboot that activates the firmware tools, "" if none is needed
	last  string // id of the reboot after which everything is active, "" if none is needed

	unloaded []string // cards whose flash holds the requested firmware, and that run an older one

	upgrades []string // components of an image that replace a driver
	before   []string // ids of changes before a remediation, which reboots the host
}

// A port is a chosen port of a host.
type port struct {
	*backends.NIC
	want int // VFs
}

// Plan plans components, firmware, module parameters and reboots of a host: one round for all rails of a driver.
func Plan(b *draft.Draft, h *draft.Host) {
	var drivers []string
	for _, n := range h.Ports {
		if n != nil && !slices.Contains(drivers, n.Driver) {
			drivers = append(drivers, n.Driver)
		}
	}
	for _, name := range drivers {
		newPart(b, h, name).plan()
	}
}

func newPart(b *draft.Draft, h *draft.Host, name string) *driverPart {
	d := &driverPart{Draft: b, h: h, ref: backends.HostRef(h.Name), sys: h.System, vfs: b.Virtual(), fam: nic.Of(name)}
	var turns []string
	for i, n := range h.Ports {
		if n != nil && n.Driver == name {
			d.all = append(d.all, port{n, b.Rails[i].SRIOV.VFs})
			if n.Hidden != "" {
				turns = append(turns, nic.CardAddress(n.PCI))
			}
		}
	}
	d.as = nic.WithHidden(h.Host, turns)
	return d
}

func (d *driverPart) devices() string {
	return strings.Join(backends.Each(d.all, func(p port) string { return p.Device }), " and ")
}

func (d *driverPart) nics() []*backends.NIC {
	return backends.Each(d.all, func(p port) *backends.NIC { return p.NIC })
}

func (d *driverPart) plan() {
	b, h := d.Draft, d.h
	lossless := d.fam != nil && d.fam.Lossless() != nil
	switch {
	case !lossless && !d.vfs && b.Answers.QoS.Lossless == answers.LosslessPause:
		d.pause(last(h.Reboots))
		return
	case !lossless:
		b.Refuse(d.ref, "HOST-PNIC-DRIVER-006", "set qos.lossless to none or pause, or configure DCBX on the switch",
			"%s has driver %s; rdma-setup sets PFC only through parameters of %s", d.devices(), d.all[0].Driver, nic.WithLossless())
		return
	}
	if why := d.unread(); why != "" {
		b.Refuse(d.ref, "HOST-CONN-001", "check the host's connection, and that the account has Host.Config.Settings",
			"its driver could not be read through esxcli: %s", why)
		return
	}
	core, rdma, ok := d.params()
	if !ok {
		return
	}
	method, ok := d.method()
	if !ok {
		return
	}
	if d.vfs && method == d.byParameter() {
		if core, ok = d.withVFs(core); !ok {
			return
		}
	}
	d.arrange(core, rdma, method)
	if b.Answers.QoS.Lossless == answers.LosslessPause {
		d.pause(d.last)
	}
}

// unread returns why a fact that the plan needs was not read, "" if all were: parameters always, the images for VFs and if the
// answers name components.
func (d *driverPart) unread() string {
	if d.sys == nil {
		return "nobody asked"
	}
	why := []string{d.sys.Modules[d.fam.Driver()].Reason(), d.sys.Modules[d.fam.RDMA()].Reason()}
	if d.vfs || len(d.Answers.SRIOV.Components) > 0 {
		why = append(why, d.sys.VIBs.Reason(), d.sys.NextVIBs.Reason(), d.sys.Acceptance.Reason())
	}
	return cmp.Or(why...)
}

// params returns the parameters of both modules: with PFC if it was requested, otherwise as they are.
func (d *driverPart) params() (core, rdma map[string]string, ok bool) {
	core, rdma = d.sys.Module(d.fam.Driver()).Params, d.sys.Module(d.fam.RDMA()).Params
	switch d.Answers.QoS.Lossless {
	case answers.LosslessPause:
		return d.withoutPFC(core), rdma, true
	case answers.LosslessPFC:
	default:
		return core, rdma, true
	}
	mask, err := sizing.PFCMask(d.Answers.QoS.Priority)
	if err != nil {
		d.Refuse(d.ref, "HOST-PFC-001", "correct qos.priority", "%v", err)
		return nil, nil, false
	}
	core, rdma, missing := nic.Lossless(d.h.Host, d.fam, nic.Class{Mask: mask, DSCP: d.Answers.QoS.DSCP, ECN: d.Answers.QoS.ECN})
	for _, key := range missing {
		if key.PFC {
			d.Refuse(d.ref, "HOST-PFC-001", "update the driver, or set qos.lossless to none", "its driver has no parameter %s", key.Name)
			return nil, nil, false
		}
		d.NoteEach(d.h.Name, "[its|their] driver has no parameter %s, which is skipped", key.Name)
	}
	if others := nic.Others(d.as, d.fam, d.nics()...); len(others) > 0 {
		p := d.fam.Lossless()
		d.NoteEach(d.h.Name, "%s, %s, %s and %s apply to every %s port, so also to %s: global pause is disabled there", p.PFCTx, p.PFCRx, p.Trust,
			p.ECN, d.fam.Name(), strings.Join(others, ", "))
	}
	changes := current.Same(backends.KindModuleParams, current.Params(core), current.Params(d.sys.Module(d.fam.Driver()).Params))
	if pausing := nic.Pausing(d.h.Host, d.fam, d.nics()...); len(pausing) > 0 && !changes {
		d.Object(d.ref, "HOST-PFC-001", "set qos.lossless to pause or none, or bring that storage's traffic into the PFC class first",
			"PFC would disable global pause for storage on the same driver: %s", strings.Join(pausing, ", "))
	}
	if !d.Answers.Confirmed.SwitchPFC {
		d.Note("the switch must protect priority %d by PFC and trust DSCP %d; this cannot be detected (confirmed.switch_pfc)",
			d.Answers.QoS.Priority, d.Answers.QoS.DSCP)
	}
	return core, rdma, true
}

// The ways to create VFs on a port. Only one of them is used on a port, because the later setting would replace the earlier one.
const byVCenter = "vCenter's SR-IOV setting"

func (d *driverPart) byParameter() string { return d.fam.VFs().Param + " of " + d.fam.Driver() }

// method returns how the chosen ports get their VFs: the way that one of them uses now, else the driver's parameter.
func (d *driverPart) method() (string, bool) {
	if !d.vfs {
		return "", true
	}
	list := d.fam.VFs().Param
	if !slices.Contains(d.sys.Module(d.fam.Driver()).Known, list) {
		d.Refuse(d.ref, "HOST-MAXVFS-ORDER-006", "update the "+d.fam.Name()+" driver", "its driver has no parameter %s", list)
		return "", false
	}
	set := nic.VFParam(d.sys, d.fam)
	asked := func(p port) bool { return p.SRIOV != nil && p.SRIOV.Enabled && p.SRIOV.Requested > 0 }
	if set != "" || !slices.ContainsFunc(d.all, asked) {
		for _, p := range d.all {
			if asked(p) && p.SRIOV.Requested != p.SRIOV.VFs {
				d.NoteEach(d.h.Name, "vCenter asks for %d VFs of %s as well; %s is written, and the last setting applies", p.SRIOV.Requested, p.Device,
					list)
			}
		}
		return d.byParameter(), true
	}
	for _, p := range d.all {
		s := backends.SRIOV{}
		if p.SRIOV != nil {
			s = *p.SRIOV
		}
		if asked(p) {
			d.NoteEach(d.h.Name, "%s got its VFs from %s; %s stays unset, because the two must not be mixed on one port", p.Device, byVCenter,
				d.byParameter())
		}
		if s.Requested != p.want && s.Max < p.want {
			d.Refuse(d.ref, "HOST-VF-COUNT-010", "switch SR-IOV off for "+p.Device+" in vCenter and plan again: "+list+
				" and the firmware are set then",
				"vCenter asks for %d VFs of %s and %d are wanted, but the firmware provides %d", s.Requested, p.Device, p.want, s.Max)
			return "", false
		}
	}
	return byVCenter, true
}

func (d *driverPart) withVFs(core map[string]string) (map[string]string, bool) {
	out, err := nic.WithVFs(d.as, d.fam, core, d.wish())
	if err != nil {
		d.Refuse(d.ref, "HOST-MAXVFS-ORDER-006", "look at: esxcli system module parameters list -m "+d.fam.Driver(),
			"%s cannot be worked out: %v", d.fam.VFs().Param, err)
		return nil, false
	}
	list, err := nic.VFs(d.as, d.fam, d.wish())
	if err != nil {
		d.Refuse(d.ref, "HOST-MAXVFS-ORDER-006", "", "%v", err)
		return nil, false
	}
	if numbers, ports, is := nic.Shifted(d.as, d.fam); is {
		d.NoteEach(d.h.Name,
			"%s has %d numbers for %d ports: a card was added or removed, and each number now belongs to another port; the list is rewritten "+
				"(KB 309346)", d.fam.VFs().Param, numbers, ports)
	}
	sum := 0
	for _, n := range list {
		sum += n
	}
	if sizing.VectorsFor(sum) > sizing.VectorLimit {
		d.Refuse(d.ref, "HOST-VF-INTR-012", "ask for fewer VFs", "%d VFs need %d interrupt vectors; %d are available", sum,
			sizing.VectorsFor(sum), sizing.VectorLimit)
		return nil, false
	}
	if nic.LowFunctionEmpty(list) {
		d.NoteEach(d.h.Name, "VFs on a later port only: some hosts then create fewer than requested (KB 2039824)")
	}
	return out, true
}

// wish returns the VFs that the chosen ports should have, and those that VMs use on others.
func (d *driverPart) wish() nic.Wish {
	w := nic.Wish{VFs: map[string]int{}, Used: map[string]int{}}
	for _, p := range d.all {
		w.VFs[p.PCI] = p.want
	}
	for _, v := range d.Inventory.VMs {
		for _, a := range v.Adapters {
			if v.Host == d.h.Name && a.Type == "sriov" {
				w.Used[a.PF]++
			}
		}
	}
	return w
}

func (d *driverPart) cardVFs(card string) ([]nic.Port, error) {
	all, err := nic.VFs(d.as, d.fam, d.wish())
	if err != nil {
		return nil, err
	}
	var out []nic.Port
	for i, n := range nic.Ports(d.as, d.fam) {
		if nic.CardAddress(n.PCI) == card {
			out = append(out, nic.Port{PCI: n.PCI, VFs: all[i]})
		}
	}
	return out, nil
}

func (d *driverPart) set(kind backends.Kind, name string) backends.Setting {
	return backends.Setting{Target: d.ref, Kind: kind, Name: name}
}

func vfsWhy(ports ...port) string {
	of := backends.Each(ports, func(p port) string { return fmt.Sprintf("%d VFs on %s", p.want, p.Device) })
	return strings.Join(of, " and ") + " exist only if BIOS, firmware and driver all allow them"
}
