package scenario

import (
	"fmt"
	"time"

	"github.com/rdma-setup/rdma-setup/backends/lab/firmware"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

const (
	nmlxVersion = "4.23.6.2-1OEM.803.0.0.24022510"
	mftVersion  = "4.28.0.92-0"
	nmstVersion = "4.28.0.92-1OEM.801.0.0.21495797"
	mellanox    = "Mellanox Technologies"
)

// equip adds the lab's hardware to a host: a ConnectX-4 Lx for management, a ConnectX-5 for RDMA, and two A100, one of them
// below the root port of the ConnectX-5.
func equip(h *world.Host) {
	mac := func(oui string, port int) string {
		return fmt.Sprintf("%s:%02x:%02x:%02x", oui, h.Index>>8&0xff, h.Index&0xff, port)
	}
	port := func(n int, pci, oui, model, firmware string, speed int, link bool) *world.PNIC {
		return &world.PNIC{
			Device: fmt.Sprintf("vmnic%d", n), MAC: mac(oui, n), PCI: pci,
			Driver: "nmlx5_core", DriverVersion: nmlxVersion, Firmware: firmware, Model: model, Vendor: mellanox,
			SpeedMbps: speed, MaxSpeedMbps: speed, LinkUp: link, MTU: 1500, MaxVFs: 16, RxPause: true, TxPause: true,
			RDMA: &world.RDMA{Name: fmt.Sprintf("vmrdma%d", n), Driver: "nmlx5_rdma", RoCEv1: true, RoCEv2: true},
		}
	}
	cx4, cx5 := "MT27710 Family [ConnectX-4 Lx]", "MT27800 Family [ConnectX-5]"
	h.PNICs = []*world.PNIC{
		port(0, "0000:1a:00.0", "ec:0d:9a", cx4, "14.32.1010", 25000, true),
		port(1, "0000:1a:00.1", "ec:0d:9a", cx4, "14.32.1010", 25000, true),
		port(2, "0000:3b:00.0", "b8:59:9f", cx5, "16.35.4030", 100000, true),
		port(3, "0000:3b:00.1", "b8:59:9f", cx5, "16.35.4030", 100000, false),
	}
	// The management card has no RDMA devices here: vmrdma0 and vmrdma1 belong to the ConnectX-5.
	h.PNICs[0].RDMA, h.PNICs[1].RDMA = nil, nil
	h.PNICs[2].RDMA.Name, h.PNICs[3].RDMA.Name = "vmrdma0", "vmrdma1"
	h.Cards = []*firmware.Card{firmware.ConnectX4Lx("0000:1a:00.0", h.PNICs[0].MAC), firmware.ConnectX5("0000:3b:00.0", h.PNICs[2].MAC)}
	for _, c := range h.Cards {
		c.Set("SRIOV_EN", 1)
		c.Set("NUM_OF_VFS", 16)
		c.Set("LINK_TYPE_P1", 2)
		c.Set("LINK_TYPE_P2", 2)
	}

	nic := func(address, parent string, device, sub uint16, name string) *world.PCIDevice {
		return &world.PCIDevice{Address: address, Parent: parent, Class: 0x0200, Vendor: 0x15b3, Device: device,
			SubVendor: 0x15b3, SubDevice: sub, VendorName: mellanox, DeviceName: name, PassthruCapable: true,
			BARs: []world.BAR{bar(0, 32, true)}}
	}
	h.PCI = []*world.PCIDevice{
		bridgeAt("0000:17:00.0", "", 0),
		nic("0000:1a:00.0", "0000:17:00.0", 0x1015, 0x0025, cx4),
		nic("0000:1a:00.1", "0000:17:00.0", 0x1015, 0x0025, cx4),
		bridgeAt("0000:37:00.0", "", 0),
		bridgeAt("0000:38:00.0", "0000:37:00.0", 0),
		bridgeAt("0000:39:00.0", "0000:38:00.0", 0),
		bridgeAt("0000:39:01.0", "0000:38:00.0", 0),
		nic("0000:3b:00.0", "0000:39:00.0", 0x1017, 0x0006, cx5),
		nic("0000:3b:00.1", "0000:39:00.0", 0x1017, 0x0006, cx5),
		newGPU("a100-80g", "0000:3c:00.0", "0000:39:01.0", 0),
		bridgeAt("0000:ae:00.0", "", 1),
		newGPU("a100-80g", "0000:af:00.0", "0000:ae:00.0", 1),
	}
	h.Modules, h.VIBs = Modules(), VIBs()
}

// VIBs returns the VIBs of a host with drivers and tools for Mellanox cards.
func VIBs() []world.VIB {
	installed := time.Date(2025, time.March, 4, 0, 0, 0, 0, time.UTC)
	list := []world.VIB{
		{Name: "nmlx5-core", Version: nmlxVersion, Vendor: "MEL", Acceptance: "VMwareCertified"},
		{Name: "nmlx5-rdma", Version: nmlxVersion, Vendor: "MEL", Acceptance: "VMwareCertified"},
		{Name: "esx-base", Version: "8.0.3-0.35.24022510", Vendor: "VMware", Acceptance: "VMwareCertified"},
		{Name: "mft", Version: mftVersion, Vendor: "MEL", Acceptance: "PartnerSupported"},
		{Name: "nmst", Version: nmstVersion, Vendor: "MEL", Acceptance: "PartnerSupported"},
		{Name: "esx-ui", Version: "2.18.0-23593406", Vendor: "VMware", Acceptance: "VMwareCertified"},
	}
	for i := range list {
		list[i].Installed = installed
	}
	return list
}

// Modules returns the kernel modules of a host with Mellanox cards. No parameter is set.
func Modules() []*world.Module {
	param := func(name, kind, text string) *world.Parameter {
		return &world.Parameter{Name: name, Type: kind, Description: text}
	}
	return []*world.Module{
		{Name: "vmkernel", Loaded: true, Version: "8.0.3"},
		{Name: "nmlx5_core", Loaded: true, Version: nmlxVersion, Parameters: []*world.Parameter{
			param("DRSS", "uint", "Number of hardware queues for the default queue (DEFQ) RSS. Values: 0 (disabled), 2-16. Default: 4"),
			param("RSS", "uint", "Number of hardware queues for NetQ RSS. Values: 0 (disabled), 2-16. Default: 4"),
			param("dropless_rq", "uint", "Receive queue drop-less mode. Values: 0 (disabled), 1 (enabled). Default: 0"),
			param("ecn", "uint", "Enable the ECN. Values: 0 (disabled), 1 (enabled). Default: 0"),
			param("geneve_offload_enable", "uint", "Geneve hardware offload. Values: 0 (disabled), 1 (enabled). Default: 1"),
			param("max_vfs", "array of uint", "Number of PCI virtual functions of each port. Values: array of uint range 0-128. Default: 0"),
			param("mst_recovery", "uint", "Enable recovery mode (only NMST module is loaded). Values: 0, 1. Default: 0"),
			param("pfcrx", "uint", "Priority based flow control policy on RX, 8-bit mask. It must equal pfctx. Default: 0"),
			param("pfctx", "uint", "Priority based flow control policy on TX, 8-bit mask. It must equal pfcrx. Default: 0"),
			param("trust_state", "uint", "Port policy to calculate the switch priority. Values: 1 (PCP), 2 (DSCP). Default: 1"),
		}},
		{Name: "nmlx5_rdma", Loaded: true, Version: nmlxVersion, Parameters: []*world.Parameter{
			param("dscp_force", "int", "DSCP value to force on outgoing RoCE traffic. Values: -1 (disabled), 0-63. Default: -1"),
			param("enable_iser", "uint", "Enable iSER. Values: 0, 1. Default: 0"),
			param("pcp_force", "int", "PCP value to force on outgoing RoCE traffic. Values: -1 (disabled), 0-7. Default: -1"),
		}},
		{Name: "vrdma", Loaded: true, Version: "8.0.3"},
		{Name: "nvme_rdma", Version: "8.0.3"},
	}
}
