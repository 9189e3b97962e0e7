package plan

import "slices"

// A Diff is the difference between two plans. Lists are never nil.
type Diff struct {
	Added    []Change  `json:"added"`   // only in the later plan
	Removed  []Change  `json:"removed"` // only in the earlier plan
	Changed  []Changed `json:"changed"` // in both, with different values or consequences
	Brackets struct {
		Added   []Bracket `json:"added"`
		Removed []Bracket `json:"removed"`
	} `json:"brackets"`
}

// Changed is one setting that two plans change differently.
type Changed struct {
	ID     string `json:"id"`
	Before Change `json:"before"`
	After  Change `json:"after"`
}

// Compare returns how a plan differs from an earlier one, in the order of the plans. Order and reasons of changes are not
// compared.
func Compare(before, after *Plan) Diff {
	d := Diff{Changed: []Changed{}}
	changeID, bracketID := Change.ID, Bracket.ID
	d.Added, d.Removed = without(after.Changes, before.Changes, changeID), without(before.Changes, after.Changes, changeID)
	d.Brackets.Added = without(after.Brackets, before.Brackets, bracketID)
	d.Brackets.Removed = without(before.Brackets, after.Brackets, bracketID)
	was := map[string]Change{}
	for _, c := range before.Changes {
		was[c.ID()] = c
	}
	for _, c := range after.Changes {
		old, both := was[c.ID()]
		if both && (old.From != c.From || old.To != c.To || old.Late != c.Late || old.Irreversible != c.Irreversible || !slices.Equal(old.Disrupts, c.Disrupts)) {
			d.Changed = append(d.Changed, Changed{c.ID(), old, c})
		}
	}
	return d
}

// Empty reports whether both plans change the same settings in the same way, under the same brackets.
func (d Diff) Empty() bool {
	return len(d.Added)+len(d.Removed)+len(d.Changed)+len(d.Brackets.Added)+len(d.Brackets.Removed) == 0
}

// without returns the items whose id is not in the other list.
func without[T any](list, other []T, id func(T) string) []T {
	known := map[string]bool{}
	for _, x := range other {
		known[id(x)] = true
	}
	return slices.DeleteFunc(append([]T{}, list...), func(x T) bool { return known[id(x)] })
}
