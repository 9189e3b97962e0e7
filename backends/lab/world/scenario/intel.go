package scenario

import (
	"fmt"

	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

const (
	icenVersion   = "1.14.2.0-1OEM.800.1.0.20613240"
	irdmanVersion = "1.5.1.0-1OEM.800.1.0.20613240"
)

// intel returns scenarios with RDMA cards of another vendor.
func intel() []Scenario {
	return []Scenario{
		{Name: "e810", Text: "healthy, with Intel E810 in RoCE v2 mode as RDMA NICs", Apply: func(s *world.State) {
			for _, h := range s.Hosts {
				intelE810(h)
			}
		}},
		{Name: "e810-off", Text: "e810, with RDMA disabled in the driver icen", Apply: func(s *world.State) {
			for _, h := range s.Hosts {
				intelE810(h)
				p := h.Module(world.Icen).Parameter("RDMA")
				p.Value, p.Active = "0,0", "0,0"
			}
		}},
	}
}

// intelE810 replaces the ConnectX-5 with an Intel E810, which supports RoCE v2 and iWARP, but not RoCE v1 (irdman 1.4.4.0
// release notes).
func intelE810(h *world.Host) {
	for n, p := range h.PNICs[2:4] {
		p.Driver, p.DriverVersion, p.Firmware = world.Icen, icenVersion, "4.40 0x8001c967 1.3534.0"
		p.Model, p.Vendor = "Ethernet Controller E810-C for QSFP", "Intel(R)"
		p.MAC = fmt.Sprintf("b4:96:91:%02x:%02x:%02x", h.Index>>8&0xff, h.Index&0xff, 2+n)
		p.RDMA.Driver, p.RDMA.RoCEv1, p.RDMA.RoCEv2, p.RDMA.IWARP = "irdman", false, true, false
		d := h.PCIDevice(p.PCI)
		d.Vendor, d.Device, d.SubVendor, d.SubDevice = 0x8086, 0x1592, 0x8086, 0x0002
		d.VendorName, d.DeviceName = "Intel Corporation", p.Model
	}
	h.Cards = h.Cards[:1]
	h.Module("nmlx5_rdma").Loaded = false
	h.Modules = append(h.Modules,
		&world.Module{Name: world.Icen, Loaded: true, Version: "1.14.2.0", Parameters: []*world.Parameter{
			{Name: "RDMA", Type: "array of int", Description: "RDMA of each port. Values: 0 (disabled), 1 (enabled)", Value: "1,1", Active: "1,1"},
		}},
		&world.Module{Name: "irdman", Loaded: true, Version: "1.5.1.0"})
	vib := world.VIB{Name: "icen", Version: icenVersion, Vendor: "INT", Acceptance: "VMwareCertified", Installed: h.VIBs[0].Installed}
	h.VIBs = append(h.VIBs, vib)
	vib.Name, vib.Version = "irdman", irdmanVersion
	h.VIBs = append(h.VIBs, vib)
}

// intelIWARP is like intelE810, but the RDMA devices use only iWARP.
func intelIWARP(h *world.Host) {
	intelE810(h)
	for _, p := range h.PNICs[2:4] {
		p.RDMA.RoCEv2, p.RDMA.IWARP = false, true
	}
}
