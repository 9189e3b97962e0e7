package cmd

import (
	"context"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/vsphere"
	"github.com/rdma-setup/rdma-setup/ui/cmd/session"
	"github.com/rdma-setup/rdma-setup/wizard/engine/journal"
)

// leftRunning is how long resume and rollback wait for tasks of the same account: those started by an earlier attempt continue in
// vCenter after its process was killed.
const leftRunning = 2 * time.Minute

// passing is how long to wait for a task that takes nothing out of service: backups, storage plug-ins and other services use
// separate accounts, and their tasks are short.
const passing = 30 * time.Second

// busy returns the activities of others on targets: if the shared lock was lost, all targets count as in use. again: an earlier
// attempt may have left tasks running.
func busy(s *session.Session, shared *sharedLock, vcenter string, again bool) func(context.Context, []backends.Ref) (map[backends.Ref]error, error) {
	return func(ctx context.Context, targets []backends.Ref) (map[backends.Ref]error, error) {
		if err := shared.renew(ctx); backends.KindOf(err) == backends.KindConflict {
			out := map[backends.Ref]error{}
			for _, t := range targets {
				out[t] = err
			}
			return out, nil
		}
		found, err := s.VC.Others(ctx, targets)
		for began := time.Now(); err == nil; {
			waiting := false
			for _, a := range found {
				limit := passing
				if again && s.VC.Ours(a) {
					limit = leftRunning
				} else if a.Disrupts() {
					continue
				}
				waiting = waiting || !a.Shut && time.Since(began) < limit
			}
			if !waiting || !backends.Sleep(ctx, time.Second/4) {
				break
			}
			found, err = s.VC.Others(ctx, targets)
		}
		if err != nil {
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
			out[a.Target] = conflict(a)
		}
		return out, nil
	}
}

func conflict(a vsphere.Activity) error {
	hint := "Wait until it has finished, or agree with the other operator who continues. Then run rdma-setup resume."
	if a.Shut {
		hint = "The VM may be off for maintenance. Wait until that is done (five minutes if you shut it down yourself), or power it on, then run rdma-setup resume."
	}
	return backends.Errorf(backends.KindConflict, a.Target.Name, hint, "somebody else is working on this target: %s", a)
}
