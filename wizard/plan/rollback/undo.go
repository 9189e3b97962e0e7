package rollback

import (
	"maps"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
	"github.com/rdma-setup/rdma-setup/wizard/plan/current"
)

// rest drops the changes of stopped targets, and stops what remaining things depend on, whoever created them: a port group with
// adapters on it, a host's membership in a switch that its VMs use, a switch that is still in use, and the settings of a host
// that its PVRDMA adapters need.
func (u *undo) rest() {
	u.dropStopped()
	for _, c := range u.changes {
		if c.Kind == backends.KindOption && c.Name == backends.VMKNICOption || c.Kind == backends.KindVMKNic ||
			c.Kind == backends.KindFirewall && c.Name == plan.FirewallRuleset {
			if v := u.pvrdmaUser(c.Target.Name); v != "" {
				u.stays(c.Target, "remove that adapter, then roll back again", "%s stays: the VM %s still has a PVRDMA adapter", subject(c), v)
			}
		}
		if c.Kind == backends.KindVMKNic && c.To.IsAbsent() {
			if roles := u.services(c.Setting); len(roles) > 0 {
				u.stays(c.Target, "take these services off it, then roll back again", "%s stays: it now carries %s", subject(c),
					strings.Join(roles, ", "))
			}
		}
		if c.Kind == backends.KindMember && c.To.IsAbsent() {
			if v := u.user(c.Name, "", c.Target.Name); v != "" {
				u.stays(c.Target, "remove that adapter, then roll back again", "stays on %s: the VM %s still has an adapter on it", c.Name, v)
			} else if k := u.vmknic(c.Name, "", c.Target.Name); k != "" {
				u.stays(c.Target, "move that vmknic, then roll back again", "stays on %s: its vmknic %s is on it", c.Name, k)
			}
		}
		if c.Kind == backends.KindPortGroup && c.To.IsAbsent() {
			if v := u.user("", c.Target.Name, ""); v != "" {
				u.stays(c.Target, "remove that adapter, then roll back again", "stays: the VM %s still has an adapter on it", v)
			} else if k := u.vmknic("", c.Target.Name, ""); k != "" {
				u.stays(c.Target, "move that vmknic, then roll back again", "stays: the vmknic %s is on it", k)
			}
		}
	}
	u.dropStopped()
	for _, c := range u.changes {
		if c.Kind != backends.KindSwitch || !c.To.IsAbsent() {
			continue
		}
		if left := u.left(u.inv.Switch(c.Target.Name)); left != "" {
			u.stays(c.Target, "empty the switch, then roll back again", "stays: %s is still on it", left)
		}
	}
	u.dropStopped()
}

// stays leaves a target unchanged because someone else uses it: a conflict, unless the operator keeps the changes of others.
func (u *undo) stays(t backends.Ref, remedy, format string, args ...any) {
	if u.opts.decision(t) != Keep {
		u.conflict(t, remedy, format, args...)
		return
	}
	u.stopped[t] = true
	u.keep(t, format, args...)
}

func (u *undo) dropStopped() {
	u.changes = slices.DeleteFunc(u.changes, func(c plan.Change) bool {
		// A guest and its VM are one machine for the operator, but are stopped separately: a problem of one need not affect the
		// other.
		return u.stopped[c.Target]
	})
}

func (u *undo) removed(s backends.Setting) bool {
	return slices.ContainsFunc(u.changes, func(c plan.Change) bool { return c.Setting == s && c.To.IsAbsent() })
}

// user returns a VM that will still have an adapter on the switch or port group, "" if there is none.
func (u *undo) user(dvs, portgroup, host string) string {
	for _, v := range u.inv.VMs {
		if host != "" && v.Host != host {
			continue
		}
		for _, a := range v.Adapters {
			on := dvs != "" && a.Switch == dvs || portgroup != "" && a.PortGroup == portgroup
			if on && !u.removed(backends.Setting{Target: backends.VMRef(v.Name), Kind: backends.KindAdapter, Name: a.PortGroup}) {
				return v.Name
			}
		}
	}
	return ""
}

// vmknic returns a vmknic that will still be on the switch or port group, as "esx-01/vmk1", or "vmk1" if a host is given; "" if
// there is none.
func (u *undo) vmknic(dvs, portgroup, host string) string {
	if pg := u.inv.PortGroup(portgroup); pg != nil {
		dvs = pg.Switch // another datacenter may have a network of this name
	}
	for i := range u.inv.Hosts {
		h := &u.inv.Hosts[i]
		if host != "" && h.Name != host {
			continue
		}
		for _, k := range h.VMKs {
			on := k.Switch == dvs && (portgroup == "" || k.PortGroup == portgroup)
			switch {
			case !on || u.removed(backends.Setting{Target: backends.HostRef(h.Name), Kind: backends.KindVMKNic, Name: k.IP}):
			case host != "":
				return k.Device
			default:
				return h.Name + "/" + k.Device
			}
		}
	}
	return ""
}

