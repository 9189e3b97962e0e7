package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
)

// A mover tells which running VMs a host that is being emptied can pass on to others.
type mover struct{ inv *backends.Inventory }

// stays says why a VM cannot be moved away while its host goes down, "" when vCenter can move it.
func (m mover) stays(v *backends.VM, h *backends.Host) string {
	if len(v.Passthrough) > 0 || slices.ContainsFunc(v.Adapters, func(a backends.Adapter) bool { return a.Type == "sriov" }) {
		return "it has a device of its host"
	}
	if h.Cluster == "" {
		return "its host is in no cluster"
	}
	if !slices.ContainsFunc(m.inv.Hosts, func(o backends.Host) bool {
		return o.Cluster == h.Cluster && o.Name != h.Name && o.State == "connected" && !o.InMaintenance
	}) {
		return "its cluster has no other host"
	}
	cl := m.inv.Cluster(h.Cluster)
	if cl == nil {
		return ""
	}
	mode := cl.DRSMode
	if own := cl.DRSOverride[v.Name]; own != "" {
		mode = own
	}
	if !cl.DRS || mode != "fullyAutomated" {
		return "DRS does not move it by itself (" + orElse(mode, "off") + ")"
	}
	return ""
}

// waves puts VMs around the reboots of their hosts, and settles before the first wave what could stop one (production.md:
// HA, DRS, what runs on the host, the host of vCenter).
func (b *builder) waves() {
	m := mover{b.inv}
	var vcenter *hostPart // runs vCenter: after all others
	var others []string
	for _, h := range b.hosts {
		if len(h.reboots) == 0 {
			continue
		}
		for i := range b.inv.VMs {
			v := &b.inv.VMs[i]
			if v.Host != h.Name || v.Template {
				continue
			}
			b.around(m, h, v)
			if v.VCenterVM && v.Power == "poweredOn" {
				vcenter = h
			}
		}
		if vcenter != h {
			others = append(others, h.reboots...)
		}
	}
	for _, h := range b.hosts {
		if h.shell != "" {
			b.order = append(b.order, h.shell)
		}
		b.order = append(b.order, h.reboots...)
	}
	b.canary(vcenter)
	if vcenter != nil {
		b.wavesAfter(vcenter, others)
		b.note("%s runs vCenter itself and reboots last", vcenter.Name)
	}
	b.clusters()
}

// heldOff is why a VM that is off waits for the reboot of its host: a host that is being emptied starts none, and one that
// is started before keeps it from being emptied.
const heldOff = "it was shut down in the attempt before, and starts once its host is back"

// around puts one VM of a host that reboots where it belongs.
func (b *builder) around(m mover, h *hostPart, v *backends.VM) {
	id, planned := b.powered(v)
	held := slices.Contains(b.opts.Held, v.Name)
	if !planned && !held && v.Power != "poweredOn" {
		return
	}
	why := m.stays(v, h.Host)
	if b.ourselves(v) && v.Power == "poweredOn" && (why != "" || planned) {
		b.refuse(backends.HostRef(h.Name), "", "move the VM to a host that takes no part, or run rdma-setup from elsewhere",
			"runs %s, on which rdma-setup runs, and has to reboot", v.Name)
		return
	}
	if v.VCenterVM && why != "" {
		b.refuse(backends.HostRef(h.Name), "", "move it to another host first, or leave this host out with --limit",
			"runs vCenter itself (%s), and has to reboot: %s", v.Name, why)
		return
	}
	switch {
	case planned:
	case held && v.Power != "poweredOn":
		id = b.power(v, heldOff)
		b.brackets[id].Leave = backends.Absent
	case why == "":
		b.each(v.Name, "is moved to another host by vCenter while its own reboots")
		return
	default:
		id = b.power(v, "its host reboots, and "+why)
		b.brackets[id].Leave = backends.Absent
		b.each(v.Name, "takes no part, but is shut down while its host reboots and started again: %s", why)
	}
	br := b.brackets[id]
	br.Around = append(br.Around, h.reboots...)
	// What comes before the first reboot need not find the VM off.
	br.After = append(br.After, b.brackets[h.reboots[0]].After...)
}

// ourselves tells whether rdma-setup runs in this VM.
func (b *builder) ourselves(v *backends.VM) bool {
	return slices.ContainsFunc(v.IPs, func(ip string) bool { return slices.Contains(b.opts.Ourselves, ip) })
}

// clusters says what HA, DRS and vSAN mean for the waves.
func (b *builder) clusters() {
	reboots, names := 0, []string{}
	for _, h := range b.hosts {
		if len(h.reboots) == 0 {
			continue
		}
		reboots += len(h.reboots)
		if h.Cluster != "" && !slices.Contains(names, h.Cluster) {
			names = append(names, h.Cluster)
		}
	}
	if reboots == 0 {
		return
	}
	at := max(1, b.a.Run.Reboot.MaxUnavailable)
	b.note("hosts are evacuated into maintenance mode and rebooted: %d in all, at most %d down at the same time; a host that does not come back within %s stops all that follow",
		reboots, at, b.a.Run.Reboot.Timeout)
	for _, name := range names {
		cl := b.inv.Cluster(name)
		if cl == nil {
			b.note("how cluster %s is set (HA, DRS, vSAN) was not read: see that its failover level allows %d host(s) in maintenance", name, at)
			continue
		}
		if cl.HA {
			b.failover(cl, at)
		}
		if cl.VSAN {
			b.note("vSAN of %s: each host goes into maintenance with its objects kept accessible, and not before vSAN has copied what the one before it has missed", name)
		}
		if cl.DRS && cl.DRSMode != "fullyAutomated" {
			b.note("DRS of %s is %s: it would stall maintenance mode, so VMs are shut down instead of moved", name, fmt.Sprint(strings.TrimSpace(orElse(cl.DRSMode, "not automated"))))
		}
	}
}
