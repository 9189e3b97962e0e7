package plan

import "github.com/rdma-setup/rdma-setup/backends"

// A Prior is what a run's journal knows of one setting that the run meant to change: where a rollback goes back to.
type Prior struct {
	Change Change // as planned in the last stage that held it
	// Prior is the value read before the first attempt; later attempts never replace it.
	Prior backends.Value
	// Found is the value last read back; it holds nothing when Uncertain.
	Found backends.Value
	// Kept is what a Keeper recorded before the first attempt, nil when there is none. The engine restores it.
	Kept *backends.Kept
	// Left is what the Keeper observed after the last attempt, nil when nobody did.
	Left *backends.Kept
	// Uncertain: a deed was begun and nobody read what became of it, so whatever is there now may be ours.
	Uncertain bool
}
