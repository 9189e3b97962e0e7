package sizing

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// SameSize is a sentence about which vGPUs one GPU accepts, with its source.
const SameSize = "Time-sliced vGPUs of one GPU have one size unless the GPU is set to mixed size " +
	"(VMware, What's New for GPUs in vSphere 8 Update 3; NVIDIA, Virtual GPU Software User Guide, mixed-size mode)"

// A SharedGPU is a GPU that provides vGPUs.
type SharedGPU struct {
	GB   int      // of framebuffer
	Mode string   // HostGraphicsInfoVgpuMode: sameSize, mixedSize, multiInstanceGpu, none; "" if the host does not report it
	Has  []string // profiles of its vGPUs
}

// The modes of HostGraphicsInfoVgpuMode (vSphere Web Services API, since 8.0.3.0) that decide what fits.
const (
	mixedSize = "mixedSize"
	migMode   = "multiInstanceGpu"
)

// PlaceVGPUs assigns a GPU to each vGPU, the largest vGPUs first, and returns the profiles for which there is none. A GPU whose vGPUs have
// the same size is filled before an empty one. In mixed-size mode NVIDIA allows fewer vGPUs of some sizes than the memory holds (Virtual
// GPU Software User Guide, "Valid Time-Sliced Virtual GPU Configurations on a Single GPU"); that is not counted here.
func PlaceVGPUs(gpus []SharedGPU, profiles []string) (left []string) {
	profiles = slices.Clone(profiles)
	slices.SortStableFunc(profiles, func(x, y string) int { return VGPUFrame(y) - VGPUFrame(x) })
	for _, p := range profiles {
		var best *SharedGPU
		for i := range gpus {
			if g := &gpus[i]; g.fits(p) && (best == nil || len(g.Has) > 0 && len(best.Has) == 0 || (len(g.Has) > 0) == (len(best.Has) > 0) && g.GB < best.GB) {
				best = g
			}
		}
		if best == nil {
			left = append(left, p)
			continue
		}
		best.Has = append(best.Has, p)
	}
	return left
}

// fits reports whether a GPU has room for one more vGPU of a profile. Time-sliced and MIG-backed vGPUs exclude each other on one
// GPU (NVIDIA, Virtual GPU Software User Guide, "MIG-Backed NVIDIA vGPU"). A GPU has 7 slices at most (NVIDIA, MIG User Guide,
// "Supported GPUs").
func (g *SharedGPU) fits(profile string) bool {
	sum, parts := VGPUFrame(profile), migSlices(profile)
	mig := parts > 0
	if g.Mode == migMode && !mig || (g.Mode == mixedSize || g.Mode == "sameSize") && mig {
		return false
	}
	for _, p := range g.Has {
		if (migSlices(p) > 0) != mig || !mig && g.Mode != mixedSize && VGPUFrame(p) != VGPUFrame(profile) {
			return false
		}
		sum, parts = sum+VGPUFrame(p), parts+migSlices(p)
	}
	return (g.GB == 0 && len(g.Has) == 0 || sum <= g.GB) && parts <= 7
}

// migSlices returns the number of slices in the name of a MIG-backed profile: 3 for grid_a100d-3-40c; 0 for other profiles.
func migSlices(profile string) int {
	name := strings.ToLower(profile)
	at := migName.FindString(name)
	if at == "" {
		return 0
	}
	n, err := strconv.Atoi(strings.SplitN(at, "-", 3)[1])
	if err != nil {
		return 0
	}
	return cmp.Or(n, 1)
}
