package driver

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/nic"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
	"github.com/rdma-setup/rdma-setup/wizard/plan/current"
	"github.com/rdma-setup/rdma-setup/wizard/plan/draft"
)

// arrange orders what a host needs with as few reboots as possible: one that activates the firmware tools if they are missing,
// then the firmware, and one after which everything is active.
func (d *driverPart) arrange(core, rdma map[string]string, method string) {
	updates, ok := d.updates()
	if !ok {
		return
	}
	firmware := slices.ContainsFunc(d.all, d.unproven)
	tools := firmware || len(updates) > 0
	install, ok := d.components(tools)
	if !ok {
		return
	}
	if tools && !nic.ToolsRun(d.fam, d.sys) {
		d.first = d.reboot(1, "the firmware tools run after it")
	}
	var fw []string
	if firmware {
		if fw, ok = d.firmware(); !ok {
			return
		}
	}
	keys := fw
	fw = append(fw, d.update(updates, fw)...)
	missing := slices.DeleteFunc(slices.Clone(d.all), func(p port) bool {
		return !d.vfs || p.SRIOV != nil && p.SRIOV.Active && p.SRIOV.VFs == p.want
	})
	var body []plan.Change
	for module, to := range map[string]map[string]string{d.fam.Driver(): core, d.fam.RDMA(): rdma} {
		if !d.sys.Modules[module].Known() {
			continue
		}
		set := d.set(backends.KindModuleParams, module)
		body = append(body, plan.Change{Setting: set, From: d.Now(set), To: current.Params(to),
			Why: d.paramsWhy(module, to, method)})
	}
	slices.SortFunc(body, func(x, y plan.Change) int { return strings.Compare(x.Name, y.Name) })
	for _, p := range d.all {
		if set := d.set(backends.KindVFs, p.PCI); method == byVCenter {
			body = append(body, plan.Change{Setting: set, From: d.Now(set),
				To:  backends.ValueOf(backends.VFSpec{Enabled: true, VFs: p.want}),
				Why: "by " + byVCenter + ", as the VFs that are there"})
		}
	}
	body = slices.DeleteFunc(body, func(c plan.Change) bool { return c.From == c.To })
	drivers := slices.DeleteFunc(slices.Clone(install), func(c backends.Component) bool { return d.first != "" || d.tool(c.Name) })
	if len(fw) > 0 || len(body) > 0 || len(drivers) > 0 || len(missing) > 0 {
		round := 1
		if d.first != "" {
			round = 2
		}
		why := "module parameters take effect at the next boot"
		if len(missing) > 0 {
			why = vfsWhy(missing...)
		}
		d.last = d.reboot(round, why)
		d.Brackets[d.last].After = draft.IDs(append([]string{d.first}, fw...)...)
	}
	d.remediated(install, body)
	for _, c := range install {
		within := d.last
		if d.first != "" {
			within = d.first
		}
		d.component(c, within)
	}
	for _, c := range body {
		c.Within, c.Disrupts = []string{d.last}, []plan.Disruption{plan.HostReboot}
		d.Add(c)
	}
	d.h.Ready = append(d.h.Ready, draft.IDs(d.first, d.last)...)
	loaded := d.loaded(updates, keys)
	d.h.Ready = append(d.h.Ready, loaded...)
	for _, p := range missing {
		set := d.set(backends.KindActiveVFs, p.PCI)
		d.Add(plan.Change{Setting: set, From: d.Now(set), To: backends.ValueOf(p.want), State: true,
			After: append([]string{d.last}, loaded...),
			Why:   "read after the reboot: " + vfsWhy(p) + "; if they do not come: " + nic.BIOSHelp(d.h.Vendor)})
		d.h.Ready = append(d.h.Ready, set.ID())
	}
}

// component plans the installation of a component, within the reboot that activates it.
func (d *driverPart) component(c backends.Component, within string) {
	if d.h.Imaged() {
		d.imageComponent(c, within)
		return
	}
	set := d.set(backends.KindComponent, c.Name)
	d.Add(plan.Change{Setting: set, From: d.Now(set), To: backends.ValueOf(c.Version), Within: []string{within},
		Disrupts:     []plan.Disruption{plan.HostReboot},
		Why:          "from " + c.Path + ", without -f: the installer's checks stay on",
		Irreversible: "rollback does not remove components; to remove one: esxcli software vib remove -n " + c.Name})
}

