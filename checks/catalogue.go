package checks

import "slices"

// Catalogue gives all checks, in the order in which the domain's catalogue lists them: from vCenter inwards to the pair.
func Catalogue() []Check {
	all := slices.Concat(
		vCenterChecks(), clusterChecks(), policyChecks(),
		hostChecks(), directHostChecks(), nicChecks(), nicLinkChecks(), qosChecks(), sriovChecks(), passthroughChecks(), controlPlaneChecks(),
		switchChecks(), physicalChecks(),
		vmChecks(), vmTuningChecks(), vmAdapterChecks(), vmGPUChecks(),
		guestChecks(), guestNetChecks(), guestTestChecks(), guestDeviceChecks(),
		pathChecks(), speedChecks(), lossChecks(), comparedChecks(),
	)
	held := drifts()
	for i := range all {
		if all[i].Drift = held[all[i].ID]; all[i].Drift != nil {
			all[i].Criteria += "; other than the baseline: warns"
		}
	}
	return all
}
