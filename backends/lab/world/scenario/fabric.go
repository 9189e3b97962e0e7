package scenario

import "github.com/rdma-setup/rdma-setup/backends/lab/world"

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
		on("broken-pfc-priority", "PFC is off for the lossless priority on one port of the physical switch", 3, false, func(_ *world.Host, p *world.PNIC) { p.Cable.NoPFC = true }),
		on("broken-pfc-switch", "PFC is off on all ports of the physical switch", 3, true, func(_ *world.Host, p *world.PNIC) { p.Cable.NoPFC = true }),
		on("broken-dscp-trust", "the physical switch does not trust DSCP, and clears it", 3, true, func(_ *world.Host, p *world.PNIC) { p.Cable.NoTrust = true }),
		on("broken-ecn", "the physical switch marks no packets when its queues fill", 3, true, func(_ *world.Host, p *world.PNIC) { p.Cable.NoECN = true }),
		on("broken-mtu-hop", "one port of the physical switch passes 1500 bytes", 3, false, func(_ *world.Host, p *world.PNIC) { p.Cable.MTU = 1500 }),
		on("slow-small", "the card of a host sends only a tenth of the expected messages per second", 2, false, func(_ *world.Host, p *world.PNIC) { p.SmallShare = 0.1 }),
		on("slow-large", "the card of a host is slow with messages above 64 KiB", 2, false, func(_ *world.Host, p *world.PNIC) { p.LargeShare = 0.5 }),
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
