package nic

import "fmt"

// ENS returns the documentation of a driver on a switch in enhanced data path mode, for VFs or for shared RDMA. excluded is true if
// the driver's vendor excludes it. Statements of other vendors are ignored.
func ENS(driver string, vfs bool) (says string, excluded bool) {
	f := Of(driver)
	switch {
	case !vfs && f != nil && f.RoCE().NoENS != "":
		return fmt.Sprintf("RDMA of %s is not available in it (%s)", driver, f.RoCE().NoENS), true
	case vfs && f != nil && f.VFs().ENS != "":
		return f.VFs().ENS, false
	case vfs:
		return fmt.Sprintf("whether %s creates VFs in it is not documented (unverified)", driver), false
	}
	return fmt.Sprintf("whether RDMA of %s works in it is not documented (unverified)", driver), false
}
