package sizing

import (
	"errors"
	"fmt"
	"regexp"
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
	const source = "(NVIDIA AI Enterprise, GPUDirect RDMA and GPUDirect Storage: C-series vGPUs of GPUs with SR-IOV, which are Ampere and later)"
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
