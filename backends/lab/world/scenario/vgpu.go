package scenario

import "github.com/rdma-setup/rdma-setup/backends/lab/world"

// a100Profiles are vGPU profiles of an A100 with 80 GB: time-sliced C-series profiles, MIG-backed profiles, and one Q-series
// profile.
var a100Profiles = []string{"grid_a100d-8c", "grid_a100d-10c", "grid_a100d-20c", "grid_a100d-40c", "grid_a100d-80c", "grid_a100d-3-40c", "grid_a100d-7-80c", "grid_a100d-4q"}

// vgpuManager is the VIB of NVIDIA's vGPU Manager (NVIDIA AI Enterprise, Deployment Guide for VMware vSphere:
// NVD-AIE_ESXi_8.0.0_Driver).
var vgpuManager = world.VIB{Name: "NVD-AIE_ESXi_8.0.0_Driver", Version: "570.133.10-1OEM.800.1.0.20613240", Vendor: "NVIDIA", Acceptance: "VMwareAccepted"}

// manager installs the vGPU Manager, which offers profiles.
func manager(h *world.Host, profiles []string) {
	h.VGPUs, h.VIBs = profiles, append(h.VIBs, vgpuManager)
}

// vgpuGDR removes all GPUs except the A100 on the switch of the HCA, and requests a vGPU that uses the complete A100.
func vgpuGDR(s *world.State) {
	for _, h := range s.Hosts {
		drop(h, "0000:af:00.0")
		manager(h, a100Profiles)
	}
	s.VGPU, s.GPUs = "grid_a100d-80c", nil
	for _, v := range s.Asked() {
		v.Guest.Preset = "vgpu"
	}
}

// vgpuGuests is like vgpuGDR with two guests that cannot use their vGPU.
func vgpuGuests(s *world.State) {
	vgpuGDR(s)
	asked := s.Asked()
	asked[0].Guest.Preset, asked[len(asked)-1].Guest.Defects = "gpudirect", []world.Defect{world.NoLicense}
	s.Refused = map[string]string{"gpudirect": "3 (a guest has the driver for whole GPUs, another no license for its vGPU)"}
}

// vgpuBare is like vgpuGDR without the vGPU Manager. NVIDIA's offline bundle with it is on the datastore.
func vgpuBare(s *world.State) {
	vgpuGDR(s)
	for _, h := range s.Hosts {
		h.VGPUs, h.Shares, h.VIBs = nil, h.VGPUs, h.VIBs[:len(h.VIBs)-1]
	}
	s.Manager = "/vmfs/volumes/shared-01/rdma/" + vgpuBundle
	s.Depot = append(s.Depot, &world.Package{Path: s.Manager, VIBs: []world.VIB{vgpuManager}})
}

// vgpuBundle is the file name of NVIDIA's download.
const vgpuBundle = "NVD-AIE-800_570.133.10-1OEM.800.1.0.20613240_24624534.zip"

// vgpuImage is like vgpuBare in a cluster that is managed by an image. The bundle is on a web server.
func vgpuImage(s *world.State) {
	vgpuBare(s)
	s.Depot, s.Manager = nil, ImageDepot+vgpuBundle
	s.Services.Image = &world.Image{Base: "8.0.3-0.35.24022510", Components: map[string]string{}, Commits: 1}
	s.Lifecycle.Bundles = []world.Bundle{
		{Location: s.Manager, Name: "NVD-AIE-800", Version: vgpuManager.Version, Vendor: "NVIDIA", VIBs: []world.VIB{vgpuManager}}}
}
