package checks

import "slices"

// Catalogue gives all checks, in the order of the chain.
func Catalogue() []Check {
	return slices.Concat(vCenterChecks(), clusterChecks(), hostChecks(), nicChecks(), controlPlaneChecks(), switchChecks(), vmChecks(), guestChecks())
}
