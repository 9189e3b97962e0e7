package rdma

import (
	"fmt"
	"io/fs"
	"strings"
	"syscall"

	"github.com/rdma-setup/rdma-setup/backends/lab/linux/netif"
	"github.com/rdma-setup/rdma-setup/backends/lab/shell/vfs"
)

// State returns the port's state as a number and a word.
func (d Device) State() (int, string) {
	if d.Active {
		return 4, "ACTIVE"
	}
	return 1, "DOWN"
}

// Phys returns the physical state as a number and a word.
func (d Device) Phys() (int, string) {
	if d.Plugged {
		return 5, "LinkUp"
	}
	return 3, "Disabled"
}

// Rate returns the rate in Gb/s with its width and speed: "100", "4X EDR".
func (d Device) Rate() (gbps, lanes string) {
	switch d.RateGbps {
	case 10:
		return "10", "4X SDR"
	case 25:
		return "25", "1X EDR"
	case 40:
		return "40", "4X FDR10"
	case 50:
		return "50", "2X EDR"
	case 100:
		return "100", "4X EDR"
	case 200:
		return "200", "4X HDR"
	case 400:
		return "400", "4X NDR"
	}
	return "2.5", "1X SDR"
}

// NodeGUID returns the GUID in groups of four digits.
func (d Device) NodeGUID() string {
	full := GID{Addr: netif.LinkLocal(d.MAC)}.Full()
	return full[len("fe80:0000:0000:0000:"):]
}

const gidSlots = 16

// slot is where a slot's PCI functions are below /sys/devices.
func slot(n int) string {
	return fmt.Sprintf("pci0000:00/0000:00:%02x.0/0000:%02x:00.", 0x15+n/32%4, netif.Bus(n))
}

// Infiniband is /sys/class/infiniband: links to the devices.
func (d *Devices) Infiniband() vfs.Tree {
	t := vfs.Tree{}
	for _, dev := range d.List() {
		t[dev.Name] = vfs.Entry{Link: "../../devices/" + slot(dev.Slot) + "1/infiniband/" + dev.Name}
	}
	return t
}

// Net is /sys/class/net: links to the interfaces.
func (d *Devices) Net() vfs.Tree {
	t := vfs.Tree{"lo": {Link: "../../devices/virtual/net/lo"}}
	for _, l := range d.Stack.Links() {
		t[l.Name] = vfs.Entry{Link: "../../devices/" + slot(l.Slot) + "0/net/" + l.Name}
	}
	return t
}

// PCI is /sys/bus/pci.
func (d *Devices) PCI() vfs.Tree {
	t := vfs.Tree{"drivers/vmxnet3": {Dir: true}, "drivers/" + Driver: {Dir: true}, "devices": {Dir: true}}
	for _, l := range d.Stack.Links() {
		at := slot(l.Slot)
		for _, function := range []string{"0", "1"}[:map[bool]int{true: 2, false: 1}[l.Paired]] {
			t["devices/"+at[strings.LastIndex(at, "/")+1:]+function] = vfs.Entry{Link: "../../../devices/" + at + function}
		}
	}
	return t
}

// Tree is /sys/devices: the PCI functions with the interfaces and the RDMA devices below them. The RDMA function has
// no netdev below it: gid_attrs/ndevs names it, and the interface is found below function 0.
func (d *Devices) Tree() vfs.Tree {
	t := vfs.Tree{"virtual/net/lo/address": {Data: "00:00:00:00:00:00\n"}, "virtual/net/lo/mtu": {Data: "65536\n"},
		"virtual/net/lo/operstate": {Data: "unknown\n"}, "virtual/net/lo/flags": {Data: "0x9\n"}}
	for _, l := range d.Stack.Links() {
		function(t, slot(l.Slot)+"0", "0x07b0", "0x020000", "vmxnet3")
		netFiles(t, slot(l.Slot)+"0/net/"+l.Name, l)
		if l.Paired {
			function(t, slot(l.Slot)+"1", "0x0820", "0x020700", "")
		}
	}
	for _, dev := range d.List() {
		function(t, slot(dev.Slot)+"1", "0x0820", "0x020700", Driver)
		d.verbsFiles(t, slot(dev.Slot)+"1/infiniband/"+dev.Name, dev)
	}
	return t
}

// function fills in a PCI function.
func function(t vfs.Tree, at, device, class, driver string) {
	t[at+"/vendor"] = vfs.Entry{Data: "0x15ad\n"}
	t[at+"/device"] = vfs.Entry{Data: device + "\n"}
	t[at+"/class"] = vfs.Entry{Data: class + "\n"}
	t[at+"/numa_node"] = vfs.Entry{Data: "-1\n"}
	if driver != "" {
		t[at+"/driver"] = vfs.Entry{Link: "../../../../bus/pci/drivers/" + driver}
	}
}

