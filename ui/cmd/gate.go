package cmd

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/vsphere"
	"github.com/rdma-setup/rdma-setup/ui/cmd/session"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/engine"
	"github.com/rdma-setup/rdma-setup/wizard/engine/journal"
)

// gateLook is the maximum interval at which the gate checks again while it holds a wave.
const gateLook = 5 * time.Second

// freshFor is how long a VM of a twin counts as running after a gate saw it running: hundreds come back there in seconds, and not
// each wave reads all of them again.
const freshFor = time.Second

// A gate holds a wave until targets that came back work again and the next ones are not in use.
type gate struct {
	s     *session.Session
	limit time.Duration

	mu        sync.Mutex
	before    map[backends.Ref]vsphere.Health // hosts as first seen by the gate
	connected map[backends.Ref]bool           // VMs whose adapters are known to be connected
	running   map[backends.Ref]time.Time      // when VMs of a twin that are back were last seen running
	since     map[string]time.Time            // when each cause that holds waves was first seen
}

// gateOf returns the gate of a run: it waits as long as a reboot may take.
func gateOf(s *session.Session, a *answers.Answers) func(context.Context, engine.Wave, func(string)) error {
	return (&gate{s: s, limit: a.Run.Reboot.Limit(), before: map[backends.Ref]vsphere.Health{}, connected: map[backends.Ref]bool{},
		running: map[backends.Ref]time.Time{}, since: map[string]time.Time{}}).pass
}

// pass waits until nothing blocks the wave, and returns the cause after its time limit. The wait for a cause that blocks several
// waves happens once: its time counts from when it was first seen.
func (g *gate) pass(ctx context.Context, w engine.Wave, say func(string)) error {
	said, seen := "", map[string]bool{}
	wait := backends.Poll{What: "wait until nothing speaks against it, each cause for at most " + g.limit.String(), Target: w.Next[0].Name,
		Limit: -1, Every: time.Second / 4, Most: gateLook}
	err := wait.Until(ctx, func(ctx context.Context) (bool, error) {
		held, err := g.holds(ctx, w)
		if err != nil || len(held) == 0 {
			return true, err
		}
		before := said
		said = strings.Join(held, "; ")
		if g.overdue(held, seen) {
			return true, backends.ErrLate
		}
		if said != before {
			say(said)
		}
		return false, nil
	})
	if err == backends.ErrLate {
		return backends.Transientf(w.Next[0].Name, "Check this in vCenter. When it is resolved, run rdma-setup resume.",
			"not taken out of service, because %s (waited %s)", said, g.limit)
	}
	if err == nil {
		g.forget(seen)
	}
	return err
}

// overdue records the causes that hold a wave, and reports whether one of them has reached its limit.
func (g *gate) overdue(held []string, seen map[string]bool) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.s.Env.Now()
	late := false
	for _, cause := range held {
		seen[cause] = true
		if _, known := g.since[cause]; !known {
			g.since[cause] = now
		}
		late = late || now.Sub(g.since[cause]) >= g.s.Env.Wait(g.limit)
	}
	return late
}

// forget removes causes that have ended: if one returns, it is waited for again.
func (g *gate) forget(causes map[string]bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for cause := range causes {
		delete(g.since, cause)
	}
}

