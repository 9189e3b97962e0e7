package rdma

import (
	"cmp"
	"fmt"

	"github.com/rdma-setup/rdma-setup/backends/lab/linux/netif"
)

// HCADriver is the kernel module for the RDMA device of a ConnectX function: a VF or a passed-through port.
const HCADriver = "mlx5_ib"

// An Image describes the model and the firmware of a device.
type Image struct {
	Type       string // CA type: MT4120
	Firmware   string
	Board      string // PSID
	SystemGUID string // groups of four digits
	Vendor     int    // 0x02c9
	Part       int    // 4120
	Hardware   int
}

// Image returns the model and the firmware of a device, which differ between PVRDMA devices and card functions.
func (d Device) Image() Image {
	if d.HCA == nil {
		return Image{Type: "VMW_PVRDMA-1.0.1.0-k", Firmware: "3.0.000", Board: "1", SystemGUID: "0000:0000:0000:0000", Vendor: 0x15ad, Part: 2080, Hardware: 1}
	}
	part := int(d.HCA.Device)
	return Image{Type: fmt.Sprintf("MT%d", part), Firmware: d.HCA.Firmware, Board: d.HCA.PSID, SystemGUID: d.NodeGUID(), Vendor: 0x02c9, Part: part}
}

// attachHCA creates the device of a card's function. The state of its port depends only on the netdev.
func (d *Devices) attachHCA(a Adapter) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := 0
	for _, b := range d.attached {
		if b.MAC == a.MAC {
			return
		}
		if b.HCA != nil {
			n++
		}
	}
	name := fmt.Sprintf("mlx5_%d", n)
	if d.Named() {
		name = fmt.Sprintf("rocep%ds0", netif.Bus(a.Slot))
	}
	d.version.Add(1)
	d.attached = append(d.attached, attached{Adapter: a, name: cmp.Or(d.known(a), name), enabled: true})
}
