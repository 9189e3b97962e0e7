package cmd

import (
	"fmt"
	"slices"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/ui/cmd/console"
	"github.com/rdma-setup/rdma-setup/wizard/engine"
	"github.com/rdma-setup/rdma-setup/wizard/engine/journal"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
	"github.com/rdma-setup/rdma-setup/wizard/plan/current"
	"github.com/rdma-setup/rdma-setup/wizard/plan/rollback"
	"github.com/rdma-setup/rdma-setup/wizard/report"
)

// interruptedGuests returns the VMs in whose guests an operation was interrupted.
func interruptedGuests(st *journal.State) []string {
	var out []string
	for _, e := range st.Entries() {
		if e.Open && e.Setting.Target.Type == backends.TypeGuest && !slices.Contains(out, e.Setting.Target.Name) {
			out = append(out, e.Setting.Target.Name)
		}
	}
	return out
}

// underway returns the hosts that do not answer because the run has rebooted them, the VMs that the run has told to shut down and
// that are still on, and the guests that do not answer and were powered on by the run. A guest that is shutting down answers for
// a while: goingOff asks vCenter whether one is, since its unfinished opening.
func underway(inv *backends.Inventory, st *journal.State, goingOff func(vm string, since time.Time) bool) []backends.Ref {
	var out []backends.Ref
	for _, b := range st.OpenBrackets() {
		if h := inv.Host(b.Target.Name); h != nil && h.State != "connected" && b.Kind == backends.BracketReboot && b.Closing {
			out = append(out, backends.HostRef(h.Name))
		}
		if b.Kind != backends.BracketVMPower || b.Closing {
			continue
		}
		if g := inv.Guest(b.Target.Name); g != nil && silent(g) || !b.Opening.IsZero() && goingOff(b.Target.Name, b.Opening) {
			out = append(out, b.Target)
		}
	}
	for _, r := range st.OpenIntents() { // a remediation reboots its host
		h := inv.Host(r.Target.Name)
		if backends.Kind(r.Kind) == backends.KindImageComponent && r.Target.Type == backends.TypeHost && h != nil && h.State != "connected" &&
			!slices.Contains(out, r.Target) {
			out = append(out, r.Target)
		}
	}
	for _, vm := range st.UnansweredGuests() {
		if g := inv.Guest(vm); g != nil && silent(g) && !slices.Contains(out, backends.VMRef(vm)) {
			out = append(out, backends.GuestRef(vm))
		}
	}
	return out
}

// silent reports whether a guest could not be reached, or stopped answering while it was read.
func silent(g *backends.Guest) bool {
	return g.ErrKind == backends.KindUnreachable || g.ErrKind == backends.KindTransient
}

// ownMaintenance treats hosts that the run itself left in maintenance mode as in their earlier state: they leave it before
// anything else is done.
func ownMaintenance(inv *backends.Inventory, st *journal.State) {
	for _, b := range st.OpenBrackets() {
		if h := inv.Host(b.Target.Name); h != nil && (b.Kind == backends.BracketReboot || b.Kind == backends.BracketMaintenance) {
			h.InMaintenance = false
		}
	}
}

// downHosts returns the hosts that the run has left out of service, and those of them that it keeps in maintenance mode over
// several reboots.
func downHosts(st *journal.State) (down, evacuated []string) {
	for _, b := range st.OpenBrackets() {
		if b.Kind != backends.BracketReboot && b.Kind != backends.BracketMaintenance {
			continue
		}
		if !slices.Contains(down, b.Target.Name) {
			down = append(down, b.Target.Name)
		}
		if b.Kind == backends.BracketMaintenance {
			evacuated = append(evacuated, b.Target.Name)
		}
	}
	return down, evacuated
}