// holds returns the reasons against taking the next targets out of service. What vCenter does not show is not a reason.
func (g *gate) holds(ctx context.Context, w engine.Wave) ([]string, error) {
	asked, back := time.Now(), w.Back
	if g.s.Env.Twin != nil {
		back = g.unseen(w, asked)
	}
	now, err := g.s.VC.Health(ctx, slices.Concat(w.Next, back))
	if err != nil {
		return nil, err
	}
	var held []string
	for _, t := range back {
		x, known := now[t]
		switch {
		case !known:
		case t.Type == backends.TypeVM && !x.On:
			held = append(held, t.Name+" is not running")
		case t.Type == backends.TypeVM:
			g.mu.Lock()
			g.running[t] = asked
			g.mu.Unlock()
		case t.Type == backends.TypeHost:
			held = append(held, g.host(t, x)...)
		}
	}
	lost, err := g.unplugged(ctx, w, now)
	if err != nil {
		return nil, err
	}
	held = append(held, lost...)
	g.remember(w.Next, now)
	var vms []backends.Ref
	for _, t := range w.Next {
		if b := now[t].Backup; b != "" {
			held = append(held, fmt.Sprintf("a backup reads the snapshot %q of %s", b, t.Name))
		}
		if t.Type == backends.TypeVM {
			vms = append(vms, t)
		}
	}
	others, err := g.s.VC.Others(ctx, vms)
	if err != nil {
		return nil, err
	}
	for _, a := range others {
		if what := strings.ToLower(a.What); strings.Contains(what, "snapshot") || strings.Contains(what, "backup") ||
			strings.Contains(what, "consolidate") {
			held = append(held, fmt.Sprintf("%s: %s", a.Target.Name, a))
		}
	}
	return held, nil
}

// unseen returns the targets that are back, without VMs that were seen running a moment before asked.
func (g *gate) unseen(w engine.Wave, asked time.Time) []backends.Ref {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, t := range w.Next {
		delete(g.running, t)
	}
	return slices.DeleteFunc(slices.Clone(w.Back), func(t backends.Ref) bool { return asked.Sub(g.running[t]) < freshFor })
}

// unplugged returns which VMs that are back have an RDMA adapter that is not connected. Each VM is queried until its adapters are
// connected. One that ran a moment before, in now, and is off when its adapters are read has none that are known to be connected.
func (g *gate) unplugged(ctx context.Context, w engine.Wave, now map[backends.Ref]vsphere.Health) ([]string, error) {
	g.mu.Lock()
	for _, t := range w.Next {
		delete(g.connected, t)
	}
	vms := slices.DeleteFunc(slices.Concat(w.Back, w.Earlier),
		func(t backends.Ref) bool { return t.Type != backends.TypeVM || g.connected[t] })
	g.mu.Unlock()
	lost, err := g.s.VC.Unplugged(ctx, vms)
	if err != nil {
		return nil, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	var held []string
	for _, t := range vms {
		switch labels, read := lost[t]; {
		case !read && now[t].On:
			held = append(held, t.Name+" is not running")
		case !read:
		case len(labels) > 0:
			held = append(held, fmt.Sprintf("%s of %s is not connected: connect it in the settings of the VM (Broadcom KB 368679)",
				strings.Join(labels, ", "), t.Name))
		default:
			g.connected[t] = true
		}
	}
	return held, nil
}

// remember stores the health of hosts as first seen by the gate: earlier problems do not hold a wave.
func (g *gate) remember(hosts []backends.Ref, now map[backends.Ref]vsphere.Health) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, t := range hosts {
		if _, known := g.before[t]; !known && t.Type == backends.TypeHost {
			g.before[t] = now[t]
		}
	}
}

// host returns the problems of a host that has been out of service.
func (g *gate) host(t backends.Ref, x vsphere.Health) []string {
	g.mu.Lock()
	was, known := g.before[t]
	g.mu.Unlock()
	if !known { // rebooted by an earlier attempt
		was = x
	}
	var held []string
	more := func(format, what string, now, before []string) {
		for _, name := range now {
			if !slices.Contains(before, name) {
				held = append(held, fmt.Sprintf(format, what, name, t.Name))
			}
		}
	}
	switch {
	case !x.Connected:
		return []string{t.Name + " is not connected"}
	case x.Maintenance:
		return nil // someone else keeps it there
	case x.HA && x.Agent != "master" && x.Agent != "connectedToMaster":
		held = append(held, fmt.Sprintf("the HA agent of %s is not back (%s)", t.Name, cmp.Or(x.Agent, "not initialized")))
	}
	more("%s %s of %s is dead", "storage path", x.DeadPaths, was.DeadPaths)
	more("%s %s of %s is not up", "NSX switch", x.Switches, was.Switches)
	more("%s %q is red on %s", "alarm", x.Alarms, was.Alarms)
	return held
}

