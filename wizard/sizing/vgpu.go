package sizing

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// profileBoard matches the board in the name of a vGPU profile: a100d of grid_a100d-80c, h100xm of nvidia_h100xm-80c.
var profileBoard = regexp.MustCompile(`^(?:grid_|nvidia_)?([a-z0-9_]+?)(?:[-_][a-z]+)?-[0-9]`)

// beforeSRIOV matches the boards whose vGPUs do not use SR-IOV: Maxwell, Pascal, Volta and Turing.
var beforeSRIOV = regexp.MustCompile(`^(m[0-9].*|p[0-9].*|v100.*|t4|rtx[68]000(p|_passive)?)$`)

// VGPUPeer returns why an RDMA card cannot access the memory of a vGPU, nil if NVIDIA documents that it can. GPUDirect RDMA is
// supported on all time-sliced and MIG-backed C-series vGPUs of GPUs that support SR-IOV (Ampere and later), in Linux guests
// (NVIDIA AI Enterprise, "GPUDirect RDMA and GPUDirect Storage", vGPU support).
func VGPUPeer(profile string) error {
	const source = "(NVIDIA AI Enterprise, GPUDirect RDMA and GPUDirect Storage: C-series vGPUs of GPUs with SR-IOV, which are Ampere " +
		"and later)"
	name := strings.ToLower(profile)
	gb, is := profileOf(name)
	m := profileBoard.FindStringSubmatch(name)
	switch {
	case !is || gb == 0 || m == nil:
		return fmt.Errorf("the series of vGPU %s cannot be read from its name, and GPUDirect RDMA is documented for some %s", profile, source)
	case !strings.HasSuffix(name, "c") && !strings.HasSuffix(name, "cme"):
		return fmt.Errorf("GPUDirect RDMA is not documented for vGPU %s, which is not of the C series %s", profile, source)
	case beforeSRIOV.MatchString(m[1]):
		return fmt.Errorf("GPUDirect RDMA is not documented for vGPU %s, whose GPU has no SR-IOV %s", profile, source)
	}
	return nil
}

// PeerCard returns why a card cannot access the memory of vGPUs: NVIDIA names ConnectX-5, ConnectX-6 and ConnectX-7 (NVIDIA AI
// Enterprise, "GPUDirect Technology", Supported Network Interface Cards) and, since release 8.0, SmartNICs and DPUs without a
// model.
func PeerCard(vendor, device string) error {
	if vendor == "15b3" && (device == "1013" || device == "1015" || device == "1014" || device == "1016") {
		return errors.New("the RDMA card is a ConnectX-4; with vGPUs NVIDIA documents GPUDirect RDMA for ConnectX-5 and later " +
			"(NVIDIA AI Enterprise, GPUDirect Technology, Supported Network Interface Cards)")
	}
	return nil
}

// VGPUFrame returns the framebuffer in GB of a vGPU by its profile name, 0 if the name does not contain it.
func VGPUFrame(profile string) int {
	gb, _ := profileOf(strings.ToLower(profile))
	return gb
}

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
			if g := &gpus[i]; g.fits(p) &&
				(best == nil || len(g.Has) > 0 && len(best.Has) == 0 || (len(g.Has) > 0) == (len(best.Has) > 0) && g.GB < best.GB) {
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
