package journal

import (
	"slices"

	"github.com/rdma-setup/rdma-setup/backends"
)

// items tracks what Keepers recorded and observed through a journal. Two settings of a target may touch the same item (a script
// that two units run). Its state before the run is the first one recorded for any of them, and its state after the run is the
// last one observed.
type items struct {
	first map[itemID]backends.Item
	owner map[itemID]string // node that recorded it first
	left  map[itemID]backends.Item
	of    map[string][]itemID // by node, in the order of the records
}

type itemID struct {
	target backends.Ref
	kind   backends.ItemKind
	name   string
}

func newItems() *items {
	return &items{first: map[itemID]backends.Item{}, owner: map[itemID]string{}, left: map[itemID]backends.Item{}, of: map[string][]itemID{}}
}

// see adds a record. After an intent the state of its items is unknown until they are observed. For a rollback it returns the
// restored ones.
func (t *items) see(r Record) {
	switch {
	case r.Type == TypeIntent && r.Phase == PhaseRollback && r.Kept != nil:
		for _, i := range r.Kept.Items {
			delete(t.left, itemID{r.Target, i.Kind, i.Name})
		}
	case r.Type == TypeIntent:
		if r.Kept != nil {
			t.record(r)
		}
		for _, id := range t.of[r.Node] {
			delete(t.left, id)
		}
	case r.Type == TypeOutcome && r.Left != nil:
		for _, i := range r.Left.Items {
			t.left[itemID{r.Target, i.Kind, i.Name}] = i
		}
	}
}

func (t *items) record(r Record) {
	if t.of[r.Node] == nil {
		t.of[r.Node] = []itemID{}
	}
	for _, i := range r.Kept.Items {
		id := itemID{r.Target, i.Kind, i.Name}
		if _, known := t.first[id]; !known {
			t.first[id], t.owner[id] = i, r.Node
		}
		if !slices.Contains(t.of[r.Node], id) {
			t.of[r.Node] = append(t.of[r.Node], id)
		}
	}
}

// share sets Kept and Left of the entries.
func (t *items) share(entries []Entry) {
	for i := range entries {
		e := &entries[i]
		ids, kept := t.of[e.Node], backends.Kept{}
		if ids == nil {
			continue
		}
		for _, id := range ids {
			if t.owner[id] != e.Node {
				continue
			}
			kept.Items = append(kept.Items, t.first[id])
			if left, known := t.left[id]; known {
				e.Left.Items = append(e.Left.Items, left)
			}
		}
		e.Kept = &kept
	}
}