// services returns those that were enabled on a vmknic since it was created.
func (u *undo) services(s backends.Setting) []string {
	if h := u.inv.Host(s.Target.Name); h != nil {
		for _, k := range h.VMKs {
			if k.IP == s.Name {
				return k.Roles
			}
		}
	}
	return nil
}

// pvrdmaUser returns a VM of a host that will still have a PVRDMA adapter, "" if there is none. VMs that the run itself lists do
// not count: their other adapters existed before the run, without the run's settings.
func (u *undo) pvrdmaUser(host string) string {
	for _, v := range u.inv.VMs {
		for _, a := range v.Adapters {
			if v.Host == host && a.Type == "pvrdma" && !slices.Contains(u.opts.Listed, v.Name) &&
				!u.removed(backends.Setting{Target: backends.VMRef(v.Name), Kind: backends.KindAdapter, Name: a.PortGroup}) {
				return v.Name
			}
		}
	}
	return ""
}

// left describes what will still be on a switch, "" if it will be empty.
func (u *undo) left(sw *backends.Switch) string {
	if sw == nil {
		return ""
	}
	if k := u.vmknic(sw.Name, "", ""); k != "" {
		return "the vmknic " + k
	}
	for _, host := range slices.Sorted(maps.Keys(sw.Members)) {
		if !u.removed(backends.Setting{Target: backends.HostRef(host), Kind: backends.KindMember, Name: sw.Name}) {
			return "the host " + host
		}
	}
	for _, name := range sw.PortGroups {
		pg := u.inv.PortGroup(name)
		if pg != nil && pg.Uplink || u.removed(backends.Setting{Target: backends.PortGroupRef(name), Kind: backends.KindPortGroup}) {
			continue
		}
		return "the port group " + name
	}
	return ""
}

// arrange puts brackets around the changes and orders them: guests first, while they are on; then the VMs' devices while they are
// off; then the network, from the hosts' memberships over port groups to the switch (KB 435411: lower the MTU from the guest
// outwards).
func (u *undo) arrange() {
	guests := map[string][]string{} // VM -> ids
	var devices, network, members, vmknics []string
	onHost := map[string][]string{} // host -> ids of its VMs' changes
	for _, c := range u.changes {
		switch {
		case c.Target.Type == backends.TypeGuest:
			guests[c.Target.Name] = append(guests[c.Target.Name], c.ID())
		case c.Target.Type == backends.TypeVM:
			devices = append(devices, c.ID())
			if v := u.inv.VM(c.Target.Name); v != nil {
				onHost[v.Host] = append(onHost[v.Host], c.ID())
			}
			u.power(c.Target.Name, "devices and memory of a VM change only while it is off")
		case c.Kind == backends.KindPortGroup:
			network = append(network, c.ID())
		case c.Kind == backends.KindMember:
			members = append(members, c.ID())
		case c.Kind == backends.KindVMKNic:
			vmknics = append(vmknics, c.ID())
		}
	}
	u.powerAsFound()
	u.waves(onHost)
	for i := range u.changes {
		c := &u.changes[i]
		switch {
		case u.atBoot(*c) || c.Kind == backends.KindPower: // see waves
		case c.Target.Type == backends.TypeVM:
			c.Within = []string{u.power(c.Target.Name, "")}
			c.Disrupts = []plan.Disruption{plan.VMPowerCycle}
		case c.Target.Type == backends.TypeHost:
			c.After = append(c.After, onHost[c.Target.Name]...)
		case c.Kind == backends.KindPortGroup:
			c.After = append(append(c.After, devices...), vmknics...)
		case c.Kind == backends.KindSwitch:
			c.After = append(append(append(c.After, devices...), network...), members...)
		}
		u.flap(c)
	}
	u.changes = slices.DeleteFunc(u.changes, u.moot)
	u.powerCanary()
	off := backends.ValueOf("poweredOff")
	for _, id := range u.order {
		br := u.brackets[id]
		if br.Target.Type == backends.TypeVM {
			switch stopped := u.stopped[backends.GuestRef(br.Target.Name)]; {
			case br.Leave != off || br.Effect != plan.VMPowerCycle:
				// A guest that cannot be restored does not block its VM and the network below it.
				br.AfterAny = append(br.AfterAny, guests[br.Target.Name]...)
			case stopped && len(br.Around) == 0 &&
				!slices.ContainsFunc(u.changes, func(c plan.Change) bool { return slices.Contains(c.Within, id) }):
				continue // while it is off, its guest could not be restored
			case stopped:
				br.Leave = backends.ValueOf("poweredOn")
			default: // it was off before the run: it is powered off after its guest was restored
				br.After = append(br.After, guests[br.Target.Name]...)
			}
			br.Apart = append(br.Apart, u.opts.Apart[br.Target.Name]...)
		}
		u.plan.Brackets = append(u.plan.Brackets, *br)
	}
	u.guestOrder(guests)
	slices.Reverse(u.changes)
	u.plan.Changes = u.changes
}

