// Package waves orders the reboots of hosts: who goes first and last, which VMs move and which are off during a reboot, and
// whether HA has enough resources in the meantime.
package waves

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
	"github.com/rdma-setup/rdma-setup/wizard/plan/draft"
)

// Stays returns why a VM cannot be moved away while its host is down, "" if vCenter can move it.
func Stays(inv *backends.Inventory, v *backends.VM, h *backends.Host) string {
	if len(v.Passthrough) > 0 || slices.ContainsFunc(v.Adapters, func(a backends.Adapter) bool { return a.Type == "sriov" }) {
		return "it uses a device of its host"
	}
	if h.Cluster == "" {
		return "its host is in no cluster"
	}
	if !slices.ContainsFunc(inv.Hosts, func(o backends.Host) bool {
		return o.Cluster == h.Cluster && o.Name != h.Name && o.State == "connected" && !o.InMaintenance
	}) {
		return "its cluster has no other host"
	}
	cl := inv.Cluster(h.Cluster)
	if cl == nil {
		return ""
	}
	mode := cmp.Or(cl.DRSOverride[v.Name], cl.DRSMode)
	if !cl.DRS || mode != "fullyAutomated" {
		return "DRS does not move it automatically (" + cmp.Or(mode, "off") + ")"
	}
	return ""
}

// waves orders the reboots of a draft.
type waves struct{ *draft.Draft }

// Plan adds power cycles of VMs around the reboots of their hosts, and checks in advance what could prevent a wave: HA, DRS, VMs on
// the host, and the host of vCenter (vSphere Availability; vSphere Resource Management).
func Plan(d *draft.Draft) {
	w := &waves{d}
	var vcenter *draft.Host // runs vCenter: after all others
	var others []string
	for _, h := range w.Hosts {
		if len(h.Reboots) == 0 {
			continue
		}
		w.stayOut(h)
		free := room(w.Inventory, h.Host)
		for i := range w.Inventory.VMs {
			v := &w.Inventory.VMs[i]
			if v.Host != h.Name || v.Template {
				continue
			}
			w.around(h, v, free)
			if v.VCenterVM && v.Power == "poweredOn" {
				vcenter = h
			}
		}
		if vcenter != h {
			others = append(others, h.Out...)
		}
	}
	for _, h := range w.Hosts {
		if h.Shell != "" {
			w.Order = append(w.Order, h.Shell)
		}
		w.Order = append(w.Order, h.Reboots...)
		if len(h.Out) > 0 && h.Out[0] != h.Reboots[0] {
			w.Order = append(w.Order, h.Out...)
		}
		w.Order = append(w.Order, draft.IDs(h.Looks)...)
	}
	w.canary(vcenter)
	if vcenter != nil {
		w.wavesAfter(vcenter, others)
		w.Note("%s runs vCenter itself and reboots last", vcenter.Name)
	}
	w.clusters()
	if !w.Options.Until.IsZero() {
		w.Note(
			"a host or VM is taken out of service only if it can be back, and its changes undone, by %s (run.window.until); rdma-setup resume "+
				"continues with the rest",
			w.Options.Until.Format("2006-01-02 15:04 MST"))
	}
}

// HeldOff is why a VM that is off waits for the reboot of its host: a host that is being evacuated starts no VMs, and one that
// was started before prevents the evacuation.
const HeldOff = "an earlier attempt shut it down; it starts after its host is back"

