package twin

import (
	"slices"

	"github.com/rdma-setup/rdma-setup/ui/plain"
)

// assumptions are those of a twin, with their targets; a target is "" for all of the site.
type assumptions struct{ plain.Gathered[string, string] }

// list returns one sentence per assumption.
func (a assumptions) list() []string {
	out := []string{}
	for what, targets := range a.All() {
		names := slices.DeleteFunc(slices.Compact(slices.SortedFunc(slices.Values(targets), plain.Natural)), func(n string) bool { return n == "" })
		if len(names) > 0 {
			what = plain.Names(names) + ": " + what
		}
		out = append(out, what)
	}
	return out
}
