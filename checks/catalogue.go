package checks

import (
	"context"
	"slices"
)

// Catalogue gives all checks, in the order in which the domain's catalogue lists them: from vCenter inwards to the pair.
func Catalogue() []Check {
	all := slices.Concat(vcenterRows(), hostRows(), networkRows(), vmRows(), guestRows(), pairRows())
	held := drifts()
	for i := range all {
		if all[i].Drift = held[all[i].ID]; all[i].Drift != nil {
			all[i].Criteria += "; other than the baseline: warns"
		}
	}
	return all
}

// Run asks the selected checks of the catalogue.
func Run(ctx context.Context, f *Facts, s Selection) []Finding { return Ask(ctx, Catalogue(), f, s) }
