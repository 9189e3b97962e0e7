package scenario

import "github.com/rdma-setup/rdma-setup/backends/lab/world"

// a100Profiles are vGPUs of an A100 with 80 GB: time-sliced ones of the C series, MIG-backed ones, one of the Q series.
var a100Profiles = []string{"grid_a100d-8c", "grid_a100d-10c", "grid_a100d-20c", "grid_a100d-40c", "grid_a100d-80c", "grid_a100d-3-40c", "grid_a100d-7-80c", "grid_a100d-4q"}

// manager installs NVIDIA's vGPU Manager, which lists profiles (NVIDIA AI Enterprise, Deployment Guide for VMware vSphere: NVD-AIE_ESXi_8.0.0_Driver).
func manager(h *world.Host, profiles []string) {
	h.VGPUs = profiles
	h.VIBs = append(h.VIBs, world.VIB{Name: "NVD-AIE_ESXi_8.0.0_Driver", Version: "570.133.10-1OEM.800.1.0.20613240", Vendor: "NVIDIA", Acceptance: "VMwareAccepted"})
}

// vgpuGDR leaves each host only the A100 on the switch of the HCA, and requests all of it as a vGPU.
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
