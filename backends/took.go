package backends

import (
	"slices"
	"time"
)

// Took is how long operations took at a site, according to vCenter's history of tasks and events.
type Took struct {
	Reboot   []time.Duration `json:"reboot,omitempty"`   // of a host, from the request until vCenter was connected to it again
	Evacuate []time.Duration `json:"evacuate,omitempty"` // until a host was in maintenance mode, whether VMs ran on it or not
	Shutdown []time.Duration `json:"shutdown,omitempty"` // from the request to a guest until its VM was off
}

// Median returns the median of durations, 0 if there are none.
func Median(all []time.Duration) time.Duration {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(all))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}
