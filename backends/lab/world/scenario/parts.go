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
		0x1015: firmware.ConnectX4Lx, 0x1017: firmware.ConnectX5, 0x101d: firmware.ConnectX6Dx, 0x101f: firmware.ConnectX6Lx, 0x1021: firmware.ConnectX7,
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
