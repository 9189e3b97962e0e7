package backends

import "slices"

// ServeVGPUs tells of the active graphics types of a host's GPUs (HostGraphicsInfo.graphicsType) whether vGPUs can be had: there is one
// that is not passed through, and all such are shared as vGPUs. A GPU that ESXi has no driver for is "basic" whatever is configured.
func ServeVGPUs(active []string) bool {
	shared := slices.Contains(active, SharedDirect)
	return shared && !slices.Contains(active, "shared")
}

// ServesVGPUs reports whether VMs can have vGPUs of this host now.
func (h *Host) ServesVGPUs() bool {
	var active []string
	for i := range h.GPUs {
		active = append(active, h.GPUs[i].Graphics)
	}
	return ServeVGPUs(active)
}

// VGPUProfiles are the profiles of the vGPUs that a VM has, one for each.
func (v *VM) VGPUProfiles() (out []string) {
	for _, d := range v.Devices {
		if d.Backing == VGPUBacking {
			out = append(out, d.Profile)
		}
	}
	return out
}

// VGPUs is how many vGPUs of a profile a VM has.
func (v *VM) VGPUs(profile string) int {
	n := 0
	for _, d := range v.Devices {
		if d.Backing == VGPUBacking && d.Profile == profile {
			n++
		}
	}
	return n
}
