package sizing

import "fmt"

// PFCMask is the value of pfctx and pfcrx that protects a priority: bit i is priority i, so 3 gives 0x08
// (Mellanox DOC-2581).
func PFCMask(priority int) (uint8, error) {
	if priority < 0 || priority > 7 {
		return 0, fmt.Errorf("priority %d is not between 0 and 7", priority)
	}
	return 1 << priority, nil
}

// TrafficClass is the IP traffic class that a guest on a VF sets for a DSCP: DSCP << 2, with the ECN-capable bit where
// congestion notification is on: 26 gives 104, with ECN 106.
func TrafficClass(dscp int, ecn bool) int {
	tc := dscp << 2
	if ecn {
		tc |= 2
	}
	return tc
}