// verbsFiles fills in an RDMA device.
func (d *Devices) verbsFiles(t vfs.Tree, at string, dev Device) {
	put := func(name, format string, args ...any) {
		t[at+"/"+name] = vfs.Entry{Data: fmt.Sprintf(format, args...) + "\n"}
	}
	state, word := dev.State()
	phys, physWord := dev.Phys()
	gbps, lanes := dev.Rate()
	put("node_guid", "%s", dev.NodeGUID())
	put("sys_image_guid", "0000:0000:0000:0000")
	put("node_type", "1: CA")
	put("node_desc", "")
	put("fw_ver", "3.0.000")
	put("board_id", "1")
	put("hca_type", "VMW_PVRDMA-1.0.1.0-k")
	put("hw_rev", "1")
	put("ports/1/state", "%d: %s", state, word)
	put("ports/1/phys_state", "%d: %s", phys, physWord)
	put("ports/1/rate", "%s Gb/sec (%s)", gbps, lanes)
	put("ports/1/link_layer", "Ethernet")
	put("ports/1/lid", "0x0")
	put("ports/1/sm_lid", "0x0")
	put("ports/1/cap_mask", "0x04010000")
	for i := range gidSlots {
		gid := "0000:0000:0000:0000:0000:0000:0000:0000"
		types, ndevs := fmt.Sprintf("%s/ports/1/gid_attrs/types/%d", at, i), fmt.Sprintf("%s/ports/1/gid_attrs/ndevs/%d", at, i)
		t[types], t[ndevs] = vfs.Entry{Err: syscall.EINVAL}, vfs.Entry{Err: syscall.EINVAL}
		if i < len(dev.GIDs) {
			g := dev.GIDs[i]
			gid = g.Full()
			t[types], t[ndevs] = vfs.Entry{Data: g.Type() + "\n"}, vfs.Entry{Data: dev.Netdev + "\n"}
		}
		put(fmt.Sprintf("ports/1/gids/%d", i), "%s", gid)
	}
	c := d.count(dev.Name)
	put("ports/1/counters/port_xmit_data", "%d", c.SentBytes/4)
	put("ports/1/counters/port_rcv_data", "%d", c.ReceivedBytes/4)
	put("ports/1/counters/port_xmit_packets", "%d", c.SentPackets)
	put("ports/1/counters/port_rcv_packets", "%d", c.ReceivedPackets)
	t[at+"/device"] = vfs.Entry{Link: "../../../" + at[strings.LastIndex(at[:strings.Index(at, "/infiniband")], "/")+1:strings.Index(at, "/infiniband")]}
}

// netFiles fills in an interface.
func netFiles(t vfs.Tree, at string, l netif.Link) {
	put := func(name, format string, args ...any) {
		t[at+"/"+name] = vfs.Entry{Data: fmt.Sprintf(format, args...) + "\n"}
	}
	state, flags := "down", 0x1002
	if l.Up {
		flags |= 1
	}
	if l.Running() {
		state = "up"
	}
	put("address", "%s", l.MAC)
	put("mtu", "%d", l.MTU)
	put("operstate", "%s", state)
	put("flags", "%#x", flags)
	put("ifindex", "%d", l.Index)
	put("type", "1")
	// Linux answers EINVAL for the carrier and the speed of an interface that is down.
	t[at+"/carrier"], t[at+"/speed"] = vfs.Entry{Err: syscall.EINVAL}, vfs.Entry{Err: syscall.EINVAL}
	if l.Up {
		put("carrier", "%d", map[bool]int{true: 1, false: 0}[l.Connected])
		put("speed", "%d", map[bool]int{true: 10000, false: -1}[l.Connected])
	}
	t[at+"/device"] = vfs.Entry{Link: "../../../" + l.PCI()}
}

// Verbs is /sys/class/infiniband_verbs.
func (d *Devices) Verbs() vfs.Tree {
	t := vfs.Tree{"abi_version": {Data: "6\n"}}
	for i, dev := range d.List() {
		t[fmt.Sprintf("uverbs%d/ibdev", i)] = vfs.Entry{Data: dev.Name + "\n"}
		t[fmt.Sprintf("uverbs%d/abi_version", i)] = vfs.Entry{Data: "3\n"}
	}
	return t
}

// Nodes is /dev/infiniband: the nodes of the modules that are loaded.
func (d *Devices) Nodes(loaded func(module string) bool) vfs.Tree {
	const char = fs.ModeDevice | fs.ModeCharDevice
	t := vfs.Tree{}
	for i := range d.List() {
		if loaded("ib_uverbs") {
			t[fmt.Sprintf("uverbs%d", i)] = vfs.Entry{Mode: char | 0o666}
		}
		if loaded("ib_umad") {
			t[fmt.Sprintf("umad%d", i)] = vfs.Entry{Mode: char | 0o600}
			t[fmt.Sprintf("issm%d", i)] = vfs.Entry{Mode: char | 0o600}
		}
	}
	if loaded("rdma_ucm") {
		t["rdma_cm"] = vfs.Entry{Mode: char | 0o666}
	}
	return t
}
