package cmd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/vsphere"
	"github.com/rdma-setup/rdma-setup/ui/cmd/session"
	"github.com/rdma-setup/rdma-setup/ui/plain"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/engine/journal"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
)

// leaseTime is the lifetime of a shared lock; it is renewed three times during it.
const leaseTime = 5 * time.Minute

// sharedLock is the lock of a run on its clusters in vCenter, visible to all operators.
type sharedLock struct {
	s      *session.Session
	holder vsphere.Holder
	leases []*vsphere.Lease
	ended  chan struct{}
	over   sync.WaitGroup
	lost   chan struct{} // closed if a lease was taken away, or could not be renewed in time
}

// touched returns the targets of a run for the local lock: the hosts and VMs that take part, and the targets of its changes. A
// member of a switch touches the switch, an adapter its port group.
func touched(a *answers.Answers, inv *backends.Inventory, limit []string, changes []plan.Change) []string {
	var out []string
	add := func(t backends.Ref) {
		if t.Type == backends.TypeGuest {
			t = backends.VMRef(t.Name)
		}
		if !slices.Contains(out, t.String()) {
			out = append(out, t.String())
		}
	}
	in := func(host string) bool { return len(limit) == 0 || slices.Contains(limit, host) }
	for _, h := range inv.Hosts {
		if in(h.Name) {
			add(backends.HostRef(h.Name))
		}
	}
	for _, v := range a.VMs {
		if vm := inv.VM(v.Name); vm != nil && in(vm.Host) {
			add(backends.VMRef(vm.Name))
		}
	}
	for _, c := range changes {
		add(c.Target)
		switch c.Kind {
		case backends.KindMember:
			add(backends.SwitchRef(c.Name))
		case backends.KindAdapter:
			add(backends.PortGroupRef(c.Name))
		}
	}
	slices.Sort(out)
	return out
}

func recordedChanges(st *journal.State) []plan.Change {
	return plain.Mapped(st.Entries(), func(e journal.Entry) plan.Change { return plan.Change{Setting: e.Setting} })
}

func newSharedLock(s *session.Session) *sharedLock {
	return &sharedLock{s: s, ended: make(chan struct{}), lost: make(chan struct{})}
}

// lockTargets returns the clusters of the hosts that take part, and the standalone hosts.
func lockTargets(inv *backends.Inventory, limit []string) []backends.Ref {
	var out []backends.Ref
	for _, h := range inv.Hosts {
		if len(limit) > 0 && !slices.Contains(limit, h.Name) {
			continue
		}
		t := backends.HostRef(h.Name)
		if h.Cluster != "" {
			t = backends.Ref{Type: backends.TypeCluster, Name: h.Cluster}
		}
		if !slices.Contains(out, t) {
			out = append(out, t)
		}
	}
	slices.SortFunc(out, func(a, b backends.Ref) int { return strings.Compare(a.String(), b.String()) }) // the same order for everyone
	return out
}

func breakLockFlag(c *cobra.Command, f *planFlags) {
	c.Flags().BoolVar(&f.breakLock, "break-lock", false, "take over a shared lock (run.lock: shared) that has expired")
}

// share takes the shared lock of every cluster, if the answers request it. The lock is never nil.
func share(ctx context.Context, s *session.Session, a *answers.Answers, f planFlags, run string,
	inv *backends.Inventory) (*sharedLock, error) {
	k := newSharedLock(s)
	if a.Run.Lock != answers.LockShared {
		return k, nil
	}
	now, err := s.VC.Now(ctx)
	if err != nil {
		return nil, err
	}
	k.holder = s.VC.NewHolder(run, now)
	for _, t := range lockTargets(inv, f.limit) {
		lease, asked, err := takeLease(ctx, s, f, t, k.holder)
		if asked && err == nil {
			err = k.renew(ctx) // those taken before the question
		}
		if backends.KindOf(err) == backends.KindPermission {
			k.Release()
			_ = plain.Printf(s.Env.Stderr, "WARNING: the account may not write the shared lock (%s).\n"+
				"  Only other runs of this state directory are excluded. For the privileges, run: rdma-setup generate role --mode %s\n",
				err.Error(), a.Mode)
			return newSharedLock(s), nil
		}
		if lease != nil {
			k.leases = append(k.leases, lease)
		}
		if err != nil {
			k.Release()
			return nil, err
		}
	}
	k.keep()
	return k, nil
}

// namelessTime is how long the owner of a lock without a name may take to write it, which needs two calls to vCenter.
const namelessTime = 20 * time.Second

