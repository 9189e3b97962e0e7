package world

import (
	"fmt"
	"strings"
)

// ShareMB is the GPU memory of a VM's shares: a profile names it in GB, as grid_a100d-40c does.
func (v *VM) ShareMB() int64 {
	total := int64(0)
	for _, d := range v.Devices {
		if i := strings.LastIndexByte(d.Profile, '-'); i >= 0 {
			gb := int64(0)
			_, _ = fmt.Sscanf(d.Profile[i+1:], "%d", &gb)
			total += gb << 10
		}
	}
	return total
}
