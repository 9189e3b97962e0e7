package scenario

import (
	"fmt"

	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

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
		h.VIBs = append(h.VIBs, world.VIB{Name: name, Version: bnxtVersion, Vendor: "BCM", Acceptance: "VMwareCertified", Installed: h.VIBs[0].Installed})
	}
}