// takeLease takes the lock of one target. It replaces the lock of a dead process of this machine, or an expired one of another
// machine if the operator agrees; asked reports whether that took time. The clock is read again in each iteration: a prompt may
// stay open longer than a lease lasts, and the owner may have renewed it meanwhile.
func takeLease(ctx context.Context, s *session.Session, f planFlags, t backends.Ref,
	h vsphere.Holder) (lease *vsphere.Lease, asked bool, err error) {
	var given *vsphere.Holder // to be replaced, with the operator's consent
	var nameless time.Time
	for {
		now, err := s.VC.Now(ctx)
		if err != nil {
			return nil, asked, err
		}
		h.Until = now.Add(leaseTime)
		lease, other, key, err := s.VC.TakeLease(ctx, t, h)
		if err != nil || lease != nil {
			return lease, asked, err
		}
		switch {
		case other.Run == "" && (nameless.IsZero() || s.Env.Now().Before(nameless)):
			if nameless.IsZero() {
				nameless = s.Env.Now().Add(namelessTime)
			}
			if !backends.Sleep(ctx, time.Second/5) {
				return nil, asked, ctx.Err()
			}
			continue
		case other.Dead():
			_ = plain.Printf(s.Env.Stderr, "note: %s: taking over the shared lock of %s; that process has ended\n", t.Name,
				other.String())
		case other.Run != "" && now.Before(other.Until):
			return nil, asked,
				backends.Refusedf(t.Name, "Wait until that run has ended. If its process is gone, the lock expires at "+
					other.Until.UTC().Format("15:04:05 MST")+" and can be taken with --break-lock.", "%s holds the shared lock", *other)
		case !f.breakLock && (given == nil || !given.Same(*other)):
			asked = true
			ok, err := agreed(s, f, fmt.Sprintf("The shared lock of %s, held by %s, %s. Take it over", t.Name, other, expired(*other)))
			if err != nil {
				return nil, asked, err
			}
			if !ok {
				return nil, asked, backends.Refusedf(t.Name, "Make sure that this run has ended, then add --break-lock.",
					"%s holds the shared lock, which %s", *other, expired(*other))
			}
			given = other
			continue // it may have been renewed or released while the prompt was open
		default:
			_ = plain.Printf(s.Env.Stderr, "note: %s: taking over the shared lock of %s, which %s\n", t.Name,
				other.String(), expired(*other))
		}
		if err := s.VC.BreakLease(ctx, t, key, *other); err != nil {
			return nil, asked, err
		}
	}
}

// expired returns why a lock may be replaced.
func expired(h vsphere.Holder) string {
	if h.Run == "" {
		return "has no owner"
	}
	return "has expired"
}

// agreed asks on a terminal; without a terminal the answer is no.
func agreed(s *session.Session, f planFlags, question string) (bool, error) {
	if !f.ask || s.Screen.Load() || !s.Env.Terminal() || s.Env.Confirm == nil {
		return false, nil
	}
	return s.Env.Confirm(question)
}

// keep renews the leases until Release.
func (k *sharedLock) keep() {
	ctx, cancel := context.WithCancel(context.Background()) // a run that is being stopped still holds its lock
	k.over.Go(func() {
		<-k.ended
		cancel()
	})
	k.over.Go(func() {
		until := k.s.Env.Now().Add(leaseTime)
		for backends.Sleep(ctx, leaseTime/3) {
			err := k.renew(ctx)
			if err == nil {
				until = k.s.Env.Now().Add(leaseTime)
			}
			if ctx.Err() == nil && (backends.KindOf(err) == backends.KindConflict || k.s.Env.Now().After(until)) {
				fmt.Fprintf(k.s.Env.Stderr, "stopping: %v\n", err)
				close(k.lost)
				return
			}
		}
	})
}

func (k *sharedLock) renew(ctx context.Context) error {
	if len(k.leases) == 0 {
		return nil
	}
	now, err := k.s.VC.Now(ctx)
	if err != nil {
		return err
	}
	h := k.holder
	h.Until = now.Add(leaseTime)
	for _, l := range k.leases {
		err = errors.Join(err, l.Renew(ctx, h))
	}
	return err
}

// stop is closed when the operator stops the run or the lock is lost.
func (k *sharedLock) stop(asked <-chan struct{}) <-chan struct{} {
	if len(k.leases) == 0 {
		return asked
	}
	both := make(chan struct{})
	k.over.Go(func() {
		select {
		case <-asked:
			close(both)
		case <-k.lost:
			close(both)
		case <-k.ended:
		}
	})
	return both
}

// Release releases the leases, also after a failure. A lease that cannot be released expires.
func (k *sharedLock) Release() {
	close(k.ended)
	k.over.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	for _, l := range k.leases {
		if err := l.Release(ctx); err != nil {
			fmt.Fprintf(k.s.Env.Stderr, "note: %v; it expires within %s\n", err, leaseTime)
		}
	}
}
