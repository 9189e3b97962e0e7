package cmd

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/ui/cmd/session"
	"github.com/rdma-setup/rdma-setup/ui/plain"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/engine"
	"github.com/rdma-setup/rdma-setup/wizard/engine/journal"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
)

// placementFile holds, in the directory of a run, the host of each VM when the run began, or when it was last carried on after it had
// ended: what has moved in between is nobody's business here.
const placementFile = "placement.json"

// attempt returns the records since the attempt began whose placement is recorded, and whether that attempt has ended. An attempt that
// was cut off, interrupted or ended by an error moved no VM back, and is continued by the next one.
func attempt(all []journal.Record) (since []journal.Record, ended bool) {
	since = all
	for i, r := range all {
		switch {
		case r.Type == journal.TypeBegin && ended:
			since, ended = all[i:], false
		case r.Type == journal.TypeResult:
			ended = r.Err == "" && r.Status != string(engine.StatusInterrupted)
		}
	}
	return since, ended
}

// keepPlacement records where the VMs are before a run changes anything.
func keepPlacement(s *session.Session, run string, inv *backends.Inventory) error {
	hosts := map[string]string{}
	for _, v := range inv.VMs {
		if v.Host != "" && !v.Template {
			hosts[v.Name] = v.Host
		}
	}
	b, err := json.Marshal(hosts)
	if err != nil {
		return err
	}
	return journal.WriteFile(s.Set.StateDir, run, placementFile, b)
}

// moveBackLimit is how long one VM may take to move back.
const moveBackLimit = 30 * time.Minute

// movedVMs returns notes about VMs that are not on the host on which they were before the run, which took that host or the VM out of
// service. If the answers say so, they are moved back first. How the run ended decides: nothing is moved after Ctrl-C, and a vCenter
// that was lost is not asked. Runs of older versions recorded no placement.
func movedVMs(ctx context.Context, s *session.Session, a *answers.Answers, st *journal.State, res engine.Result, ended error,
	stop <-chan struct{}) []string {
	ctx, cancel := backends.Stoppable(ctx, stop)
	defer cancel()
	if kind := backends.KindOf(ended); res.Status == engine.StatusInterrupted || kind == backends.KindInterrupted ||
		kind == backends.KindUnreachable {
		return nil
	}
	var was map[string]string
	b, err := journal.ReadFile(s.Set.StateDir, st.Header.Run, placementFile)
	if err != nil || json.Unmarshal(b, &was) != nil || ctx.Err() != nil {
		return nil
	}
	touched := map[backends.Ref]bool{}
	since, _ := attempt(st.Records)
	for _, r := range since {
		if r.Type == journal.TypeOpening && (plan.TakesHostDown(backends.BracketKind(r.Kind)) || r.Kind == string(backends.BracketVMPower)) {
			touched[r.Target] = true
		}
	}
	maps.DeleteFunc(was, func(vm, host string) bool { return !touched[backends.HostRef(host)] && !touched[backends.VMRef(vm)] })
	if len(was) == 0 {
		return nil
	}
	names := slices.Sorted(maps.Keys(was))
	now, err := s.VC.HostsOf(ctx, names)
	if err != nil {
		return []string{fmt.Sprintf("whether VMs were moved during the run is not known: %v", err)}
	}
	moved := slices.DeleteFunc(names, func(vm string) bool { return now[vm] == "" || now[vm] == was[vm] })
	back := map[string]error{}
	if a.Run.ReturnVMs {
		var mu sync.Mutex
		backends.InParallel(slices.All(moved), 4, func(_ int, vm string) {
			one, cancel := context.WithTimeout(ctx, moveBackLimit)
			defer cancel()
			err := s.VC.MoveTo(one, vm, was[vm])
			mu.Lock()
			defer mu.Unlock()
			back[vm] = err
		})
	}
	var by plain.Gathered[string, string]
	for _, vm := range moved {
		err, tried := back[vm]
		text := fmt.Sprintf("moved from %s to %s during the run", was[vm], now[vm])
		switch {
		case tried && err == nil:
			text += ", and back at its end"
		case tried:
			text += ", and not back: " + err.Error()
		}
		by.Add(text, vm)
	}
	var notes []string
	for text, vms := range by.All() {
		notes = append(notes, plain.Names(vms)+": "+text)
	}
	return notes
}
