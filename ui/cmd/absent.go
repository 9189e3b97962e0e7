package cmd

import (
	"context"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/guest"
	"github.com/rdma-setup/rdma-setup/backends/vsphere"
	"github.com/rdma-setup/rdma-setup/ui/plain"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/engine/journal"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
)

// answering removes the changes that need a guest that does not respond.
func answering(priors []plan.Prior, inv *backends.Inventory) []plan.Prior {
	return slices.DeleteFunc(slices.Clone(priors), func(p plan.Prior) bool {
		t := p.Change.Target
		v, g := inv.VM(t.Name), inv.Guest(t.Name)
		return t.Type == backends.TypeGuest && (v == nil || v.Power != "poweredOn" || g == nil || g.Error != "")
	})
}

// settled reports whether a plan for a run, made before its journal was opened, is still the plan: nobody has continued the run
// meanwhile, and nothing is unfinished whose result is read first.
func settled(planned, now *journal.State) bool {
	return len(now.Records) == len(planned.Records) && len(now.OpenIntents()) == 0 && len(now.OpenBrackets()) == 0
}

// briefly is how long a resume or rollback waits for interrupted steps in guests before it begins with the other targets.
const briefly = 2 * time.Second

// settle waits briefly for operations that the run left running in guests: a package manager continues after its client was killed,
// and facts read meanwhile are soon outdated. Guests in which one still runs are not set up before it has ended.
func (r *runner) settle(ctx context.Context, vms []string) {
	var g errgroup.Group
	g.SetLimit(backends.Apart(r.a.Run.Parallel))
	for _, vm := range vms {
		g.Go(func() error {
			within, cancel := context.WithTimeout(ctx, r.env.Wait(briefly))
			defer cancel()
			if err := r.s.Guests.Settle(within, vm); err != nil && within.Err() != nil {
				r.waits.set(backends.GuestRef(vm), true)
			}
			return nil
		})
	}
	_ = g.Wait()
}

// waits are the targets that are to be waited for, and false for those that were waited for already.
type waits struct {
	mu  sync.Mutex
	all map[backends.Ref]bool
}

func (w *waits) set(t backends.Ref, busy bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.all == nil {
		w.all = map[backends.Ref]bool{}
	}
	w.all[t] = busy
}

func (w *waits) get(t backends.Ref) (busy, known bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	busy, known = w.all[t]
	return busy, known
}

// An absent is what a resume or rollback does not find: hosts and guests that do not answer, and VMs that are shutting down.
type absent struct {
	all   []plan.Refusal
	names map[backends.Ref]bool
	off   []string // VMs that will be off
	hosts []string
	inv   *backends.Inventory
}

// absent finds the targets of a run that do not answer. Those that the run itself has rebooted, shut down or powered on come back, and
// so do guests in which its steps still run: they are awaited.
func (r *runner) absent(ctx context.Context, inv *backends.Inventory, st *journal.State) *absent {
	a := &absent{names: map[backends.Ref]bool{}, inv: inv}
	comes := underway(inv, st, r.goingOff(ctx))
	wait := func(t backends.Ref, comes bool) time.Duration {
		if !comes {
			return 0
		}
		return r.patience(t)
	}
	for _, t := range involved(st, r.a) {
		h := inv.Host(t.Name)
		if t.Type == backends.TypeHost && h != nil && h.State != "connected" {
			a.hosts = append(a.hosts, h.Name)
			a.add(t, "vCenter is not connected to it ("+h.State+")", wait(t, slices.Contains(comes, t)))
		}
	}
	for _, t := range involved(st, r.a) {
		if t.Type != backends.TypeVM {
			continue
		}
		v, g := vmOf(inv, t.Name), inv.Guest(t.Name)
		_, waited := r.waits.get(t)
		busy, _ := r.waits.get(backends.GuestRef(t.Name))
		switch {
		case v == nil:
		case slices.Contains(a.hosts, v.Host):
			a.add(backends.VMRef(v.Name), "it is on "+v.Host+", which does not answer", 0)
		case slices.Contains(comes, t) && !waited:
			a.off = append(a.off, v.Name)
			a.add(t, "its guest is shutting down", wait(t, true))
		case g != nil && silent(g):
			a.add(backends.GuestRef(v.Name), "its guest does not answer: "+g.Error,
				wait(backends.GuestRef(v.Name), slices.Contains(comes, backends.GuestRef(v.Name))))
		case busy:
			a.add(backends.GuestRef(v.Name), "a step of the earlier attempt still runs in its guest", wait(backends.GuestRef(v.Name), true))
		}
	}
	return a
}

// involved returns the hosts and VMs that a run has worked on, and those of its answers.
func involved(st *journal.State, a *answers.Answers) []backends.Ref {
	var out []backends.Ref
	add := func(t backends.Ref) {
		if t.Type == backends.TypeGuest {
			t = backends.VMRef(t.Name)
		}
		if !slices.Contains(out, t) {
			out = append(out, t)
		}
	}
	for _, h := range a.Hosts.Names {
		add(backends.HostRef(h))
	}
	for _, v := range a.VMs {
		add(backends.VMRef(v.Name))
	}
	for _, e := range st.Entries() {
		add(e.Setting.Target)
	}
	for _, b := range st.OpenBrackets() {
		add(b.Target)
	}
	return out
}

func vmOf(inv *backends.Inventory, name string) *backends.VM {
	i := slices.IndexFunc(inv.VMs, func(v backends.VM) bool { return v.Name == name || v.Path == name })
	if i < 0 {
		return nil
	}
	return &inv.VMs[i]
}

