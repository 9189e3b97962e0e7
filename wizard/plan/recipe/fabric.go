package recipe

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/go-version"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
	"github.com/rdma-setup/rdma-setup/wizard/plan/current"
	"github.com/rdma-setup/rdma-setup/wizard/plan/draft"
	"github.com/rdma-setup/rdma-setup/wizard/sizing"
)

const discovery = "lldp listen" // shows the switch port of each pNIC; the host itself sends nothing

// fabric plans the DVS of a rail, its port groups and the hosts' membership.
func (r *rail) fabric() {
	sw := r.Inventory.Switch(r.want.Switch.Name)
	if sw != nil && sw.Datacenter != "" && sw.Datacenter != r.datacenter() && len(r.Hosts) > 0 {
		r.Refuse(backends.SwitchRef(sw.Name), "DVS-EXIST-001", "choose another switch.name", "a switch of this name is in datacenter %s",
			sw.Datacenter)
		return
	}
	if r.ambiguous(sw) {
		return
	}
	before := len(r.Plan.Changes)
	r.dvs(sw)
	for _, pg := range r.view.PortGroups() {
		r.portGroup(sw, pg)
	}
	for _, h := range r.Hosts {
		r.member(sw, h)
	}
	if len(r.Plan.Changes) > before && sw != nil {
		r.shared(sw)
	}
}

// ambiguous refuses names that several switches or port groups have: the inventory lists these under their paths. A port group is
// refused whichever switches the others are on: a setter could not distinguish them either, and would fail after other changes.
func (r *rail) ambiguous(sw *backends.Switch) bool {
	var found []string
	note := func(key, name string, paths []string) {
		if len(paths) > 0 {
			found = append(found, fmt.Sprintf("%s: %q is the name of several: %s", key, name, strings.Join(paths, ", ")))
		}
	}
	shared := func(name, path, wanted string) bool { return name == path && strings.HasSuffix(path, "/"+wanted) }
	var paths []string
	for _, s := range r.Inventory.Switches {
		if sw == nil && shared(s.Name, s.Path, r.want.Switch.Name) {
			paths = append(paths, s.Path)
		}
	}
	note("switch.name", r.want.Switch.Name, paths)
	for _, pg := range r.view.PortGroups() {
		paths = nil
		for _, g := range r.Inventory.PortGroups {
			if shared(g.Name, g.Path, pg) {
				paths = append(paths, g.Path)
			}
		}
		note("port group", pg, paths)
	}
	r.Usage = append(r.Usage, found...)
	return len(found) > 0
}

// shared refuses to edit a switch that rdma-setup did not create and that is in use: the edit would remove uplinks, change the
// MTU or disable NIOC for the other traffic.
func (r *rail) shared(sw *backends.Switch) {
	if sw.Ours() {
		return
	}
	var why []string
	if others := r.otherVMKs(sw); len(others) > 0 {
		why = append(why, "vmknics "+strings.Join(others, ", "))
	}
	for _, pg := range sw.PortGroups {
		if p := r.Inventory.PortGroup(pg); p != nil && p.Uplink || slices.Contains(r.view.PortGroups(), pg) {
			continue
		}
		why = append(why, "the port group "+pg)
	}
	if sw.LAGs > 0 {
		why = append(why, "link aggregation")
	}
	if sw.NSX {
		why = append(why, "NSX")
	}
	if sw.OffloadID != "" {
		why = append(why, "a network offload ("+sw.OffloadID+")")
	}
	for _, host := range slices.Sorted(maps.Keys(sw.Members)) {
		if m := sw.Members[host]; len(m.PNICs) > 1 {
			why = append(why, fmt.Sprintf("%d uplinks of %s", len(m.PNICs), host))
			break
		}
	}
	if len(why) > 0 {
		r.Refuse(backends.SwitchRef(sw.Name), "DVS-EXIST-001", "choose another switch.name, such as "+r.freeName(sw.Name)+
			": a switch for RDMA only is then created",
			"was not created by rdma-setup and carries %s; it is not changed", strings.Join(why, "; "))
	}
}

