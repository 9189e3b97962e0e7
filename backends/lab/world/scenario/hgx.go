package scenario

import (
	"fmt"
	"slices"

	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

// board replaces the GPUs of each host with the eight GPUs of an HGX board, each below its own root port. The first one is on
// the switch of the RDMA card.
func board(s *world.State, kind string, profiles []string, rest func(h *world.Host)) {
	for _, h := range s.Hosts {
		drop(h, "0000:3c:00.0", "0000:af:00.0")
		h.PCI = append(h.PCI, newGPU(kind, "0000:3c:00.0", "0000:39:01.0", 0))
		for n := 1; n < 8; n++ {
			root := fmt.Sprintf("0000:%02x:00.0", 0x40+0x10*n)
			h.PCI = append(h.PCI, bridgeAt(root, "", n/4), newGPU(kind, fmt.Sprintf("0000:%02x:00.0", 0x41+0x10*n), root, n/4))
		}
		manager(h, profiles)
		for _, n := range []int{2, 4, 8} { // groups of GPUs, each vGPU being a complete GPU
			whole := profiles[len(profiles)-1]
			h.Groups = append(h.Groups, world.DeviceGroup{Name: fmt.Sprintf("Nvidia:%d@%s%%NVLink", n, whole), VGPUs: slices.Repeat([]string{whole}, n)})
		}
		rest(h)
	}
	for _, v := range s.Asked() {
		v.Guest.Preset = "vgpu"
	}
	s.Refused = map[string]string{"gpudirect": "3 (NVIDIA does not support GPU passthrough on boards with NVSwitches under vSphere)"}
}

// hgxH100 adds the NVSwitches of an HGX H100 as lspci shows them: 10de:22a3, class 0680.
func hgxH100(s *world.State) {
	board(s, "h100-sxm", []string{"grid_h100xm-10c", "grid_h100xm-20c", "grid_h100xm-40c", "grid_h100xm-80c"}, func(h *world.Host) {
		h.PCI = append(h.PCI, bridgeAt("0000:c8:00.0", "", 1))
		for n := range 4 {
			h.PCI = append(h.PCI, &world.PCIDevice{Address: fmt.Sprintf("0000:%02x:00.0", 0xc9+n), Parent: "0000:c8:00.0", Class: 0x0680, Vendor: nvidia, Device: 0x22a3,
				SubVendor: nvidia, SubDevice: 0x1796, VendorName: "NVIDIA Corporation", DeviceName: "GH100 [H100 NVSwitch]", NUMA: 1, PassthruCapable: true,
				BARs: []world.BAR{bar(0, 32, true)}})
		}
	})
}

// hgxNoManager is hgxH100 with a vGPU that the answers ask for, on hosts whose vGPU Manager was removed.
func hgxNoManager(s *world.State) {
	hgxH100(s)
	for _, h := range s.Hosts {
		h.VGPUs, h.VIBs = nil, slices.DeleteFunc(h.VIBs, func(v world.VIB) bool { return v.Name == vgpuManager.Name })
	}
	s.VGPU, s.GPUs = "grid_h100xm-80c", nil
	s.Refused = map[string]string{"gpudirect": "3 (the NVIDIA vGPU Manager is not installed)"}
}

// hgxB200 adds functions of the ConnectX-7 chips in front of its NVSwitches. Their PCI headers do not show that purpose.
func hgxB200(s *world.State) {
	board(s, "b200", []string{"grid_b200x-45c", "grid_b200x-90c", "grid_b200x-180c"}, func(h *world.Host) {
		h.PCI = append(h.PCI, bridgeAt("0000:c8:00.0", "", 1))
		for n := range 4 {
			h.PCI = append(h.PCI, &world.PCIDevice{Address: fmt.Sprintf("0000:%02x:00.%d", 0xc9+n/2, n%2), Parent: "0000:c8:00.0", Class: 0x0207, Vendor: 0x15b3, Device: 0x1021,
				SubVendor: 0x15b3, SubDevice: 0x0023, VendorName: mellanox, DeviceName: "MT2910 Family [ConnectX-7]", NUMA: 1, PassthruCapable: true,
				BARs: []world.BAR{bar(0, 32, true)}})
		}
	})
}
