package cmd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/rdma-setup/rdma-setup/backends"
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

// settle waits until operations that the run left running in guests have ended: a package manager continues after its client was
// killed, and facts read meanwhile are soon outdated. The survey reports guests that cannot be reached.
func (r *runner) settle(ctx context.Context, vms []string) {
	var g errgroup.Group
	g.SetLimit(max(r.a.Run.Parallel, 1))
	for _, vm := range vms {
		g.Go(func() error {
			_ = r.s.Guests.Settle(ctx, vm)
			return nil
		})
	}
	_ = g.Wait()
}

// settled reports whether a plan for a run, made before its journal was opened, is still the plan: nobody has continued the run
// meanwhile, and nothing is unfinished whose result is read first.
func settled(planned, now *journal.State) bool {
	return len(now.Records) == len(planned.Records) && len(now.OpenIntents()) == 0 && len(now.OpenBrackets()) == 0
}

// waitFor waits for hosts, VMs and guests that the run has rebooted, shut down or powered on, as the run itself would have done,
// and then reads the inventory. Targets that do not come back are not an error here: the plan handles them.
func (r *runner) waitFor(ctx context.Context, away []backends.Ref) (*backends.Inventory, error) {
	ctx, cancel := backends.Stoppable(ctx, r.stop)
	defer cancel()
	limit := r.env.Wait(r.a.Run.Reboot.Limit())
	within, end := context.WithTimeout(ctx, r.env.Wait(time.Hour)) // the waits have shorter limits of their own, except on a twin
	defer end()
	var hosts, vms, guests []string
	var g errgroup.Group
	for _, t := range away {
		switch t.Type {
		case backends.TypeHost:
			hosts = append(hosts, t.Name)
			g.Go(func() error { return r.s.VC.HostBack(ctx, t.Name, limit) })
		case backends.TypeVM:
			vms = append(vms, t.Name)
			g.Go(func() error { _ = r.s.VC.VMOff(within, t.Name); return nil }) // the survey reports its state
		default:
			guests = append(guests, t.Name)
			g.Go(func() error { _ = r.s.Guests.Wait(within, t.Name); return nil }) // the survey reports what is wrong with it
		}
	}
	if len(hosts) > 0 {
		fmt.Fprintf(r.env.Stderr, "waiting for %s to come back from the reboot that the run started (at most %s)\n", backends.Clean(strings.Join(hosts, ", ")), limit)
	}
	if len(vms) > 0 {
		fmt.Fprintf(r.env.Stderr, "waiting for %s to power off: the run has shut it down\n", backends.Clean(strings.Join(vms, ", ")))
	}
	if len(guests) > 0 {
		fmt.Fprintf(r.env.Stderr, "waiting for the guest of %s to answer: the run has powered it on\n", backends.Clean(strings.Join(guests, ", ")))
	}
	if err := g.Wait(); err != nil && backends.KindOf(err) != backends.KindUnreachable || ctx.Err() != nil {
		return nil, errors.Join(err, ctx.Err())
	}
	return r.s.Survey(ctx, r.a)
}

// clockSkew is the assumed difference between the clocks of this machine and of vCenter when a record is compared with an event.
const clockSkew = time.Minute

// goingOff reports whether a VM's guest is shutting down and the VM is still on.
func (r *runner) goingOff(ctx context.Context) func(vm string, since time.Time) bool {
	return func(vm string, since time.Time) bool {
		is, err := r.s.VC.GoingOff(ctx, vm, since.Add(-clockSkew))
		if err != nil {
			fmt.Fprintf(r.env.Stderr, "note: whether %s is shutting down could not be read: %s\n", backends.Clean(vm), backends.Clean(err.Error()))
		}
		return is
	}
}
