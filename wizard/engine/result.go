package engine

import (
	"errors"
	"fmt"
	"slices"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/engine/journal"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
)

// keep stores the result of a node; of several attempts the last counts.
func (r *runner) keep(n NodeResult) {
	n.Err = r.phase.Err(r.job.run(), n.Err)
	i, known := r.known[n.ID]
	if !known {
		r.known[n.ID] = len(r.result.Nodes)
		r.result.Nodes = append(r.result.Nodes, n)
		return
	}
	was := r.result.Nodes[i]
	switch {
	case was.State == NodeDone && n.State == NodeSkipped: // found in the state it was left in
	case was.State == NodeFailed && n.State == NodeBlocked: // by its own failure in an earlier stage
	default:
		r.result.Nodes[i] = n
	}
}

// forget drops postponed changes: the new plan contains those that are left.
func (r *runner) forget() {
	r.drop(func(n NodeResult) bool { return n.State == NodePending })
}

func (r *runner) drop(which func(n NodeResult) bool) {
	r.result.Nodes = slices.DeleteFunc(r.result.Nodes, which)
	clear(r.known)
	for i, n := range r.result.Nodes {
		r.known[n.ID] = i
	}
}

func (r *runner) note(format string, args ...any) {
	r.result.Notes = append(r.result.Notes, fmt.Sprintf(format, args...))
}

// end determines the status of the run, writes the result to the journal and reports it to the views.
func (r *runner) end(err error) (Result, error) {
	r.job.Remote.end()
	err = r.phase.Err(r.job.run(), err)
	r.noteLate()
	counts := map[string]int{}
	for _, n := range r.result.Nodes {
		counts[string(n.State)]++
	}
	r.result.Status = r.status(counts, err)
	if j := r.job.Journal; j != nil && j.State().Attempts() > 0 && j.Err() == nil {
		rec := journal.Record{Type: journal.TypeResult, Status: string(r.result.Status), Counts: map[string]int{}}
		for s, n := range r.result.changes() {
			rec.Counts[string(s)] = n
		}
		if err != nil {
			rec.Err, rec.Hint = err.Error(), backends.HintOf(err)
		}
		if bad := r.append(rec); bad != nil && err == nil {
			err, r.result.Status = bad, StatusPartial // everything is done, but the journal does not contain it
		}
	}
	if j := r.job.Journal; j != nil && !errors.Is(j.Err(), journal.ErrLost) {
		r.result.Journal = j.State()
	}
	e := Event{Type: EventResult, Status: r.result.Status, Text: r.result.Tally()}
	if err != nil {
		e.Err, e.Hint, e.ErrKind = err.Error(), backends.HintOf(err), backends.KindOf(err)
	}
	r.emit(e)
	return r.result, err
}

func (r *runner) status(counts map[string]int, err error) Status {
	done, bad := counts[string(NodeDone)], counts[string(NodeFailed)]+counts[string(NodeBlocked)]+counts[string(NodePending)]
	switch {
	case r.late && !r.halted:
		return StatusPartial
	case r.halted && r.broken == nil && (bad > 0 || err != nil || r.unverified):
		return StatusInterrupted
	case r.unproven && !r.before:
		return StatusFailed
	case err == nil && bad == 0 && len(r.result.Differs) == 0 && len(r.result.Conflicts) == 0:
		if done == 0 {
			return StatusUnchanged
		}
		return StatusDone
	case done > 0 || counts[string(NodeSkipped)] > 0 || r.before:
		return StatusPartial
	}
	return StatusFailed
}

// changes counts the changes of a run by how they ended. Steps that are not changes are not counted.
func (r Result) changes() map[NodeState]int {
	n := map[NodeState]int{}
	for _, c := range r.Nodes {
		if c.Change != nil {
			n[c.State]++
		}
	}
	return n
}

// Tally is the count of the changes as text; "" if there are none.
func (r Result) Tally() string {
	n := r.changes()
	if len(n) == 0 {
		return ""
	}
	return "changes: " + Tally(n)
}

// leftovers returns the brackets that an earlier attempt left open.
func leftovers(s *journal.State) map[string]*bracket {
	out := map[string]*bracket{}
	for _, b := range s.OpenBrackets() {
		out[b.Node] = &bracket{
			Bracket: plan.Bracket{
				Kind: b.Kind, Target: b.Target, Why: "left open when the run was interrupted", Leave: b.Leave, Round: plan.RoundOf(b.Node),
			},
			found: b.Found, leave: b.Leave, effect: b.Body, closing: b.Closing,
		}
	}
	return out
}