func (a *absent) add(t backends.Ref, why string, await time.Duration) {
	if a.names[t] {
		return
	}
	a.names[t] = true
	a.all = append(a.all, plan.Refusal{Target: t, Why: why, Remedy: "see to it that it answers, then run the same command again",
		Kind: backends.KindUnreachable, Await: await})
}

// pending reports whether a target is still to be waited for.
func (a *absent) pending(w *waits) bool {
	return slices.ContainsFunc(a.all, func(r plan.Refusal) bool {
		busy, known := w.get(r.Target)
		return r.Await > 0 && (busy || !known)
	})
}

// shown returns the inventory for which to plan: VMs that are shutting down are off, and guests that are still being changed are not
// read.
func (a *absent) shown(inv *backends.Inventory) *backends.Inventory {
	out := *inv
	out.VMs, out.Guests = slices.Clone(inv.VMs), slices.Clone(inv.Guests)
	for i := range out.VMs {
		if v := &out.VMs[i]; slices.Contains(a.off, v.Name) {
			v.Power = "poweredOff"
			out.Guests = slices.DeleteFunc(out.Guests, func(g backends.Guest) bool { return g.VM == v.Name })
		}
	}
	for i := range out.Guests {
		if g := &out.Guests[i]; a.names[backends.GuestRef(g.VM)] && g.Error == "" {
			*g = backends.Guest{VM: g.VM, Error: "a step still runs in it", ErrKind: backends.KindUnreachable}
		}
	}
	return &out
}

// without removes hosts that do not answer, and the VMs on them.
func (a *absent) without(names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		v := a.inv.VM(name)
		return slices.Contains(a.hosts, name) || v != nil && slices.Contains(a.hosts, v.Host)
	})
}

// rest returns the answers without what cannot be planned now.
func (a *absent) rest(all *answers.Answers) *answers.Answers {
	out := *all
	out.Hosts.Names = slices.DeleteFunc(slices.Clone(all.Hosts.Names), func(h string) bool { return slices.Contains(a.hosts, h) })
	if len(all.Hosts.Names) > 0 && len(out.Hosts.Names) == 0 {
		out.Hosts.Names = all.Hosts.Names // none answers
	}
	out.VMs = slices.DeleteFunc(slices.Clone(all.VMs), func(w answers.VM) bool {
		v := vmOf(a.inv, w.Name)
		return v != nil && (slices.Contains(a.hosts, v.Host) || a.names[backends.GuestRef(v.Name)])
	})
	return &out
}

// into adds what does not answer to the conflicts of a plan, once for each target.
func (a *absent) into(p *plan.Plan) {
	p.Conflicts = slices.DeleteFunc(p.Conflicts, func(c plan.Refusal) bool {
		return c.Kind != backends.KindConflict &&
			(a.names[c.Target] || c.Target.Type == backends.TypeGuest && a.names[backends.VMRef(c.Target.Name)])
	})
	p.Conflicts = append(p.Conflicts, a.all...)
}

// nameAway says, before the run, what does not answer and whether it is waited for.
func (r *runner) nameAway(p *plan.Plan, skip bool) {
	for _, c := range p.Conflicts {
		switch {
		case c.Kind != backends.KindUnreachable:
		case c.Await > 0 && !skip:
			_ = plain.Printf(r.env.Stderr, "note: %s; it is waited for at most %s, while everything else continues\n", c.String(),
				plain.About(c.Await))
		default:
			_ = plain.Printf(r.env.Stderr, "note: %s; left out\n", c.String())
		}
	}
}

// patience is how long returns waits for a target.
func (r *runner) patience(t backends.Ref) time.Duration {
	limit := guest.DefaultBootTime
	switch t.Type {
	case backends.TypeHost:
		limit = r.a.Run.Reboot.Limit()
	case backends.TypeVM:
		limit = vsphere.ShutdownLimit
	}
	if r.flags.operation > 0 {
		limit = min(limit, r.flags.operation)
	}
	return limit
}

// returns waits for a host, VM or guest that the run has rebooted, shut down or powered on, as the run itself would have done.
func (r *runner) returns(ctx context.Context, t backends.Ref) error {
	defer r.waits.set(t, false)
	switch t.Type {
	case backends.TypeHost:
		return r.s.VC.HostBack(ctx, t.Name, r.env.Wait(r.a.Run.Reboot.Limit()))
	case backends.TypeVM:
		ctx, cancel := context.WithTimeout(ctx, r.env.Wait(time.Hour)) // it has a shorter limit of its own, except on a twin
		defer cancel()
		return r.s.VC.VMOff(ctx, t.Name)
	}
	err := r.s.Guests.Wait(ctx, t.Name)
	if err == nil {
		err = r.s.Guests.Settle(ctx, t.Name)
	}
	return err
}

// clockSkew is the assumed difference between the clocks of this machine and of vCenter when a record is compared with an event.
const clockSkew = time.Minute

// goingOff reports whether a VM's guest is shutting down and the VM is still on.
func (r *runner) goingOff(ctx context.Context) func(vm string, since time.Time) bool {
	return func(vm string, since time.Time) bool {
		is, err := r.s.VC.GoingOff(ctx, vm, since.Add(-clockSkew))
		if err != nil {
			_ = plain.Printf(r.env.Stderr, "note: whether %s is shutting down could not be read: %s\n", vm, err.Error())
		}
		return is
	}
}
