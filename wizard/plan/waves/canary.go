package waves

import (
	"slices"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/plan/draft"
)

// canary reboots one host first: no other host goes down before it is back, its VFs exist and its VMs run again. The host that
// runs vCenter is never the canary: it is last.
func (w *waves) canary(last *draft.Host) {
	var rest []*draft.Host
	var first *draft.Host
	if i := slices.IndexFunc(w.Hosts, func(h *draft.Host) bool { return h != last && len(h.Reboots) > 0 && w.down(h) }); i >= 0 {
		first = w.Hosts[i]
	}
	for _, h := range w.Hosts {
		switch {
		case len(h.Reboots) == 0 || h == last || h == first:
		case w.down(h): // it uses a slot among the hosts that may be down
		case first == nil:
			first = h
		default:
			rest = append(rest, h)
		}
	}
	if w.Answers.Run.Reboot.Canary {
		if proof := w.unproven(); len(proof) > 0 {
			for _, h := range w.Hosts {
				if len(h.Reboots) > 0 && !w.down(h) {
					w.wavesAfter(h, proof)
				}
			}
		}
	}
	if first == nil || len(rest) == 0 {
		return
	}
	if !w.Answers.Run.Reboot.Canary {
		w.Note("no host reboots first on its own (run.reboot.canary: false): a wrong setting is only noticed after a whole wave")
		return
	}
	alive := slices.Clone(first.Out)
	for _, c := range w.Plan.Changes {
		if atBoot(c.Kind) && c.Target.Name == first.Name {
			alive = append(alive, c.ID())
		}
	}
	alive = append(alive, w.powerAround(first)...)
	what := "devices"
	switch {
	case w.WholeCard():
		what = "passed-through devices"
	case w.Answers.VFs():
		what = "VFs"
	}
	for _, h := range rest {
		w.wavesAfter(h, alive)
	}
	w.Note("%s reboots first and alone (run.reboot.canary): no other host reboots until it is back, its %s are found and its VMs run again", first.Name, what)
}

// down reports whether an earlier attempt has left a host out of service: it continues before any other goes down.
func (w *waves) down(h *draft.Host) bool { return slices.Contains(w.Options.Down, h.Name) }

// unproven returns what is not proven yet of hosts that need no further reboot: their VFs or passed-through devices are not
// active, or their VMs are off. After an interruption that is the host that went first: the others wait for it.
func (w *waves) unproven() []string {
	var ids []string
	for _, h := range w.Hosts {
		if len(h.Reboots) > 0 {
			continue
		}
		for _, c := range w.Plan.Changes {
			if atBoot(c.Kind) && c.Target.Name == h.Name {
				ids = append(ids, c.ID())
			}
		}
		for _, v := range w.VMs {
			if id, there := w.Powered(v.VM); there && v.Host == h.Name && !v.On() {
				ids = append(ids, id)
			}
		}
	}
	if len(ids) > 0 {
		w.Note("no host reboots until the hosts that have already rebooted show their devices and have started their VMs")
	}
	return ids
}

// powerAround returns the power cycles around a host's reboots.
func (w *waves) powerAround(h *draft.Host) []string {
	var ids []string
	for i := range w.Inventory.VMs {
		v := &w.Inventory.VMs[i]
		if id, there := w.Powered(v); there && v.Host == h.Name && len(w.Brackets[id].Around) > 0 {
			ids = append(ids, id)
		}
	}
	return ids
}

// wavesAfter delays everything that takes a host out of service: its first reboot, its open shell, and the power cycles of its
// VMs. A shell or a VM that went first would use a slot among the hosts that may be down.
func (w *waves) wavesAfter(h *draft.Host, ids []string) {
	for _, id := range append(draft.IDs(h.Out[0], h.Shell), w.powerAround(h)...) {
		br := w.Brackets[id]
		br.After = append(br.After, ids...)
	}
}

// atBoot reports whether a state results from a boot of the host.
func atBoot(k backends.Kind) bool {
	return k == backends.KindActiveFirmware || k == backends.KindActiveVFs || k == backends.KindActivePassthrough || k == backends.KindActiveGraphics
}
