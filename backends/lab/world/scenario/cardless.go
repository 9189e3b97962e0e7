package scenario

import (
	"fmt"

	"github.com/rdma-setup/rdma-setup/backends/lab/firmware"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

// cardless returns scenarios with hosts without an RDMA card. Their VMs have PVRDMA adapters nevertheless: "For virtual
// machines on the same ESXi hosts or virtual machines using the TCP-based fallback, the HCA is not required" (vSphere
// Networking 7.0, PVRDMA Support).
func cardless() []Scenario {
	return []Scenario{{Name: "no-hca", Text: "healthy; of the last two hosts, one has an Intel X710 instead of the RDMA card, the other has neither", Hosts: 4,
		Apply: func(s *world.State) {
			n := len(s.Hosts)
			intelX710(s.Hosts[n-1])
			if n > 1 {
				withoutCard(s.Hosts[n-2])
			}
		}}}
}

// intelX710 replaces the ConnectX-5 with an Intel X710, which does not support RDMA: in the 700 series only the X722 does
// (release notes of Intel's RDMA driver for ESXi, 1.4.4.0).
func intelX710(h *world.Host) {
	for n, p := range h.PNICs[2:4] {
		p.Driver, p.DriverVersion, p.Firmware = "i40en", "2.8.4.0-1OEM.800.1.0.20613240", "9.40 0x8000ed8e 1.3429.0"
		p.Model, p.Vendor, p.RDMA, p.MaxVFs = "Ethernet Controller X710 for 10GbE SFP+", "Intel(R)", nil, 0
		p.SpeedMbps, p.MaxSpeedMbps = 10000, 10000
		p.MAC = fmt.Sprintf("3c:fd:fe:%02x:%02x:%02x", h.Index>>8&0xff, h.Index&0xff, 2+n)
		d := h.PCIDevice(p.PCI)
		d.Vendor, d.Device, d.SubVendor, d.SubDevice = 0x8086, 0x1572, 0x8086, 0x0007
		d.VendorName, d.DeviceName = "Intel Corporation", p.Model
	}
	h.Cards = h.Cards[:1]
	h.Module("nmlx5_rdma").Loaded = false
	h.Modules = append(h.Modules, &world.Module{Name: "i40en", Loaded: true, Version: "2.8.4.0"})
	h.VIBs = append(h.VIBs, world.VIB{Name: "i40en", Version: "2.8.4.0-1OEM.800.1.0.20613240", Vendor: "INT", Acceptance: "VMwareCertified", Installed: h.VIBs[0].Installed})
}

// withoutCard removes the ConnectX-5. The host keeps only its management card.
func withoutCard(h *world.Host) {
	var pci []*world.PCIDevice
	for _, d := range h.PCI {
		if d.Address != h.PNICs[2].PCI && d.Address != h.PNICs[3].PCI {
			pci = append(pci, d)
		}
	}
	h.PCI, h.PNICs, h.Cards = pci, h.PNICs[:2:2], append([]*firmware.Card{}, h.Cards[:1]...)
	h.Module("nmlx5_rdma").Loaded = false
}
