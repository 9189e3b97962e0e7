package scenario

import (
	"fmt"

	"github.com/rdma-setup/rdma-setup/backends/lab/firmware"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

// rails returns sites without faults in which more than one port of each host is used for RDMA.
func rails() []Scenario {
	return []Scenario{
		{Name: "rails", Text: "two rails: both ports of the ConnectX-5 have a link", Apply: bothPorts},
		{Name: "rails-swapped", Text: "two rails, a leaf switch for each: on the last host the cables of both are swapped", Apply: swapped},
		{Name: "rails-8", Text: "eight rails: eight ConnectX-7 and eight H100 in each host, two of each behind each of four PCIe switches",
			Apply: eight},
	}
}

// bothPorts connects the second port of the ConnectX-5.
func bothPorts(s *world.State) {
	s.Rails = []string{"0000:3b:00.0", "0000:3b:00.1"}
	for _, h := range s.Hosts {
		h.PNIC("vmnic3").LinkUp = true
	}
}

// swapped connects each rail to its own leaf, with a spine between them, and swaps the cables of the last host.
func swapped(s *world.State) {
	bothPorts(s)
	for i, h := range s.Hosts {
		first, second := "leaf-01", "leaf-02"
		if i == len(s.Hosts)-1 {
			first, second = second, first
		}
		h.PNIC("vmnic2").Cable.Leaf, h.PNIC("vmnic3").Cable.Leaf = first, second
	}
}

// eight replaces the RDMA card and the GPUs of each host with eight cards and eight GPUs behind four PCIe switches on two
// sockets. The VMs of a host share its memory and its cards: each VM gets VFs.
func eight(s *world.State) {
	const root, cards = "0000:37:00.0", 8
	s.Rails, s.GPURails = nil, true
	for _, h := range s.Hosts {
		h.Cores, h.MemoryMB = 112, 2<<20
		drop(h, root, "0000:38:00.0", "0000:39:00.0", "0000:39:01.0", "0000:3b:00.0", "0000:3b:00.1", "0000:3c:00.0", "0000:ae:00.0",
			"0000:af:00.0")
		h.PNICs, h.Cards = h.PNICs[:2], h.Cards[:1]
		for n, bus := range []int{0x30, 0x50, 0x90, 0xb0} {
			at := func(off int) string { return fmt.Sprintf("0000:%02x:00.0", bus+off) }
			h.PCI = append(h.PCI, bridgeAt(at(0), "", n/2), bridgeAt(at(1), at(0), n/2))
			for pair := range 2 {
				nic, gpu := at(8+2*pair), at(9+2*pair)
				below := func(slot int) string { return fmt.Sprintf("0000:%02x:%02x.0", bus+2, slot) }
				h.PCI = append(h.PCI, bridgeAt(below(2*pair), at(1), n/2), bridgeAt(below(2*pair+1), at(1), n/2),
					newGPU("h100-80g", gpu, below(2*pair+1), n/2))
				addConnectX7(h, nic, below(2*pair), n/2)
			}
		}
	}
	for _, p := range s.Hosts[0].PNICs[2:] {
		s.Rails = append(s.Rails, p.PCI)
	}
	s.HCA = s.Rails[0]
	for _, v := range s.VMs {
		v.CPUs, v.MemoryMB = 32, int64((1<<20)*len(s.Hosts)/max(len(s.VMs), len(s.Hosts)))
		v.Guest.Preset, v.Guest.OS = "gpu", "ubuntu-22.04"
	}
}

// addConnectX7 adds a card with one 400 Gb/s port to a host (15b3:1021 in pci.ids; part MCX75310AAS-NEAT in NVIDIA's ConnectX-7
// user manual).
func addConnectX7(h *world.Host, pci, parent string, numa int) {
	const name = "MT2910 Family [ConnectX-7]"
	n := len(h.PNICs)
	c := firmware.ConnectX7(pci, fmt.Sprintf("a0:88:c2:%02x:%02x:%02x", h.Index>>8&0xff, h.Index&0xff, n))
	c.Set("SRIOV_EN", 1)
	c.Set("NUM_OF_VFS", 16)
	c.Set("LINK_TYPE_P1", 2)
	h.Cards = append(h.Cards, c)
	h.PNICs = append(h.PNICs, &world.PNIC{
		Device: fmt.Sprintf("vmnic%d", n), MAC: fmt.Sprintf("a0:88:c2:%02x:%02x:%02x", h.Index>>8&0xff, h.Index&0xff, n), PCI: pci, NUMA: numa,
		Driver: "nmlx5_core", DriverVersion: nmlxVersion, Firmware: c.Version, Model: name, Vendor: mellanox,
		SpeedMbps: 400000, MaxSpeedMbps: 400000, LinkUp: true, MTU: 1500, MaxVFs: 16, RxPause: true, TxPause: true,
		RDMA: &world.RDMA{Name: fmt.Sprintf("vmrdma%d", n-2), Driver: "nmlx5_rdma", RoCEv1: true, RoCEv2: true},
	})
	h.PCI = append(h.PCI, &world.PCIDevice{Address: pci, Parent: parent, Class: 0x0200, Vendor: 0x15b3, Device: 0x1021, SubVendor: 0x15b3,
		SubDevice:  0x0041,
		VendorName: mellanox, DeviceName: name, NUMA: numa, PassthruCapable: true, BARs: []world.BAR{bar(0, 32, true)}})
}