// around plans what happens to one VM of a host that reboots. Free is the memory that other hosts have for it (BystanderOf).
func (w *waves) around(h *draft.Host, v *backends.VM, free map[string]int64) {
	id, planned := w.Powered(v)
	held := slices.Contains(w.Options.Held, v.Name)
	if !planned && !held && v.Power != "poweredOn" {
		return
	}
	why := Stays(w.Inventory, v, h.Host)
	ourselves := slices.ContainsFunc(v.IPs, func(ip string) bool { return slices.Contains(w.Options.Ourselves, ip) })
	if ourselves && v.Power == "poweredOn" && (why != "" || planned) {
		w.Refuse(backends.HostRef(h.Name), "", "move the VM to a host that the answers do not include, or run rdma-setup on another machine",
			"runs %s, on which rdma-setup runs, and has to reboot", v.Name)
		return
	}
	if v.VCenterVM && why != "" {
		w.Refuse(backends.HostRef(h.Name), "", "move it to another host first, or leave this host out with --limit",
			"runs vCenter itself (%s), and has to reboot: %s", v.Name, why)
		return
	}
	switch {
	case planned:
	case held && v.Power != "poweredOn":
		id = w.Power(v, HeldOff)
		w.Brackets[id].Leave = backends.Absent
	default:
		switch fate, why := BystanderOf(w.Answers.Run.Bystanders, w.Inventory, v, h.Host, free); fate {
		case BystanderService:
			w.NoteEach(v.Name, "[is left to vCenter while its host reboots|are left to vCenter while their hosts reboot]: %s", why)
			return
		case BystanderMoved:
			w.NoteEach(v.Name,
				"[is moved to another host by vCenter while its host reboots|are moved to other hosts by vCenter while their hosts reboot]")
			return
		case BystanderMigrated:
			then := "not back"
			if w.Answers.Run.ReturnVMs {
				then = "back at the end of the run"
			}
			w.NoteEach(v.Name, "[is not in vms; it is moved to another host by vMotion before its host is|"+
				"are not in vms; they are moved to other hosts by vMotion before their hosts are] evacuated (run.bystanders: migrate), and %s", then)
			return
		case BystanderRefused:
			w.Refuse(backends.VMRef(v.Name), "", bystanderRemedy, "is not in vms and runs on %s, which has to reboot: %s", h.Name, why)
			return
		default:
			id = w.Power(v, "its host reboots, and "+why)
			w.Brackets[id].Leave = backends.Absent
			w.NoteEach(v.Name,
				"[is not in vms, but is shut down while its host reboots|are not in vms, but are shut down while their hosts reboot], then "+
					"started again: %s", why)
		}
	}
	br := w.Brackets[id]
	br.Around = append(br.Around, h.Out...)
	// What comes before the first reboot does not need the VM to be off.
	br.After = append(br.After, w.Brackets[h.Reboots[0]].After...)
}

// stayOut keeps a host that reboots more than once in maintenance mode from its first to its last reboot: it is evacuated once,
// and no VM moves back in between. The same applies to the host that an earlier attempt has left between two reboots.
func (w *waves) stayOut(h *draft.Host) {
	h.Out = h.Reboots
	if len(h.Reboots) < 2 && !slices.Contains(w.Options.Evacuated, h.Name) {
		return
	}
	ref := backends.HostRef(h.Name)
	br := plan.Bracket{Kind: backends.BracketMaintenance, Target: ref, From: plan.MaintenanceFound(h.InMaintenance),
		Around: slices.Clone(h.Reboots),
		After:  slices.Clone(w.Brackets[h.Reboots[0]].After), Why: "it is evacuated once for all its reboots"}
	w.Brackets[br.ID()] = &br
	for _, id := range h.Reboots {
		w.Brackets[id].From = plan.HostFound(true)
	}
	last := h.Reboots[len(h.Reboots)-1]
	for i := range w.Plan.Changes {
		if c := &w.Plan.Changes[i]; c.Target.Type != backends.TypeHost && slices.Contains(c.After, last) {
			c.After = append(c.After, br.ID())
		}
	}
	h.Out = []string{br.ID()}
}

// clusters notes what HA, DRS and vSAN mean for the waves.
func (w *waves) clusters() {
	reboots, names := 0, []string{}
	for _, h := range w.Hosts {
		if len(h.Reboots) == 0 {
			continue
		}
		reboots += len(h.Reboots)
		if h.Cluster != "" && !slices.Contains(names, h.Cluster) {
			names = append(names, h.Cluster)
		}
	}
	if reboots == 0 {
		return
	}
	at := max(1, w.Answers.Run.Reboot.MaxUnavailable)
	w.Note(
		"hosts enter maintenance mode and reboot: %d in total, at most %d at the same time; if a host does not come back within %s, the "+
			"remaining hosts are not rebooted",
		reboots, at, w.Answers.Run.Reboot.Timeout)
	for _, name := range names {
		cl := w.Inventory.Cluster(name)
		if cl == nil {
			w.Note(
				"the settings of cluster %s (HA, DRS, vSAN) could not be read: make sure that its failover level allows %d host(s) in maintenance",
				name, at)
			continue
		}
		if cl.HA {
			w.failover(cl, at)
		}
		if cl.VSAN {
			w.Note(
				"vSAN of %s: each host enters maintenance mode with its objects kept accessible, and only after vSAN has resynchronized the "+
					"previous host", name)
		}
		if cl.DRS && cl.DRSMode != "fullyAutomated" {
			w.Note("DRS of %s is %s: it does not move VMs automatically before a host enters maintenance mode", name,
				fmt.Sprint(strings.TrimSpace(cmp.Or(cl.DRSMode, "not automated"))))
		}
	}
}

