package waves

import (
	"cmp"
	"slices"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/nic"
	"github.com/rdma-setup/rdma-setup/wizard/plan/draft"
)

// canary reboots one host first: no other host goes down before it is back, its VFs exist and its VMs run again. The host that
// runs vCenter is never the canary: it is last. Hosts whose card has a CPU of its own (BlueField) go before the others: its mode can
// be read only after the reboot that activates the firmware tools, and in DPU mode the host gets no VF. That holds without
// run.reboot.canary too.
func (w *waves) canary(last *draft.Host) {
	rank := func(h *draft.Host) int {
		switch {
		case w.down(h):
			return 0
		case ownCPU(h):
			return 1
		}
		return 2
	}
	order := slices.DeleteFunc(slices.Clone(w.Hosts), func(h *draft.Host) bool { return len(h.Reboots) == 0 || h == last })
	slices.SortStableFunc(order, func(x, y *draft.Host) int { return cmp.Compare(rank(x), rank(y)) })
	if w.Answers.Run.Reboot.Canary {
		if proof := w.unproven(); len(proof) > 0 {
			for _, h := range w.Hosts {
				if len(h.Reboots) > 0 && !w.down(h) {
					w.wavesAfter(h, proof)
				}
			}
		}
	}
	if len(order) == 0 {
		return
	}
	first, rest := order[0], slices.DeleteFunc(order[1:], w.down) // a host that is down uses a slot among those that may be down
	if len(rest) == 0 {
		return
	}
	if !w.Answers.Run.Reboot.Canary {
		if !slices.ContainsFunc(order, ownCPU) {
			w.Note("no host reboots first on its own (run.reboot.canary: false): a wrong setting is only noticed after a whole wave")
			return
		}
		w.Note("run.reboot.canary: false has no effect here: a BlueField in DPU mode must be found before a second host reboots")
	}
	what := "devices"
	switch {
	case w.WholeCard():
		what = "passed-through devices"
	case w.Answers.VFs():
		what = "VFs"
	}
	alive := w.proof(first)
	cards := slices.Clone(alive)
	for _, h := range rest {
		if ownCPU(h) {
			w.wavesAfter(h, alive)
			cards = append(cards, w.proof(h)...)
		} else {
			w.wavesAfter(h, cards)
		}
	}
	if ownCPU(first) {
		w.Note("%s has a BlueField, whose mode can be read only where the firmware tools run: such hosts reboot before the others", first.Name)
	}
	w.Note("%s reboots first and alone: no other host reboots until it is back, its %s are found and its VMs run again",
		first.Name, what)
}

// proof returns what shows that a host is back, with its devices and its VMs.
func (w *waves) proof(h *draft.Host) []string {
	ids := slices.Clone(h.Out)
	for _, c := range w.Plan.Changes {
		if atBoot(c.Kind) && c.Target.Name == h.Name {
			ids = append(ids, c.ID())
		}
	}
	return append(ids, w.powerAround(h)...)
}

// ownCPU reports whether a chosen port belongs to a card with a CPU of its own.
func ownCPU(h *draft.Host) bool {
	return slices.ContainsFunc(h.Ports, func(n *backends.NIC) bool { return n != nil && nic.HasCPU(n) })
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
	return k == backends.KindActiveFirmware || k == backends.KindActiveVFs || k == backends.KindActivePassthrough ||
		k == backends.KindActiveGraphics
}
