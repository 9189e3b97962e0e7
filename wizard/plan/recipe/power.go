package recipe

import (
	"maps"
	"slices"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
)

// powerWaves plans how VMs are powered off: it selects the canary, keeps VMs of one group or of one anti-affinity rule of DRS
// apart, and notes or refuses what has to be off together. The engine enforces the number itself (engine.Limits.VMsOff).
func (b *builder) powerWaves() {
	var brackets []plan.Bracket
	for _, id := range slices.Sorted(maps.Keys(b.Brackets)) { // deterministic order of refusals
		brackets = append(brackets, *b.Brackets[id])
	}
	off, minutes := map[string]bool{}, plan.MinutesOut(backends.BracketVMPower)
	for _, br := range brackets {
		off[br.ID()] = br.Kind == backends.BracketVMPower && br.Effect == plan.VMPowerCycle
		if off[br.ID()] && len(br.Around) > 0 {
			minutes = plan.MinutesOut(backends.BracketVMPower) + plan.MinutesOut(backends.BracketReboot)
		}
	}
	groups := plan.Together(brackets, b.Plan.Changes)
	cycles, together := plan.OffTogether(brackets, b.Plan.Changes)
	if cycles == 0 {
		b.powerCanary(off)
		return
	}
	limit := b.Answers.Run.Power.Limit(len(b.Answers.VMs))
	switch {
	case limit > 0 && together > limit && b.Answers.Run.Power.MaxUnavailable > 0:
		b.Refuse(backends.Ref{Type: backends.TypeCluster, Name: "run.power.max_unavailable"}, "",
			"Raise run.power.max_unavailable, or move VMs to other hosts first.",
			"%d is too low: %d VMs have to be off at the same time, because they share a host that reboots or a switch whose uplinks change", limit,
			together)
	case limit == 0:
		b.Note("all %d VMs may be off at a time, about %d minutes each (run.power.max_unavailable: all)", cycles, minutes)
	default:
		most, vms := min(max(limit, together), cycles), "VMs"
		if most == 1 {
			vms = "VM"
		}
		b.Note("at most %d %s off at a time, about %d minutes each, %d in all (run.power.max_unavailable)", most, vms, minutes, cycles)
	}
	for _, v := range b.VMs {
		if id, there := b.Powered(v.VM); there && v.Wish.Group != "" {
			b.Brackets[id].Apart = append(b.Brackets[id].Apart, v.Wish.Group)
		}
	}
	for id, br := range b.Brackets {
		if off[id] {
			br.Apart = append(br.Apart, b.Inventory.KeptApart(br.Target.Name)...)
		}
	}
	for _, ids := range groups {
		b.apartTogether(slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return !off[id] }))
	}
	b.powerCanary(off)
}

// apartTogether refuses simultaneous power cycles of VMs that a group or a rule keeps apart.
func (b *builder) apartTogether(ids []string) {
	first := map[string]string{}
	for _, id := range ids {
		br := b.Brackets[id]
		for _, name := range br.Apart {
			if other, taken := first[name]; taken && other != br.Target.Name {
				b.Refuse(br.Target, "", "Move one of them to another host first, or lift the rule for the time of the run.",
					"must not be off together with %s (%s), but both share a host that reboots or a switch whose uplinks change", other, name)
			} else {
				first[name] = br.Target.Name
			}
		}
	}
}

// powerCanary makes one VM go first: no other is powered off before it is on again and everything planned in its guest is done.
// VMs around the reboot of a host follow the canary of the hosts.
func (b *builder) powerCanary(off map[string]bool) {
	if !b.Answers.Run.Power.Canary {
		return
	}
	changes, shared := map[string][]string{}, map[string]bool{} // by VM; power cycles that share a change or the reboot of a host
	for _, c := range b.Plan.Changes {
		if c.Target.Type == backends.TypeVM || c.Target.Type == backends.TypeGuest {
			changes[c.Target.Name] = append(changes[c.Target.Name], c.ID())
		}
		if len(c.Within) > 1 || c.Target.Type != backends.TypeVM { // changes of other VMs wait for those of the network
			for _, id := range c.Within {
				shared[id] = true
			}
		}
	}
	first := ""
	var proof, rest []string
	for _, v := range b.VMs {
		id, there := b.Powered(v.VM)
		if shared[id] = there && (shared[id] || len(b.Brackets[id].Around) > 0); there {
			changes[v.Name] = append(changes[v.Name], id)
		}
		switch {
		case shared[id]:
		case first == "" && (there && off[id] || !there && len(changes[v.Name]) > 0):
			first, proof = v.Name, changes[v.Name]
		case there && off[id] && !slices.Contains(b.Options.Held, v.Name):
			rest = append(rest, id)
		}
	}
	for _, id := range rest {
		b.Brackets[id].After = append(b.Brackets[id].After, proof...)
	}
	if len(rest) > 0 {
		b.Note("%s is set up first and alone (run.power.canary): no other VM is powered off until it is on again and its guest is set up", first)
	}
	b.proveBoot(first, rest, changes, shared)
}