// flashed returns the firmware that the run has written to cards whose host has rebooted since, by the ids of its settings.
func flashed(st *journal.State) map[string]backends.FirmwareImage {
	waits, out := map[string]journal.Record{}, map[string]backends.FirmwareImage{}
	for _, r := range st.Records {
		switch {
		case r.Type == journal.TypeOutcome && r.Kind == string(backends.KindFirmwareImage) && r.OK && len(r.Found) > 0:
			waits[r.Node] = r
		case r.Type == journal.TypeClosed && r.Kind == string(backends.BracketReboot) && r.OK:
			for id, w := range waits {
				var image backends.FirmwareImage
				if w.Target == r.Target && w.Found[0].Decode(&image) == nil {
					out[id] = image
					delete(waits, id)
				}
			}
		}
	}
	return out
}

// boots returns what the run has done so far that the restart of a guest proves.
func boots(st *journal.State) (b plan.Boots) {
	for _, r := range st.Records {
		proof := r.Type == journal.TypeOutcome && r.Kind == string(backends.KindRestart) && r.Phase == journal.PhaseApply && r.OK
		if b.Proven = b.Proven || proof; r.Type == journal.TypeOpening && r.Kind == string(backends.BracketVMPower) {
			b.Cycled = append(b.Cycled, r.Target.Name)
		}
	}
	for _, e := range st.Entries() {
		if e.Setting.Kind == backends.KindAddress && !e.Back && slices.Equal(e.Found, []backends.Value{e.To}) {
			b.SetUp = append(b.SetUp, e.Setting.Target.Name)
		}
	}
	return b
}

// heldVMs returns the VMs that were shut down and are to be started again.
func heldVMs(st *journal.State) []string {
	var out []string
	for _, b := range st.OpenBrackets() {
		if b.Kind == backends.BracketVMPower && b.Leave == backends.ValueOf("poweredOn") {
			out = append(out, b.Target.Name)
		}
	}
	return out
}

// doneChanges returns the changes that the attempts so far have made and read back.
func doneChanges(st *journal.State) []report.Outcome {
	var done []report.Outcome
	for _, p := range engine.Priors(st) {
		if !p.Uncertain && current.Same(p.Change.Kind, p.Found, p.Change.To) {
			o := report.Outcome{Change: p.Change, State: string(engine.NodeDone), Found: &p.Found}
			o.From = p.Prior
			done = append(done, o)
		}
	}
	return done
}

// foundBrackets returns the state in which the run found each bracket's target before it first opened it.
func foundBrackets(st *journal.State) map[string]backends.Value {
	found := map[string]backends.Value{}
	for _, rec := range st.Records {
		if _, known := found[rec.Node]; rec.Type == journal.TypeOpening && rec.Phase == journal.PhaseApply && !known {
			found[rec.Node] = rec.Prior
		}
	}
	return found
}

// decide asks for each target what to do with changes that others have made since the run. A target without a decision is not
// changed.
func decide(e *console.Env, conflicts []plan.Refusal) (map[backends.Ref]rollback.OnConflict, error) {
	out, asked := map[backends.Ref]rollback.OnConflict{}, map[backends.Ref]bool{}
	for _, c := range conflicts {
		if c.Kind != backends.KindConflict || asked[c.Target] {
			continue
		}
		asked[c.Target] = true
		for _, same := range conflicts {
			if same.Target == c.Target {
				fmt.Fprintln(e.Stderr, backends.Clean(same.String()))
			}
		}
		for _, way := range []struct {
			decision rollback.OnConflict
			question string
		}{
			{rollback.Restore, "Restore the value from before the run on " + backends.Clean(c.Target.Name)},
			{rollback.Keep, "Keep it, and roll back the rest of " + backends.Clean(c.Target.Name)},
		} {
			yes, err := e.Confirm(way.question)
			if err != nil {
				return nil, err
			}
			if yes {
				out[c.Target] = way.decision
				break
			}
		}
	}
	return out, nil
}

// laterRuns returns the runs of the state directory that changed something on the same vCenter after a run, the latest first. Runs
// that cannot be read are left out.
func laterRuns(state string, st *journal.State) []rollback.LaterRun {
	var out []rollback.LaterRun
	_ = journal.Changes(state, st.Header.VCenter, func(later *journal.State) {
		if later.Header.Run > st.Header.Run {
			out = append(out, rollback.LaterRun{Run: later.Header.Run, Priors: engine.Priors(later)})
		}
	})
	slices.Reverse(out)
	return out
}
