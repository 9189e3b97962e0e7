package plan

import (
	"fmt"

	"github.com/rdma-setup/rdma-setup/backends"
)

// A Prior is what a run's journal contains about one setting that the run wanted to change: the target of a rollback.
type Prior struct {
	Change Change // as planned in the last stage that contained it
	// Prior is the value read before the first attempt; later attempts do not change it.
	Prior backends.Value
	// Found is the value last read back; it is empty if Uncertain.
	Found backends.Value
	// Kept is what a Keeper recorded before the first attempt, nil if there is none. The engine restores it.
	Kept *backends.Kept
	// Left are the recorded items as observed after the last attempt. Items that may have been touched since they were observed
	// are missing.
	Left backends.Kept
	// Uncertain: an operation was started and its result was never read, so the current value may be this program's.
	Uncertain bool
	// Back: a rollback has restored it already; remaining differences can no longer be restored, and the operator keeps them.
	Back bool
}

// An Observation is the current state of what a run recorded.
type Observation struct {
	Now backends.Kept
	Err error // why it is unknown
}

// Differing returns the recorded items that differ from before the run: run are those that the run left so, that are half done,
// or whose state after the run is unknown; others are those that someone else has changed since, or that a rollback has left
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

// Last returns the recorded items as last observed, and whether that says how they are if only this run has changed anything: all
// were observed after their last change, and none is of a kind that a reboot changes, or beside which others are found (initial RAM
// disks).
func (p Prior) Last() (backends.Kept, bool) {
	if p.Kept == nil || len(p.Kept.Items) == 0 || p.Uncertain {
		return backends.Kept{}, false
	}
	for _, i := range p.Kept.Items {
		if i.Runtime || i.Kind == backends.ItemInitramfs || p.Left.Item(i.Kind, i.Name) == nil {
			return backends.Kept{}, false
		}
	}
	return p.Left, true
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
