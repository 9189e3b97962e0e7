package plan

import (
	"fmt"

	"github.com/rdma-setup/rdma-setup/backends"
)

// A Prior is what a run's journal knows of one setting that the run meant to change: where a rollback goes back to.
type Prior struct {
	Change Change // as planned in the last stage that held it
	// Prior is the value read before the first attempt; later attempts never replace it.
	Prior backends.Value
	// Found is the value last read back; it holds nothing when Uncertain.
	Found backends.Value
	// Kept is what a Keeper recorded before the first attempt, nil when there is none. The engine restores it.
	Kept *backends.Kept
	// Left are the recorded items as the Keeper observed them after the last attempt. It lacks those that nobody has
	// observed since something was begun that may touch them.
	Left backends.Kept
	// Uncertain: an operation was begun and nobody read what became of it, so whatever is there now may be ours.
	Uncertain bool
	// Back: a rollback has put it back already; what it left different cannot be had any more, and the operator keeps that.
	Back bool
}

// An Observation is what a Keeper observes today of what a run recorded.
type Observation struct {
	Now backends.Kept
	Err error // why nobody knows
}

// Differing returns the recorded items that are not as they were before the run: those that are as the run left them, half
// done, or nobody knows how it left them; and those that somebody else has changed since, or that a rollback has left so
// because the operator keeps them.
func (p Prior) Differing(now backends.Kept) (ours, others []backends.Difference) {
	if p.Kept == nil {
		return nil, nil
	}
	for _, d := range backends.Differences(*p.Kept, now) {
		if left := p.Left.Item(d.Kind, d.Name); left == nil || left.State == d.Is && !p.Back || d.Is.IsPartial() {
			ours = append(ours, d)
		} else {
			others = append(others, d)
		}
	}
	return ours, others
}

// PutBack reports whether the run, or its rollback, left every recorded item in its earlier state.
func (p Prior) PutBack() bool {
	for _, i := range p.Kept.Items {
		if p.Left.Item(i.Kind, i.Name) == nil {
			return false
		}
	}
	return len(backends.Differences(*p.Kept, p.Left)) == 0
}

// Differences describes at most five differences for the operator.
func Differences(ds []backends.Difference) []string {
	var out []string
	for _, d := range ds {
		if len(out) == 5 {
			return append(out, fmt.Sprintf("and %d more", len(ds)-5))
		}
		out = append(out, d.String())
	}
	return out
}