func (d *driverPart) tool(name string) bool {
	return slices.ContainsFunc(nic.Tools(d.fam), func(vib string) bool { return name == vib || name == nic.FirmwareOf(d.fam).Components[vib] })
}

// unproven reports whether it is still unknown that firmware and BIOS provide a port's VFs.
func (d *driverPart) unproven(p port) bool { return d.vfs && !nic.Proven(p.NIC, p.want) }

func (d *driverPart) paramsWhy(module string, to map[string]string, method string) string {
	if module == d.fam.RDMA() {
		return "marks the host's own RDMA traffic with the DSCP that PFC protects"
	}
	why := "the whole string is written; values that others have set in it are kept"
	if method == d.byParameter() {
		ports := backends.Each(nic.Ports(d.as, d.fam), func(n *backends.NIC) string { return n.Device })
		list := d.fam.VFs().Param
		why = list + " " + to[list] + " is for " + strings.Join(ports, ", ") + ", in the order of PCI addresses (KB 309346); " + why
	}
	return why
}

func (d *driverPart) reboot(round int, why string) string {
	br := plan.Bracket{Kind: backends.BracketReboot, Target: d.ref, Why: why, From: plan.HostFound(d.h.InMaintenance), Effect: plan.HostReboot}
	if round > 1 {
		br.Round = round
	}
	id := br.ID()
	if there := d.Brackets[id]; there != nil { // of another driver, or another port of it
		there.Why += "; " + why
		return id
	}
	d.Brackets[id] = &br
	d.h.Reboots = append(d.h.Reboots, id)
	return id
}

// components determines what is installed, on the host or, if an image manages it, in the image of its cluster.
func (d *driverPart) components(firmware bool) ([]backends.Component, bool) {
	d.noteUnused()
	if d.h.Imaged() {
		return d.imageComponents(firmware)
	}
	install, lacking, faults := nic.Needed(d.fam, d.sys, d.h.Version, firmware)
	if len(lacking) > 0 && len(faults) > 0 {
		d.Refuse(d.ref, "", "check sriov.components, and that every host sees that datastore", "%s", strings.Join(faults, "; "))
		return nil, false
	}
	if len(lacking) > 0 {
		d.Refuse(d.ref, "", "put the VIBs on a datastore and name them under sriov.components: /vmfs/volumes/DATASTORE/FILE.vib (or .zip)",
			"the firmware has to be set for VFs, and %s is not installed", strings.Join(lacking, " and "))
		return nil, false
	}
	if len(install) == 0 {
		return nil, true
	}
	for _, c := range install {
		if err := nic.Accepts(d.sys, c); err != nil {
			d.Object(d.ref, "HOST-ACCEPT-014",
				"use the vendor's component signed for this level, or decide about the level yourself: esxcli software acceptance set", "%v", err)
		}
	}
	return install, true
}

// firmware plans the keys of cards whose ports are not known to provide the VFs yet. Planning never starts SSH: the values are read
// when they are due.
func (d *driverPart) firmware() (ids []string, ok bool) {
	done := map[string]bool{}
	for _, p := range d.all {
		card := nic.CardAddress(p.PCI)
		if done[card] || !d.unproven(p) {
			continue
		}
		done[card] = true
		id, ok := d.firmwareOf(p, card)
		if !ok {
			return nil, false
		}
		ids = append(ids, draft.IDs(id)...)
	}
	return ids, true
}

func (d *driverPart) firmwareOf(p port, card string) (string, bool) {
	vfs, err := d.cardVFs(card)
	var keys map[string]string
	if err == nil {
		keys, err = nic.FirmwareKeys(d.fam, vfs)
	}
	if err != nil {
		d.Refuse(d.ref, "HOST-NUMVFS-008", "ask for fewer VFs", "%v", err)
		return "", false
	}
	rules := nic.FirmwareOf(d.fam) // not nil: FirmwareKeys fails without it
	if d.Answers.SRIOV.ResetPCI {
		keys[rules.Advanced] = "0"
		d.NoteEach(d.ref.Name,
			"%s=0 is set as asked: PCI values that somebody has tuned in [its card's|their cards'] firmware return to their defaults, "+
				"and a rollback does not restore them", rules.Advanced)
	}
	if d.Answers.Mode == answers.GPUDirect && d.Answers.GPUDirect.ATS {
		keys[rules.ATS] = "1"
	}
	return d.setFirmware(p.PCI, keys, d.firmwareWhy(p, keys)+"; read when it is due, "+rules.VFs+" is never lowered", "")
}