// leftRunning is how long resume and rollback wait for tasks of the same account: those started by an earlier attempt continue in
// vCenter after its process was killed.
const leftRunning = 2 * time.Minute

// passing is how long to wait for a task that takes nothing out of service: backups, storage plug-ins and other services use
// separate accounts, and their tasks are short.
const passing = 30 * time.Second

// among calls busy for no other targets than these.
func among(these []backends.Ref, busy func(context.Context, []backends.Ref) (map[backends.Ref]error, error)) func(context.Context,
	[]backends.Ref) (map[backends.Ref]error, error) {
	return func(ctx context.Context, targets []backends.Ref) (map[backends.Ref]error, error) {
		some := slices.DeleteFunc(slices.Clone(targets), func(t backends.Ref) bool { return !slices.Contains(these, t) })
		if len(some) == 0 {
			return nil, nil
		}
		return busy(ctx, some)
	}
}

// busy returns the activities of others on targets: if the shared lock was lost, all targets count as in use. again: an earlier
// attempt may have left tasks running.
func busy(s *session.Session, shared *sharedLock, vcenter string,
	again bool) func(context.Context, []backends.Ref) (map[backends.Ref]error, error) {
	return func(ctx context.Context, targets []backends.Ref) (map[backends.Ref]error, error) {
		if err := shared.renew(ctx); backends.KindOf(err) == backends.KindConflict {
			out := map[backends.Ref]error{}
			for _, t := range targets {
				out[t] = err
			}
			return out, nil
		}
		look := func() ([]vsphere.Activity, error) {
			found, err := s.VC.Others(ctx, targets)
			if err != nil || !again {
				return found, err
			}
			creating, err := s.VC.Creating(ctx, targets)
			return append(found, creating...), err
		}
		var found []vsphere.Activity
		began := time.Now()
		wait := backends.Poll{What: "wait for tasks of others", Target: "vCenter", Limit: leftRunning, Every: time.Second / 4, Whole: true}
		err := wait.Until(ctx, func(context.Context) (over bool, err error) {
			waiting := false
			found, err = look()
			for _, a := range found {
				limit := passing
				if again && s.VC.Ours(a) {
					limit = leftRunning
				} else if a.Disrupts() {
					continue
				}
				waiting = waiting || !a.Shut && time.Since(began) < limit
			}
			return !waiting, err
		})
		if err != nil && err != backends.ErrLate && ctx.Err() == nil {
			return nil, err
		}
		out := map[backends.Ref]error{}
		var ours map[string]time.Time
		for _, a := range found {
			if a.Shut {
				if ours == nil {
					ours = journal.LeftOff(s.Set.StateDir, vcenter)
				}
				if since, known := ours[a.Target.Name]; known && !since.Before(a.Since.Add(-time.Minute)) {
					continue // by a run of this program, which left it off intentionally
				}
			}
			out[a.Target] = conflict(a, again && s.VC.Ours(a))
		}
		return out, nil
	}
}

// conflict returns the error for a target in use. earlier: an earlier attempt of this account may have started it.
func conflict(a vsphere.Activity, earlier bool) error {
	who, hint := "somebody else is working on this target",
		"Wait until it has finished, or agree with the other operator who continues. Then run rdma-setup resume."
	switch {
	case a.Shut:
		hint = "The VM may be off for maintenance. Wait until that is done (five minutes if you shut it down yourself), or power it on, then " +
			"run rdma-setup resume."
	case earlier:
		who, hint = "an earlier attempt, or somebody who uses the same account, is working on this target",
			"Wait until the task has ended in vCenter, then run the same command again."
	}
	return backends.Conflictf(a.Target.Name, hint, "%s: %s", who, a)
}
