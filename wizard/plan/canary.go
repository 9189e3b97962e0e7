package plan

import (
	"slices"

	"github.com/rdma-setup/rdma-setup/backends"
)

// canary lets one host go first: no other goes down before that one is back, its VFs are found and the VMs on it run again
// (production.md: one host before any wave). The host of vCenter is none: it goes last.
func (b *builder) canary(last []string) {
	var rest []*hostPart
	var first *hostPart
	for _, h := range b.hosts {
		switch {
		case len(h.reboots) == 0 || slices.Equal(h.reboots, last):
		case first == nil:
			first = h
		default:
			rest = append(rest, h)
		}
	}
	if first == nil || len(rest) == 0 {
		return
	}
	if !b.a.Run.Reboot.Canary {
		b.note("no host goes first (run.reboot.canary: false): a setting that is wrong for all is seen after a whole wave")
		return
	}
	alive := slices.Clone(first.reboots)
	for _, c := range b.plan.Changes {
		if c.Kind == backends.KindActiveVFs && c.Target.Name == first.Name {
			alive = append(alive, c.ID())
		}
	}
	for i := range b.inv.VMs {
		v := &b.inv.VMs[i]
		if id, there := b.powered(v); there && v.Host == first.Name && len(b.brackets[id].Around) > 0 {
			alive = append(alive, id)
		}
	}
	for _, h := range rest {
		br := b.brackets[h.reboots[0]]
		br.After = append(br.After, alive...)
	}
	b.note("%s goes first and alone (run.reboot.canary): no other host goes down before it is back, its VFs are found and its VMs run again", first.Name)
}
