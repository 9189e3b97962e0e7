package rollback

import (
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
)

// recorded handles a setting whose items a Keeper recorded before the run. Its current value is not considered: it may be half
// done and read as the previous value.
func (u *undo) recorded(p plan.Prior) {
	c := p.Change
	if len(p.Kept.Items) == 0 {
		return
	}
	seen, asked := u.opts.Observed[c.ID()]
	why := u.silent(c.Target)
	switch {
	case why != "":
	case !asked:
		why = "could not read its " + subject(c)
	case seen.Err != nil:
		why = subject(c) + " cannot be read: " + seen.Err.Error()
	}
	if why != "" {
		u.conflict(c.Target, "fix that, then roll back again", "%s", why)
		return
	}
	change := plan.Change{Setting: c.Setting, From: p.Found, To: finished(p.Prior)}
	if now, unread := u.now(p); unread == "" {
		change.From = now
	}
	var others []backends.Difference
	change.Restore, others = p.Differing(seen.Now)
	if len(others) > 0 {
		who := u.whoAll(c.Target, others)
		switch u.opts.decision(c.Target) {
		case Keep:
			change.Leave = others
			u.keep(c.Target, "%s", sinceChanged(p, others, who))
		case Restore:
			change.Restore = append(change.Restore, others...)
		default:
			u.open(c.Target, remedy(who), "%s", sinceChanged(p, others, who))
			return
		}
	}
	if len(change.Restore) == 0 {
		return
	}
	change.Yield = u.opts.decision(c.Target) == Keep
	change.Why = "as it was before the run: " + strings.Join(plan.Differences(change.Restore), "; ")
	u.changes = append(u.changes, change)
}

// sinceChanged describes items that others have changed: their current state, what the run left, and who has changed them.
func sinceChanged(p plan.Prior, others []backends.Difference, who []string) string {
	var out []string
	lost := 0
	for _, d := range others[:min(len(others), 5)] {
		left := p.Left.Item(d.Kind, d.Name)
		if left.State == d.Is {
			out = append(out, string(d.Kind)+" "+d.Name+" is now "+d.Is.String()+"; before the run it was "+d.Was.String()+
				", which is no longer available")
			lost++
			continue
		}
		is := "is now " + d.Is.String()
		if d.Is.IsAbsent() {
			is = "is gone"
		}
		was := "left it as " + left.State.String()
		if left.State.IsAbsent() {
			was = "left none"
		}
		out = append(out, string(d.Kind)+" "+d.Name+" "+is+"; the run "+was)
	}
	if lost == len(out) {
		return strings.Join(out, ", ")
	}
	return strings.Join(out, ", ") + ": changed by " + named(who) + " since then"
}