// setFirmware plans keys of the card of a function, in the host's shell. irreversible says why a rollback keeps them, "" if it
// restores them.
func (d *driverPart) setFirmware(pci string, keys map[string]string, why, irreversible string) (string, bool) {
	ssh := d.shell()
	set := d.set(backends.KindFirmware, nic.CardAddress(pci))
	c := plan.Change{Setting: set, From: backends.Unknown(ssh), To: backends.Unknown(ssh), Late: backends.ValueOf(keys), Within: []string{ssh},
		After: draft.IDs(d.first), Disrupts: []plan.Disruption{plan.HostReboot}, Why: why, Irreversible: irreversible}
	if now := d.Now(set); now.Known() {
		to, err := plan.Resolve(c, now)
		if err != nil {
			d.Refuse(d.ref, "HOST-SRIOVEN-009", backends.HintOf(err), "%v", err)
			return "", false
		}
		c.From, c.To, c.Late = now, to, backends.Absent
	}
	if nic.OEM(d.fam, d.sys.Firmware[set.Name].PSID) {
		d.NoteEach(d.h.Name,
			"[its card is an OEM card|their cards are OEM cards] (PSID %s): newer firmware is available from the server vendor only",
			d.sys.Firmware[set.Name].PSID)
	}
	if !d.Add(c) {
		d.Note("%s: the firmware of %s has these values already and waits for a reboot", d.h.Name, set.Name)
		if !slices.ContainsFunc(d.Plan.Changes, func(c plan.Change) bool { return slices.Contains(c.Within, ssh) }) {
			delete(d.Brackets, ssh)
			d.h.Shell = ""
		}
		return "", true
	}
	return set.ID(), true
}

// shell opens SSH on the host while its firmware is read and set, and returns the id of the bracket.
func (d *driverPart) shell() string {
	d.h.Shell = d.ssh(plan.Bracket{Why: "the firmware tools run in the ESXi shell; the SSH service is then restored to its previous state",
		After: draft.IDs(d.first)})
	return d.h.Shell
}

// shellAfter plans another SSH session, after a reboot, to read the firmware that the reboot has loaded.
func (d *driverPart) shellAfter(reboot string) string {
	d.h.Looks = d.ssh(plan.Bracket{Round: 2,
		Why:   "the firmware tools show in the ESXi shell what the card has loaded; the SSH service is then restored to its previous state",
		After: draft.IDs(reboot)})
	return d.h.Looks
}

func (d *driverPart) ssh(br plan.Bracket) string {
	user := cmp.Or(d.Answers.ESXi.User, "root")
	switch l := d.h.Lockdown; {
	case l == "" || l == "disabled":
	case slices.Contains(d.sys.Exceptions.Value, user):
		d.NoteEach(d.ref.Name,
			"[is|are] in lockdown mode (%s), which is not changed: %s is one of [its|their] exception users and may use the ESXi shell", l, user)
	case d.sys.Exceptions.Reason() != "":
		d.Object(d.ref, "HOST-LOCKDOWN-012",
			"give the account Global.Settings (rdma-setup generate role), or end lockdown mode for the run; this program does not change it",
			"is in lockdown mode (%s), its exception users could not be read, and its card's firmware can only be set in the ESXi shell: %s", l,
			d.sys.Exceptions.Reason())
	default:
		d.Object(d.ref, "HOST-LOCKDOWN-012",
			"end lockdown mode for the run, or make "+user+
				" one of its exception users (host, Configure, Security Profile); this program changes neither",
			"is in lockdown mode (%s), %s is not one of its exception users, and its card's firmware can only be set in the ESXi shell", l, user)
	}
	d.NoteEach(d.ref.Name,
		"SSH is started before any change, to test the login, and while the card's firmware is read or set. Each time it is then restored to "+
			"its previous state")
	br.Kind, br.Target = backends.BracketSSH, d.ref
	d.Brackets[br.ID()] = &br
	return br.ID()
}

func (d *driverPart) firmwareWhy(p port, keys map[string]string) string {
	of := "one port, " + p.Device
	if ports := nic.Card(d.as, d.fam, p.PCI); len(ports) > 1 {
		of = strconv.Itoa(len(ports)) + " ports (" + ports[0].Device + " and its neighbours)"
	}
	return nic.FirmwareWhy(d.fam, keys) + "; of " + of
}
