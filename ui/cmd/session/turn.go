package session

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/vsphere"
	"github.com/rdma-setup/rdma-setup/checks/perftest"
)

// Runs of this program on one vCenter measure one after the other, also those with another state directory: each takes a lease
// there, which ends by itself if its process has died.
const (
	turnLease = 2 * time.Minute  // lifetime of the lease; it is renewed three times during it
	turnLimit = 2 * time.Hour    // how long a run waits for others, unless --operation-timeout is shorter
	turnLook  = time.Second / 2  // between two looks at the lease of another run
	turnSpeak = 10 * time.Second // between two lines while waiting
	turnTries = 3                // for replies of vCenter that are lost
	turnName  = 20 * time.Second // how long a run may take to name itself as the holder, which needs two calls to vCenter
)

// turn waits until no other run measures on the vCenter, and lets others wait until done is called. If there is no lease, a note
// of the report says why, and the measurement goes on. The error means that the operator has stopped it.
func (s *Session) turn(ctx context.Context, progress func(perftest.Progress)) (done func(), err error) {
	if s.Env.Twin != nil { // nobody else measures on a twin
		return func() {}, nil
	}
	waiting, over := backends.Stoppable(ctx, s.Stop)
	defer over()
	lease, h, err := s.awaitTurn(waiting, func(text string) {
		if !s.Screen.Load() {
			s.notice(text)
		} else if progress != nil {
			progress(perftest.Progress{Waits: text})
		}
	})
	switch {
	case waiting.Err() != nil:
		if lease != nil {
			s.endTurn(lease)
		}
		return nil, backends.Interruptedf("", "", "interrupted before anything was measured")
	case err != nil:
		s.remark("other runs of rdma-setup were not kept from measuring at the same time: " + err.Error())
		return func() {}, nil
	}
	ended, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var renewing sync.WaitGroup
	renewing.Go(func() {
		for backends.Sleep(ended, turnLease/3) {
			now, err := s.VC.Now(ended)
			if err == nil {
				h.Until = now.Add(turnLease)
				err = lease.Renew(ended, h)
			}
			if backends.KindOf(err) == backends.KindConflict && ended.Err() == nil {
				s.remark("another run of rdma-setup may have measured at the same time: it took over the lease")
				return
			}
		}
	})
	return func() {
		cancel()
		renewing.Wait()
		s.endTurn(lease)
	}, nil
}

// endTurn lets the next run measure.
func (s *Session) endTurn(lease *vsphere.Lease) {
	ctx, cancel := context.WithTimeout(context.Background(), turnSpeak)
	defer cancel()
	err := lease.Release(ctx)
	if err != nil {
		err = lease.Release(ctx) // the reply may have been lost
	}
	if err != nil {
		s.notice(fmt.Sprintf("%v; other runs wait at most %s for it", err, turnLease))
	}
}

// awaitTurn takes the lease as soon as no other run has it.
func (s *Session) awaitTurn(ctx context.Context, tell func(string)) (*vsphere.Lease, vsphere.Holder, error) {
	began, limit := s.Env.Now(), cmp.Or(s.Patience, turnLimit)
	var h vsphere.Holder
	var spoke, nameless time.Time // since when the holder under unnamed has no name
	var unnamed int32
	for tries, stuck := 0, 0; ; {
		now, err := s.VC.Now(ctx) // never this machine's clock: the other run may be on another
		var lease *vsphere.Lease
		var other *vsphere.Holder
		var key int32
		if err == nil {
			if h.Run == "" {
				h = s.VC.NewHolder("bench-"+rand.Text()[:6], now)
			}
			h.Until = now.Add(turnLease)
			lease, other, key, err = s.VC.TakeLease(ctx, backends.Ref{Type: backends.TypeVCenter, Name: s.Set.URL}, h)
		}
		waited := s.Env.Now().Sub(began)
		if err == nil {
			tries = 0
		}
		if other == nil || other.Run != "" || key != unnamed {
			nameless, unnamed = time.Time{}, key
		}
		switch {
		case lease != nil:
			return lease, h, nil
		case err != nil:
			if tries++; tries == turnTries || backends.KindOf(err) == backends.KindPermission || ctx.Err() != nil {
				return nil, h, err
			}
		case other.Dead() || other.Run != "" && now.After(other.Until) ||
			other.Run == "" && !nameless.IsZero() && s.Env.Now().Sub(nameless) > turnName:
			err := s.VC.BreakLease(ctx, backends.Ref{Type: backends.TypeVCenter, Name: s.Set.URL}, key, *other)
			if nameless = (time.Time{}); err == nil {
				continue // the next attempt shows whether it is gone
			}
			if stuck++; stuck == turnTries {
				return nil, h, err
			}
		case waited >= limit:
			return nil, h, fmt.Errorf("%s still measured after %s", other, limit)
		case other.Run == "" && nameless.IsZero():
			nameless = s.Env.Now()
		}
		if other != nil && s.Env.Now().Sub(spoke) >= turnSpeak {
			tell(fmt.Sprintf("waiting until %s has measured: since %s, at most %s", other, began.Format(time.TimeOnly), limit))
			spoke = s.Env.Now()
		}
		if !backends.Sleep(ctx, turnLook) {
			return nil, h, ctx.Err()
		}
	}
}

// remark keeps a sentence about the measurement for the report, and tells it now.
func (s *Session) remark(text string) {
	text = backends.Clean(text)
	s.mu.Lock()
	known := slices.Contains(s.remarks, text)
	if !known {
		s.remarks = append(s.remarks, text)
	}
	s.mu.Unlock()
	if !known {
		s.notice(text)
	}
}

// Remarks returns what the report says about the measurement: notes on its conditions, and one line for each VM with several GPUs.
func (s *Session) Remarks() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Concat(s.remarks, s.gpuPairs)
}
