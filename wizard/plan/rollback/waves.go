package rollback

import (
	"slices"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
	"github.com/rdma-setup/rdma-setup/wizard/plan/waves"
)

// atBoot reports whether a setting of a host takes effect only at its next boot. A GPU returns to the host immediately if the
// host can rebind devices.
func (u *undo) atBoot(c plan.Change) bool {
	switch c.Kind {
	case backends.KindModuleParams, backends.KindFirmware, backends.KindVFs, backends.KindGraphics:
		return true
	case backends.KindImageComponent:
		return c.Target.Type == backends.TypeHost
	case backends.KindPassthrough:
		h := u.inv.Host(c.Target.Name)
		return !h.Rebind || !slices.ContainsFunc(h.GPUs, func(g backends.GPU) bool { return g.PCI == c.Name })
	}
	return false
}

// waves puts one reboot of each host after everything that it must activate, with SSH open around its firmware, and with the VMs
// off that cannot leave the host. onHost are the changes of the host's VMs: VFs go after the adapters.
func (u *undo) waves(onHost map[string][]string) {
	u.keepVCenterUp()
	var hosts []string
	for i := range u.changes {
		c := &u.changes[i]
		if !u.atBoot(*c) {
			continue
		}
		host := c.Target.Name
		if !slices.Contains(hosts, host) {
			hosts = append(hosts, host)
		}
		reboot := u.bracket(plan.Bracket{Kind: backends.BracketReboot, Target: c.Target, From: plan.HostFound(u.inv.Host(host).InMaintenance),
			Effect: plan.HostReboot,
			Why:    "the restored settings take effect at the next boot"})
		c.Disrupts = append(c.Disrupts, plan.HostReboot)
		if c.Kind == backends.KindImageComponent {
			c.After = append(c.After, u.beforeRemediation(*c)...)
		}
		if c.Kind != backends.KindFirmware {
			c.Within = append(c.Within, reboot.ID())
			c.After = append(c.After, onHost[host]...)
			continue
		}
		ssh := u.bracket(plan.Bracket{Kind: backends.BracketSSH, Target: c.Target,
			Why: "the firmware tools run in the ESXi shell; the SSH service is then restored to its previous state"})
		c.Within = append(c.Within, ssh.ID())
		reboot.After = append(reboot.After, c.ID())
	}
	last := "" // the host that runs vCenter itself
	for _, host := range hosts {
		reboot := u.brackets[plan.Bracket{Kind: backends.BracketReboot, Target: backends.HostRef(host)}.ID()]
		reboot.After = append(reboot.After, onHost[host]...)
		out := reboot
		if slices.Contains(u.opts.Evacuated, host) {
			out = u.bracket(plan.Bracket{Kind: backends.BracketMaintenance, Target: backends.HostRef(host), Around: []string{reboot.ID()},
				Why: "the run left it in maintenance mode"})
			reboot.From = plan.HostFound(true)
		}
		for i := range u.inv.VMs {
			v := &u.inv.VMs[i]
			if v.Host != host || v.Template {
				continue
			}
			id := plan.PowerID(v.Name)
			_, planned := u.brackets[id]
			switch {
			case planned:
			case v.Power != "poweredOn" && slices.Contains(u.opts.Held, v.Name):
				u.power(v.Name, waves.HeldOff)
			case v.Power != "poweredOn":
				continue
			default:
				fate, why := u.bystander(v)
				if fate == waves.BystanderShut {
					u.power(v.Name, "its host reboots, and "+why)
					break
				}
				if v.VCenterVM {
					last = host
				}
				u.note("%s is moved to another host while its host reboots", v.Name)
				continue
			}
			br := u.brackets[id]
			br.Around = append(br.Around, out.ID())
		}
	}
	if last != "" {
		u.last(last, hosts)
	}
	if len(hosts) > 0 {
		u.note("%d host(s) reboot: firmware, module parameters, VFs and passed-through cards act only from the next boot on", len(hosts))
	}
}

// beforeRemediation returns the ids of what comes before a host is remediated, which reboots it: the image without the component,
// and everything else of the host that takes effect at its next boot.
func (u *undo) beforeRemediation(c plan.Change) (ids []string) {
	for _, o := range u.changes {
		image := o.Kind == backends.KindImageComponent
		if image && o.Target.Type == backends.TypeCluster || !image && o.Target == c.Target && u.atBoot(o) && o.Kind != backends.KindFirmware {
			ids = append(ids, o.ID())
		}
	}
	return ids
}

func (u *undo) last(host string, hosts []string) {
	reboot := func(h string) string {
		return plan.Bracket{Kind: backends.BracketReboot, Target: backends.HostRef(h)}.ID()
	}
	var others []string
	for _, other := range hosts {
		if other != host {
			others = append(others, reboot(other))
		}
	}
	for _, br := range u.brackets { // an open shell and VMs that are off use a slot among the hosts that may be down
		if br.ID() == reboot(host) || br.Target == backends.HostRef(host) && br.Kind == backends.BracketSSH ||
			slices.Contains(br.Around, reboot(host)) ||
			br.Target == backends.HostRef(host) && br.Kind == backends.BracketMaintenance {
			br.After = append(br.After, others...)
		}
	}
	u.note("%s runs vCenter itself and reboots last", host)
}

// keepVCenterUp stops a host whose reboot would take vCenter down, or a VM that may not be shut down for it.
func (u *undo) keepVCenterUp() {
	for _, v := range u.inv.VMs {
		h := u.inv.Host(v.Host)
		if !v.VCenterVM || v.Power != "poweredOn" || h == nil || waves.Stays(u.inv, &v, h) == "" {
			continue
		}
		if slices.ContainsFunc(u.changes, func(c plan.Change) bool { return u.atBoot(c) && c.Target.Name == h.Name }) {
			u.conflict(backends.HostRef(h.Name), "move it to another host, then roll back again",
				"runs vCenter itself (%s), and would have to reboot: %s", v.Name, waves.Stays(u.inv, &v, h))
		}
	}
	for i := range u.inv.VMs {
		v := &u.inv.VMs[i]
		_, planned := u.brackets[plan.PowerID(v.Name)]
		if v.Power != "poweredOn" || v.Template || planned || u.inv.Host(v.Host) == nil {
			continue
		}
		if fate, why := u.bystander(v); fate == waves.BystanderRefused &&
			slices.ContainsFunc(u.changes, func(c plan.Change) bool { return u.atBoot(c) && c.Target.Name == v.Host }) {
			u.conflict(backends.HostRef(v.Host), "Move that VM to another host, then roll back again.",
				"has to reboot, but runs %s, which the answers do not list: %s", v.Name, why)
		}
	}
	u.rest() // targets that depend on a stopped host are not changed either
}

// bystander determines what happens to a running VM on a host that reboots. VMs of the run are shut down if they cannot be moved.
func (u *undo) bystander(v *backends.VM) (waves.BystanderOutcome, string) {
	how := u.opts.Bystanders
	if how == "" || slices.Contains(u.opts.Listed, v.Name) {
		how = answers.BystandersShutdown
	}
	return waves.BystanderOf(how, u.inv, v, u.inv.Host(v.Host), nil)
}

// bracket returns the bracket with this id, or adds it.
func (u *undo) bracket(b plan.Bracket) *plan.Bracket {
	id := b.ID()
	if u.brackets[id] == nil {
		u.brackets[id] = &b
		u.order = append(u.order, id)
	}
	return u.brackets[id]
}