// proveBoot makes the guest of the first VM that the run powers off and whose network it sets up restart once: no other guest's network
// is set up, no VM of rest is powered off, and no host that waits for the VM reboots, before it has come back. Alone is the VM for which
// rest waits.
func (b *builder) proveBoot(alone string, rest []string, changes map[string][]string, shared map[string]bool) {
	if !b.Answers.Run.Power.CanaryReboot || b.Options.Boots.Proven {
		return
	}
	addresses := map[string]bool{}
	for _, c := range b.Plan.Changes {
		addresses[c.Target.Name] = addresses[c.Target.Name] || c.Kind == backends.KindAddress
	}
	first, cycle, least := "", "", 0
	for _, v := range b.VMs {
		id, there := b.Powered(v.VM)
		setUp, cycled := slices.Contains(b.Options.Boots.SetUp, v.Name), slices.Contains(b.Options.Boots.Cycled, v.Name)
		if !setUp && !addresses[v.Name] || !there && !cycled ||
			slices.ContainsFunc(v.VM.IPs, func(ip string) bool { return slices.Contains(b.Options.Ourselves, ip) }) {
			continue
		}
		waits := 0 // VMs of hosts that reboot later wait for those of the host before
		switch {
		case setUp && !there:
			waits = -3
		case v.Name == alone:
			waits = -2
		case !shared[id]:
			waits = -1
		default:
			waits = len(b.Brackets[id].After)
		}
		if first == "" || waits < least {
			first, cycle, least = v.Name, id, waits
		}
	}
	if first == "" {
		return
	}
	guest := backends.GuestRef(first)
	c := plan.Change{Setting: backends.Setting{Target: guest, Kind: backends.KindRestart}, From: backends.Absent, To: backends.ValueOf(true),
		State: true,
		Why:   "proves that a guest boots with its network as before, and with ours", Disrupts: []plan.Disruption{plan.GuestReboot},
		After: changes[first]}
	others := ""
	for i := range b.Plan.Changes {
		of := &b.Plan.Changes[i]
		if of.Kind == backends.KindAddress && of.Target != guest && (of.Target.Name != alone || !slices.Contains(rest, cycle)) {
			of.After, others = append(of.After, c.ID()), "; the network of other guests is set up after that"
		}
	}
	b.Add(c)
	for id, br := range b.Brackets {
		if shared[cycle] && id != cycle && slices.Contains(br.After, cycle) { // other hosts, and the VMs on them
			br.After = append(br.After, c.ID())
		}
	}
	switch {
	case b.Brackets[cycle] == nil: // powered off in a stage before
		b.waitForRestart(c.ID())
	case !shared[cycle]:
		for _, id := range rest {
			if id != cycle {
				b.Brackets[id].After = append(b.Brackets[id].After, c.ID())
			}
		}
	}
	b.Note("the guest of %s is restarted once after its setup, and must come back with every interface as it was (run.power.canary_reboot)%s",
		first, others)
}

// waitForRestart makes hosts and VMs wait for the restart of a guest, except those that the restart itself waits for.
func (b *builder) waitForRestart(restart string) {
	p := plan.Plan{Changes: b.Plan.Changes}
	for _, id := range slices.Sorted(maps.Keys(b.Brackets)) {
		p.Brackets = append(p.Brackets, *b.Brackets[id])
	}
	g, err := p.Graph()
	if err != nil {
		return // reported when the plan is put in order
	}
	before := []string{restart}
	for i := 0; i < len(before); i++ {
		for _, id := range g.Waits[before[i]] {
			if !slices.Contains(before, id) {
				before = append(before, id)
			}
		}
	}
	for id, br := range b.Brackets {
		if (br.Effect == plan.HostReboot || br.Effect == plan.VMPowerCycle) && !slices.Contains(before, plan.OpenID(id)) {
			br.After = append(br.After, restart)
		}
	}
}
