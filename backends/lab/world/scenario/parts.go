package scenario

import (
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/lab/firmware"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

// Know adds the lab's data for a PCI function by its IDs: memory regions and, for a GPU, the data of NVIDIA's driver. It
// returns false for an unknown GPU, which has no memory regions.
func Know(d *world.PCIDevice) bool {
	switch class := d.Class >> 8; {
	case class == 0x02 && len(d.BARs) == 0:
		d.BARs = []world.BAR{bar(0, 32, true)}
	case d.Vendor == nvidia && (class == 0x03 || class == 0x12):
		for _, m := range gpuMakes {
			if m.device == d.Device {
				gpu := m.gpu
				d.SubDevice, d.GPU, d.BARs = m.sub, &gpu, m.regions()
				return true
			}
		}
		return false
	}
	return true
}

// NewCard returns a Mellanox card by the PCI device ID of its functions (pci.ids), with factory settings, but Ethernet ports, and a
// BlueField in NIC mode. It returns nil for a card that the lab does not support.
func NewCard(device uint16, pci, mac string) *firmware.Card {
	build := map[uint16]func(pci, mac string) *firmware.Card{
		0x1015: firmware.ConnectX4Lx, 0x1017: firmware.ConnectX5, 0x101d: firmware.ConnectX6Dx, 0x101f: firmware.ConnectX6Lx,
		0x1021: firmware.ConnectX7,
		0xa2d6: func(pci, mac string) *firmware.Card { return firmware.BlueField2(pci, mac, true) },
	}[device]
	if build == nil {
		return nil
	}
	c := build(pci, mac)
	c.Set("LINK_TYPE_P1", 2)
	c.Set("LINK_TYPE_P2", 2)
	return c
}

// User returns the default user of an operating system's cloud image.
func User(system string) string {
	id, _, _ := strings.Cut(system, "-")
	if id == "rhel" {
		return "cloud-user"
	}
	return id
}

// placed returns scenarios with objects at unusual places in the inventory.
func placed() []Scenario {
	return []Scenario{
		{Name: "vapp", Text: "healthy, with the second VM in a vApp", Apply: func(s *world.State) {
			if len(s.VMs) > 1 {
				v := s.VMs[1]
				v.VApp, v.Path = "app-01", "/"+s.Datacenter+"/vm/app-01/"+v.Name
			}
		}},
		{Name: "stale", Text: "done, then the ruleset pvrdma of the first host was closed on the host itself: vCenter still shows it open",
			Apply: func(s *world.State) {
				done(s)
				h := s.Hosts[0]
				for _, r := range h.Firewall {
					shown := *r
					if h.Copied == nil {
						h.Copied = &world.Copied{}
					}
					h.Copied.Firewall = append(h.Copied.Firewall, &shown)
				}
				h.Ruleset("pvrdma").Enabled = false
			}},
		{Name: "nsx", Text: "healthy, with the RDMA NIC of the last host in an N-VDS of NSX, and EVC on", Apply: func(s *world.State) {
			s.Services.EVC = "intel-cascadelake"
			h := s.Hosts[len(s.Hosts)-1]
			h.Opaque = append(h.Opaque, &world.OpaqueSwitch{ID: world.UUID("opaque", h.Index), Name: "nvds-overlay", Uplinks: []string{"vmnic2"}})
		}},
		{Name: "shared-card", Text: "bare, and vMotion of the first host only uses the second port of the RDMA card",
			Apply: func(s *world.State) {
				bareHosts(s)
				h := s.Hosts[0]
				p := h.PNIC("vmnic3")
				p.LinkUp, p.SpeedMbps = true, p.MaxSpeedMbps
				h.VSwitch = append(h.VSwitch, &world.VSwitch{Name: "vSwitch1", MTU: 9000, Uplinks: []string{"vmnic3"}, PortGroups: []string{"vMotion"}})
				h.VMKs = append(h.VMKs, &world.VMK{Device: "vmk1", MAC: "00:50:56:60:00:03", IP: "10.12.0.11", Prefix: 24, MTU: 9000,
					VSwitch: "vSwitch1", PortGroup: "vMotion", NetStack: "defaultTcpipStack", Roles: []string{"vmotion"}})
			}},
	}
}

// Fabric returns the names of the scenarios in which only a measurement shows the fault.
func Fabric() []string {
	var names []string
	for _, s := range fabrics() {
		names = append(names, s.Name)
	}
	return names
}

// fabrics returns correctly configured sites, with hosts ready for VFs, in which the physical network or a card has a fault
// that only a measurement can detect. SSH is running on the hosts, as during troubleshooting of the network. A fault of a
// single port is on the last host.
func fabrics() []Scenario {
	on := func(name, text string, hosts int, every bool, inject func(h *world.Host, p *world.PNIC)) Scenario {
		return Scenario{Name: name, Text: text, Hosts: hosts, VMs: hosts, Apply: func(s *world.State) {
			ready(s)
			s.Lossless = "pfc"
			for n, h := range s.Hosts {
				h.Service("TSM-SSH").Running = true
				if every || n == len(s.Hosts)-1 {
					inject(h, h.PNIC("vmnic2"))
				}
			}
		}}
	}
	return []Scenario{
		on("broken-pfc-priority", "PFC is off for the lossless priority on one port of the physical switch", 3, false,
			func(_ *world.Host, p *world.PNIC) { p.Cable.NoPFC = true }),
		on("broken-pfc-switch", "PFC is off on all ports of the physical switch", 3, true,
			func(_ *world.Host, p *world.PNIC) { p.Cable.NoPFC = true }),
		on("broken-dscp-trust", "the physical switch does not trust DSCP, and clears it", 3, true,
			func(_ *world.Host, p *world.PNIC) { p.Cable.NoTrust = true }),
		on("broken-ecn", "the physical switch marks no packets when its queues fill", 3, true,
			func(_ *world.Host, p *world.PNIC) { p.Cable.NoECN = true }),
		on("broken-mtu-hop", "one port of the physical switch passes 1500 bytes", 3, false,
			func(_ *world.Host, p *world.PNIC) { p.Cable.MTU = 1500 }),
		on("slow-small", "the card of a host sends only a tenth of the expected messages per second", 2, false,
			func(_ *world.Host, p *world.PNIC) { p.SmallShare = 0.1 }),
		on("slow-large", "the card of a host is slow with messages above 64 KiB", 2, false,
			func(_ *world.Host, p *world.PNIC) { p.LargeShare = 0.5 }),
		on("pcie-x4", "the card of a host runs with 4 lanes of PCIe 3.0", 2, false, func(h *world.Host, p *world.PNIC) {
			p.Lanes, h.Card(p.PCI).Lanes = 4, 4 // Lanes limits the rate; the card's value is the one that mlxlink shows
		}),
		on("leaf-spine", "half of the hosts are on a second leaf, behind a spine", 4, true, func(h *world.Host, p *world.PNIC) {
			if h.Index%2 == 1 {
				p.Cable.Leaf = "leaf-02"
			}
		}),
	}
}
