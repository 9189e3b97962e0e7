package checks

import "slices"

// Catalogue gives all checks, in the order in which the domain's catalogue lists them: from vCenter inwards to the pair.
func Catalogue() []Check {
	return slices.Concat(
		vCenterChecks(), clusterChecks(), policyChecks(),
		hostChecks(), directHostChecks(), nicChecks(), nicLinkChecks(), qosChecks(), sriovChecks(), passthroughChecks(), controlPlaneChecks(),
		switchChecks(), physicalChecks(),
		vmChecks(), vmTuningChecks(), vmAdapterChecks(), vmGPUChecks(),
		guestChecks(), guestNetChecks(), guestTestChecks(), guestDeviceChecks(),
		pathChecks(), speedChecks(), lossChecks(), comparedChecks(),
	)
}