// otherVMKs returns the vmknics on a switch, without those that this program creates for PVRDMA.
func (r *rail) otherVMKs(sw *backends.Switch) []string {
	within := r.Answers.PVRDMA.VMKNic.Range()
	return slices.DeleteFunc(slices.Clone(sw.VMKs), func(name string) bool {
		i := strings.LastIndex(name, "/")
		h := r.Inventory.Host(name[:max(0, i)])
		if h == nil {
			return false
		}
		k := h.VMK(name[i+1:])
		return k != nil && within.Holds(k)
	})
}

func (b *builder) freeName(taken string) string {
	for _, n := range []string{"RDMA-DVS", taken + "-RDMA"} {
		if b.Inventory.Switch(n) == nil {
			return n
		}
	}
	for i := 2; ; i++ {
		if n := fmt.Sprintf("RDMA-DVS-%d", i); b.Inventory.Switch(n) == nil {
			return n
		}
	}
}

func (r *rail) dvs(sw *backends.Switch) {
	want := r.want.Switch
	set := backends.Setting{Target: backends.SwitchRef(want.Name), Kind: backends.KindSwitch}
	if sw == nil {
		if want.MTU > sizing.NewSwitchMTU {
			r.Refuse(set.Target, "DVS-MTU-006", "set switch.mtu to 9000", "MTU %d: every switch version supports 9000 bytes", want.MTU)
		}
		r.Add(plan.Change{Setting: set, To: backends.ValueOf(backends.SwitchSpec{
			Datacenter: r.datacenter(), Version: r.newVersion(), Uplinks: want.Uplinks, MTU: want.MTU, Discovery: discovery,
		}), Why: r.switchWhy() + uplinksWhy(want.Uplinks) + ", Network I/O Control off"})
		r.Note(
			"the number of uplinks is that of the pNICs of a host, not of VMs as in VMware's Bitfusion guide; RDMA allows one active uplink " +
				"(VMware, PVRDMA Support)")
		return
	}
	to := current.Switch(sw)
	why := []string{}
	if to.MTU < want.MTU {
		if sw.MTUMax > 0 && want.MTU > sw.MTUMax {
			r.Refuse(set.Target, "DVS-MTU-006", fmt.Sprintf("set switch.mtu to %d or less", sw.MTUMax),
				"MTU %d is more than the switch supports (%d)", want.MTU, sw.MTUMax)
		}
		to.MTU = want.MTU
		why = append(why, fmt.Sprintf("guests send frames of %d bytes", want.MTU))
	}
	if to.Uplinks < want.Uplinks {
		to.Uplinks = want.Uplinks
		why = append(why, uplinksWhy(want.Uplinks))
	}
	if sw.NIOC && sw.Ours() {
		to.NIOC = false
		why = append(why, "Network I/O Control does not apply to RDMA and prevents SR-IOV")
	} else if sw.NIOC {
		r.Note("%s has Network I/O Control on; rdma-setup did not create the switch and leaves it on, but it does not apply to RDMA traffic",
			sw.Name)
	}
	to.Version = r.upgrade(sw)
	c := plan.Change{Setting: set, From: backends.ValueOf(current.Switch(sw)), Why: strings.Join(why, "; ")}
	if to.Version != sw.Version {
		c.Irreversible = "a DVS version cannot be lowered, and older hosts can no longer join (KB 434420)"
		c.Why = strings.TrimPrefix(c.Why+"; version "+to.Version+" was asked for", "; ")
	}
	c.To = backends.ValueOf(to)
	if to.MTU != sw.MTU {
		c.Disrupts = []plan.Disruption{plan.UplinkFlap}
		r.Note("a new MTU of %s takes its uplinks down and up on every member (KB 419088); vCenter may roll the change back automatically",
			sw.Name)
	}
	if to.MTU != sw.MTU || to.Uplinks != len(sw.Uplinks) {
		c.Within = r.pvrdmaOff(sw, "", "the MTU or the uplinks of "+sw.Name+" change")
	}
	r.Add(c)
}

func (b *builder) switchWhy() string {
	if b.Virtual() {
		return "one MTU and VLAN for all hosts, for RDMA only: "
	}
	return "PVRDMA needs a distributed switch; this one is for RDMA only: "
}

