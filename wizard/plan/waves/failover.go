package waves

import (
	"cmp"
	"slices"

	"github.com/rdma-setup/rdma-setup/backends"
)

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
		w.Refuse(ref, "CL-HA-012", "lower the failover level of HA's admission control for the run, or run.reboot.max_unavailable where that is more than 1",
			"HA's failover level is %d of %d hosts; with %d down, %d are left, and DRS then evacuates no host", cl.Failover, len(up), at, left)
		return
	case cl.Failover > 0 && w.memoryShort(cl, up, at):
		return
	}
	w.Note("HA of %s keeps %d of %d hosts while one wave runs; full memory reservations reduce the number of VMs that it can restart", cl.Name, left, len(up))
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
		w.Object(backends.Ref{Type: backends.TypeCluster, Name: cl.Name}, "CL-HA-012", "shut VMs down, lower the failover level of HA's admission control for the run, or free memory",
			"HA's failover level is %d; while %s reboots, %d MB of memory are reserved and %d MB are available: DRS then evacuates no host, and VMs do not start again",
			cl.Failover, h.Name, reserved-off[h.Name], room)
		return true
	}
	return false
}
