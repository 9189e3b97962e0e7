package sizing

import "fmt"

// PFCMask returns the value of pfctx and pfcrx that protects a priority: bit i is priority i, so 3 is 0x08 (Mellanox DOC-2581).
func PFCMask(priority int) (uint8, error) {
	if priority < 0 || priority > 7 {
		return 0, fmt.Errorf("priority %d is not between 0 and 7", priority)
	}
	return 1 << priority, nil
}

// TrafficClass returns the IP traffic class for a DSCP: DSCP << 2, with the ECN-capable bit if congestion notification is on: 26
// is 104, with ECN 106.
func TrafficClass(dscp int, ecn bool) int {
	tc := dscp << 2
	if ecn {
		tc |= 2
	}
	return tc
}