func uplinksWhy(n int) string {
	if n == 1 {
		return "one uplink, because RDMA does not support NIC teaming"
	}
	return fmt.Sprintf("%d uplink names, of which the port group uses one, because RDMA does not support NIC teaming", n)
}

// newVersion returns the requested version, or the newest that vCenter offers and all hosts support (QueryAvailableDvsSpec,
// version <= lowest member).
func (r *rail) newVersion() string {
	ref := backends.SwitchRef(r.want.Switch.Name)
	offered := r.Inventory.VCenter.DVSVersions
	low, host := r.lowest()
	if v := r.want.Switch.Version; v != "" {
		switch {
		case len(offered) > 0 && !slices.Contains(offered, v):
			r.Refuse(ref, "DVS-VERSION-002", "choose one of: "+strings.Join(offered, ", "), "vCenter does not offer version %s", v)
		case newer(v, low):
			r.Refuse(ref, "DVS-VERSION-002", "leave switch.version empty for the newest that all hosts support",
				"version %s is newer than ESXi %s of %s", v, low, host)
		}
		return v
	}
	best := ""
	for _, v := range offered {
		if !newer(v, low) && (best == "" || newer(v, best)) {
			best = v
		}
	}
	r.limits(best, offered)
	if len(offered) == 0 && len(r.Hosts) > 0 {
		why := "the list is empty"
		if i := slices.IndexFunc(r.Inventory.Gaps, func(g backends.Gap) bool { return g.What == backends.GapDVSVersions }); i >= 0 {
			why = r.Inventory.Gaps[i].Why
		}
		r.Refuse(ref, "DVS-VERSION-002", "name a version as switch.version", "the versions that vCenter offers could not be read: %s", why)
		return ""
	}
	if best == "" && len(r.Hosts) > 0 {
		r.Refuse(ref, "DVS-VERSION-002", "name a version as switch.version, or upgrade the hosts",
			"no version that vCenter offers (%s) is supported by all hosts; the oldest is ESXi %s of %s", strings.Join(offered, ", "), low, host)
	}
	return best
}

// limits adds a note about the host because of which a switch gets an older version than the other hosts support.
func (r *rail) limits(version string, offered []string) {
	low, host := r.lowest()
	for _, h := range r.Hosts {
		if !newer(h.Version, low) {
			continue
		}
		if i := slices.IndexFunc(offered, func(v string) bool { return newer(v, version) && !newer(v, h.Version) }); i >= 0 && version != "" {
			r.Note("%s gets version %s, because %s runs ESXi %s; %s and others carry newer ones", r.want.Switch.Name, version, host, low, h.Name)
			return
		}
	}
}

// upgrade returns the version that an existing switch should have: its own, unless a newer one was requested by name.
func (r *rail) upgrade(sw *backends.Switch) string {
	ref := backends.SwitchRef(sw.Name)
	low, host := r.lowest()
	to := sw.Version
	switch v := r.want.Switch.Version; {
	case v == "" || v == sw.Version:
	case newer(sw.Version, v):
		r.Refuse(ref, "DVS-VERSION-002", "set switch.version to "+sw.Version+" or leave it empty", "has version %s; it cannot be lowered to %s",
			sw.Version, v)
	default:
		to = v
	}
	if len(r.Hosts) > 0 && newer(to, low) {
		r.Refuse(ref, "DVS-VERSION-002", "upgrade that host, remove it from the answers, or choose another switch.name",
			"version %s is newer than ESXi %s of %s", to, low, host)
	}
	return to
}

// lowest returns the oldest ESXi version among the hosts, and a host that has it.
func (b *builder) lowest() (ver, host string) { return b.Oldest.Version, b.Oldest.Name }

func oldest(hosts []*draft.Host) *backends.Host {
	low := &backends.Host{}
	for _, h := range hosts {
		if low.Version == "" || newer(low.Version, h.Version) {
			low = h.Host
		}
	}
	return low
}

// newer compares dotted versions; an invalid one is not newer.
func newer(a, b string) bool {
	x, err := version.NewVersion(a)
	if err != nil {
		return false
	}
	y, err := version.NewVersion(b)
	return err == nil && x.Core().GreaterThan(y.Core())
}