// powerCanary makes one VM go first: no other is powered off before it is on again.
func (u *undo) powerCanary() {
	if !u.opts.Canary {
		return
	}
	first := ""
	for _, id := range u.order {
		br := u.brackets[id]
		if br.Kind != backends.BracketVMPower || br.Effect != plan.VMPowerCycle || len(br.Around) > 0 || u.sharesChange(id) ||
			slices.Contains(u.opts.Held, br.Target.Name) {
			continue
		}
		if first == "" {
			first = id
			continue
		}
		br.AfterAny = append(br.AfterAny, first) // a VM that cannot be restored does not block the others
	}
}

// sharesChange reports whether a power cycle shares a change with that of another VM, or has a change of the network inside,
// which changes of other VMs wait for or precede.
func (u *undo) sharesChange(id string) bool {
	return slices.ContainsFunc(u.changes, func(c plan.Change) bool {
		return slices.Contains(c.Within, id) && (len(c.Within) > 1 || c.Target.Type != backends.TypeVM)
	})
}

// moot drops changes that unload modules before a power cycle, which unloads them anyway.
func (u *undo) moot(c plan.Change) bool {
	if c.Kind != backends.KindModules {
		return false
	}
	_, there := u.brackets[plan.PowerID(c.Target.Name)]
	return there
}

// guestOrder puts software last in each guest, in reverse order of installation, because it is in use before.
func (u *undo) guestOrder(guests map[string][]string) {
	kinds := map[string]backends.Kind{}
	for _, c := range u.changes {
		kinds[c.ID()] = c.Kind
	}
	earlier := map[string]bool{} // software that came before
	for i := range u.changes {
		c := &u.changes[i]
		software := c.Kind == backends.KindPackages || c.Kind == backends.KindBuild || c.Kind == backends.KindOFED
		own := c.ID()
		earlier[own] = software
		for _, id := range guests[c.Target.Name] {
			// A traffic class keeps rdma_cm in use in the kernel.
			of := kinds[id]
			before := c.Kind == backends.KindModules && (of == backends.KindTrafficClass || of == backends.KindPortQoS)
			if id != own && (software && !earlier[id] || before) {
				c.After = append(c.After, id)
			}
		}
	}
}

// flap keeps PVRDMA VMs that keep their adapter off during a change of their uplinks or MTU (KB 328676).
func (u *undo) flap(c *plan.Change) {
	dvs, host := c.Name, c.Target.Name
	switch {
	case c.To.IsAbsent() || c.From.IsAbsent():
		return
	case c.Kind == backends.KindMember:
	case c.Kind == backends.KindSwitch:
		dvs, host = c.Target.Name, ""
	default:
		return
	}
	c.Disrupts = []plan.Disruption{plan.UplinkFlap}
	for _, v := range current.PVRDMAVMs(u.inv, dvs, host) {
		keeps := slices.ContainsFunc(v.Adapters, func(a backends.Adapter) bool {
			return a.Type == "pvrdma" && a.Switch == dvs &&
				!u.removed(backends.Setting{Target: backends.VMRef(v.Name), Kind: backends.KindAdapter, Name: a.PortGroup})
		})
		if keeps {
			c.Within = append(c.Within, u.power(v.Name, "RDMA uplinks can only be changed while PVRDMA VMs are off (KB 328676)"))
		}
	}
}

func (u *undo) power(vm, why string) string {
	br := plan.Bracket{Kind: backends.BracketVMPower, Target: backends.VMRef(vm), Why: why, Leave: backends.Absent}
	id := br.ID()
	if _, there := u.brackets[id]; there {
		return id
	}
	v := u.inv.VM(vm)
	if v != nil {
		br.From, br.Leave = backends.ValueOf(v.Power), backends.ValueOf(v.Power)
		if v.Power == "poweredOn" {
			br.Effect = plan.VMPowerCycle
		}
	}
	if found, ok := u.opts.Brackets[id]; ok && found.Known() && !found.IsAbsent() {
		br.Leave = found
	}
	u.brackets[id] = &br
	u.order = append(u.order, id)
	return id
}

func (u *undo) powerAsFound() {
	off := backends.ValueOf("poweredOff")
	for _, id := range slices.Sorted(maps.Keys(u.opts.Brackets)) {
		for _, v := range u.inv.VMs {
			br := plan.Bracket{Kind: backends.BracketVMPower, Target: backends.VMRef(v.Name)}
			if br.ID() == id && u.opts.Brackets[id] == off && v.Power == "poweredOn" {
				u.power(v.Name, "it was off before the run")
			}
		}
	}
}
