// Package catalogue combines the rows of all scopes, compares them with the baseline, evaluates them, and sorts the findings in
// the order of the chain.
package catalogue

import (
	"context"
	"slices"

	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/guest"
	"github.com/rdma-setup/rdma-setup/checks/host"
	"github.com/rdma-setup/rdma-setup/checks/network"
	"github.com/rdma-setup/rdma-setup/checks/vcenter"
	"github.com/rdma-setup/rdma-setup/checks/vm"
)

// Checks returns all checks, from vCenter to the pairs of guests.
func Checks() []checks.Check {
	all := slices.Concat(vcenter.Checks(), host.Checks(), network.Checks(), vm.Checks(), guest.Checks(), guest.PairChecks())
	held := drifts()
	for i := range all {
		if all[i].Drift = held[all[i].ID]; all[i].Drift != nil {
			all[i].Criteria += "; other than the baseline: warns"
		}
	}
	return all
}

// Run evaluates the selected checks of the catalogue.
func Run(ctx context.Context, f *checks.Facts, s checks.Selection) []checks.Finding {
	return checks.Ask(ctx, Checks(), f, s)
}