// failover checks before the first wave whether HA has enough hosts and memory during a wave: DRS does not evacuate a host if
// that would violate the failover level, and VMs do not start again (InsufficientFailoverResources). What the plan reserves
// counts.
func (w *waves) failover(cl *backends.Cluster, at int) {
	ref := backends.Ref{Type: backends.TypeCluster, Name: cl.Name}
	var up []*backends.Host
	for i := range w.Inventory.Hosts {
		if h := &w.Inventory.Hosts[i]; h.Cluster == cl.Name && h.State == "connected" && !h.InMaintenance {
			up = append(up, h)
		}
	}
	left := len(up) - at
	switch {
	case left < 1:
		w.Refuse(ref, "CL-HA-012", "lower run.reboot.max_unavailable, or switch HA off for the run",
			"HA is on and has %d hosts; with %d down it has no host left for failover", len(up), at)
		return
	case left <= cl.Failover:
		w.Refuse(ref, "CL-HA-012",
			"lower the failover level of HA's admission control for the run, or run.reboot.max_unavailable where that is more than 1",
			"HA's failover level is %d of %d hosts; with %d down, %d are left, and DRS then evacuates no host", cl.Failover, len(up), at, left)
		return
	case cl.Failover > 0 && w.memoryShort(cl, up, at):
		return
	}
	w.Note("HA of %s keeps %d of %d hosts while one wave runs; full memory reservations reduce the number of VMs that it can restart", cl.Name,
		left, len(up))
}

// memoryShort objects if the memory that is reserved during a wave does not fit on the hosts that HA counts on: those that are
// up, without the largest ones that may fail.
func (w *waves) memoryShort(cl *backends.Cluster, up []*backends.Host, at int) bool {
	slices.SortFunc(up, func(x, y *backends.Host) int { return cmp.Compare(x.MemoryMB, y.MemoryMB) })
	room, reserved := int64(0), int64(0)
	for _, h := range up[:len(up)-at-cl.Failover] {
		room += h.MemoryMB
	}
	in := func(host string) bool {
		return slices.ContainsFunc(up, func(h *backends.Host) bool { return h.Name == host })
	}
	off := map[string]int64{} // by host: memory or CPU of VMs that are shut down while it reboots
	for i := range w.Inventory.VMs {
		v := &w.Inventory.VMs[i]
		mb, planned := v.Reservation, false
		if w.ByVM[v.Name] != nil {
			mb = v.MemoryMB
		}
		if id, there := w.Powered(v); there {
			planned = len(w.Brackets[id].Around) > 0
		}
		if !in(v.Host) || v.Power != "poweredOn" && w.ByVM[v.Name] == nil {
			continue
		}
		reserved += mb
		if planned {
			off[v.Host] += mb
		}
	}
	for _, h := range w.Hosts {
		if len(h.Reboots) == 0 || !in(h.Name) || reserved-off[h.Name] <= room {
			continue
		}
		w.Object(backends.Ref{Type: backends.TypeCluster, Name: cl.Name}, "CL-HA-012",
			"shut VMs down, lower the failover level of HA's admission control for the run, or free memory",
			"HA's failover level is %d; while %s reboots, %d MB of memory are reserved and %d MB are available: DRS then evacuates no host, and "+
				"VMs do not start again",
			cl.Failover, h.Name, reserved-off[h.Name], room)
		return true
	}
	return false
}
