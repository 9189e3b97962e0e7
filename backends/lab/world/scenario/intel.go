package scenario

import (
	"fmt"

	"github.com/rdma-setup/rdma-setup/backends/lab/firmware"
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

const (
	bnxtnet     = "bnxtnet"
	bnxtVersion = "230.0.136.0-1OEM.800.1.0.20613240"
)

// broadcom returns scenarios with RDMA cards of a third vendor.
func broadcom() []Scenario {
	return []Scenario{
		{Name: "broadcom-bnxt", Text: "healthy, with Broadcom BCM57508 (NetXtreme-E) as RDMA NICs", Apply: func(s *world.State) {
			for _, h := range s.Hosts {
				broadcomNetXtremeE(h)
			}
		}},
		{Name: "broadcom-bnxt-off", Text: "broadcom-bnxt, with RDMA disabled in the NVRAM of the cards", Apply: func(s *world.State) {
			for _, h := range s.Hosts {
				broadcomNetXtremeE(h)
				h.PNICs[2].RDMA, h.PNICs[3].RDMA = nil, nil
			}
		}},
	}
}

// broadcomNetXtremeE replaces the ConnectX-5 with a Broadcom BCM957508-P2100G. The firmware decides which RoCE versions a function
// has (kernel, bnxt.c, FUNC_QCAPS); that ESXi reports v2 alone is unverified. The modules have no parameters here, because none is
// documented in public.
func broadcomNetXtremeE(h *world.Host) {
	for n, p := range h.PNICs[2:4] {
		p.Driver, p.DriverVersion, p.Firmware = bnxtnet, bnxtVersion, "227.0.131.0 / pkg 227.1.111.0"
		p.Model, p.Vendor, p.MaxVFs = "BCM57508 NetXtreme-E 10Gb/25Gb/50Gb/100Gb/200Gb Ethernet", "Broadcom Inc.", 0
		p.MAC = fmt.Sprintf("b0:26:28:%02x:%02x:%02x", h.Index>>8&0xff, h.Index&0xff, 2+n)
		p.RDMA.Driver, p.RDMA.RoCEv1 = "bnxtroce", false
		d := h.PCIDevice(p.PCI)
		d.Vendor, d.Device, d.SubVendor, d.SubDevice = 0x14e4, 0x1750, 0x14e4, 0x2100
		d.VendorName, d.DeviceName = "Broadcom Inc. and subsidiaries", p.Model
	}
	h.Cards = h.Cards[:1]
	h.Module("nmlx5_rdma").Loaded = false
	for _, name := range []string{bnxtnet, "bnxtroce"} {
		h.Modules = append(h.Modules, &world.Module{Name: name, Loaded: true, Version: "230.0.136.0"})
		h.VIBs = append(h.VIBs, world.VIB{Name: name, Version: bnxtVersion, Vendor: "BCM", Acceptance: "VMwareCertified",
			Installed: h.VIBs[0].Installed})
	}
}

// cardless returns scenarios with hosts without an RDMA card. Their VMs have PVRDMA adapters nevertheless: "For virtual
// machines on the same ESXi hosts or virtual machines using the TCP-based fallback, the HCA is not required" (vSphere
// Networking 7.0, PVRDMA Support).
func cardless() []Scenario {
	return []Scenario{{Name: "no-hca",
		Text: "healthy; of the last two hosts, one has an Intel X710 instead of the RDMA card, the other has neither", Hosts: 4,
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
	h.VIBs = append(h.VIBs, world.VIB{Name: "i40en", Version: "2.8.4.0-1OEM.800.1.0.20613240", Vendor: "INT", Acceptance: "VMwareCertified",
		Installed: h.VIBs[0].Installed})
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
