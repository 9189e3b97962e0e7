package rdma

import (
	"fmt"
	"io/fs"
	"strconv"
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

// Rate returns the rate in Gb/s, and the width and speed of the lanes: "100", "4X EDR".
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

// SlotPath returns the path of a slot's PCI functions below /sys/devices: VMware's bridges 5 to 8 are 00:15 to 00:18, with one
// function for each device behind them (KB 311606).
func SlotPath(n int) string {
	return fmt.Sprintf("pci0000:00/0000:00:%02x.%d/0000:%02x:00.", 0x10+n/32, n%32, netif.Bus(n))
}

// Infiniband returns the content of /sys/class/infiniband: links to the devices.
func (d *Devices) Infiniband() vfs.Tree {
	t := vfs.Tree{}
	for _, dev := range d.List() {
		t[dev.Name] = vfs.Entry{Link: "../../devices/" + SlotPath(dev.Slot) + dev.function() + "/infiniband/" + dev.Name}
	}
	return t
}

// Net returns the content of /sys/class/net: links to the interfaces.
func (d *Devices) Net() vfs.Tree {
	t := vfs.Tree{"lo": {Link: "../../devices/virtual/net/lo"}}
	for _, l := range d.Stack.Links() {
		t[l.Name] = vfs.Entry{Link: "../../devices/" + SlotPath(l.Slot) + "0/net/" + l.Name}
	}
	return t
}

// PCI returns the content of /sys/bus/pci.
func (d *Devices) PCI() vfs.Tree {
	t := vfs.Tree{"drivers/vmxnet3": {Dir: true}, "drivers/" + Driver: {Dir: true}, "drivers/" + vfNetDriver: {Dir: true},
		"devices": {Dir: true}}
	for _, l := range d.Stack.Links() {
		at := SlotPath(l.Slot)
		for _, function := range []string{"0", "1"}[:map[bool]int{true: 2, false: 1}[l.Paired]] {
			t["devices/"+at[strings.LastIndex(at, "/")+1:]+function] = vfs.Entry{Link: "../../../devices/" + at + function}
		}
	}
	return t
}

// Tree returns the content of /sys/devices: the PCI functions with their interfaces and RDMA devices. The RDMA function of
// PVRDMA has no netdev: gid_attrs/ndevs contains its name, and the interface is below function 0. The content of a function, an
// interface or a device is only computed when it is read, because walking sysfs reads hundreds of files one by one.
func (d *Devices) Tree() vfs.Tree {
	t := vfs.Tree{"virtual/net/lo": {Sub: func() vfs.Tree {
		return vfs.Tree{"address": line("00:00:00:00:00:00"), "mtu": line("65536"), "operstate": line("unknown"), "flags": line("0x9")}
	}}}
	for _, l := range d.Stack.Links() {
		t[SlotPath(l.Slot)+"0"] = vfs.Entry{Version: d.Version, Sub: func() vfs.Tree {
			f := Function(vmware, "0x07b0", "0x020000", "vmxnet3")
			if l.HCA != nil {
				f = Function("0x15b3", fmt.Sprintf("%#04x", l.HCA.Device), "0x020000", vfNetDriver)
				d.verbs(f, l.Slot, "0")
			}
			f["net/"+l.Name] = d.netFiles(l)
			return f
		}}
		if l.Paired {
			t[SlotPath(l.Slot)+"1"] = vfs.Entry{Version: d.Version, Sub: func() vfs.Tree {
				f := Function(vmware, "0x0820", "0x020700", "")
				if d.verbs(f, l.Slot, "1") {
					driven(f, Driver)
				}
				return f
			}}
		}
	}
	return t
}

// verbs adds the RDMA devices of a PCI function and reports whether there is one.
func (d *Devices) verbs(f vfs.Tree, slot int, function string) (driven bool) {
	for _, dev := range d.List() {
		if dev.Slot == slot && dev.function() == function {
			f["infiniband/"+dev.Name] = d.verbsFiles(dev)
			driven = true
		}
	}
	return driven
}

const (
	vmware      = "0x15ad"
	vfNetDriver = "mlx5_core"
)

// Function returns the directory of a PCI function.
func Function(vendor, device, class, driver string) vfs.Tree {
	t := vfs.Tree{"vendor": line(vendor), "device": line(device), "class": line(class), "numa_node": line("-1")}
	if driver != "" {
		driven(t, driver)
	}
	return t
}

// driven adds the link to the driver of a PCI function.
func driven(t vfs.Tree, driver string) {
	t["driver"] = vfs.Entry{Link: "../../../../bus/pci/drivers/" + driver}
}

// verbsFiles returns the files of an RDMA device.
func (d *Devices) verbsFiles(dev Device) vfs.Entry {
	return vfs.Listed([]string{"sys_image_guid", "node_guid", "node_type", "node_desc", "fw_ver", "board_id", "hca_type", "hw_rev", "ports",
		"device"}, func(name string) (vfs.Entry, bool) {
		switch name {
		case "sys_image_guid":
			return line(dev.Image().SystemGUID), true
		case "node_guid":
			return line(dev.NodeGUID()), true
		case "node_type":
			return line("1: CA"), true
		case "node_desc":
			return line(""), true
		case "fw_ver":
			return line(dev.Image().Firmware), true
		case "board_id":
			return line(dev.Image().Board), true
		case "hca_type":
			return line(dev.Image().Type), true
		case "hw_rev":
			return line(strconv.Itoa(dev.Image().Hardware)), true
		case "ports":
			return vfs.Entry{Sub: func() vfs.Tree { return vfs.Tree{"1": d.portFiles(dev)} }}, true
		case "device":
			at := SlotPath(dev.Slot)
			return vfs.Entry{Link: "../../../" + at[strings.LastIndexByte(at, '/')+1:] + dev.function()}, true
		}
		return vfs.Entry{}, false
	})
}

// portFiles returns the files of a device's port.
func (d *Devices) portFiles(dev Device) vfs.Entry {
	return vfs.Listed([]string{"state", "phys_state", "rate", "link_layer", "lid", "sm_lid", "cap_mask", "gids", "gid_attrs", "counters",
		"hw_counters"}, func(name string) (vfs.Entry, bool) {
		switch name {
		case "state":
			state, word := dev.State()
			return line(fmt.Sprintf("%d: %s", state, word)), true
		case "phys_state":
			state, word := dev.Phys()
			return line(fmt.Sprintf("%d: %s", state, word)), true
		case "rate":
			gbps, lanes := dev.Rate()
			return line(fmt.Sprintf("%s Gb/sec (%s)", gbps, lanes)), true
		case "link_layer":
			return line("Ethernet"), true
		case "lid", "sm_lid":
			return line("0x0"), true
		case "cap_mask":
			return line("0x04010000"), true
		case "gids":
			return dev.slots(line("0000:0000:0000:0000:0000:0000:0000:0000"), GID.Full), true
		case "gid_attrs": // the kernel returns EINVAL for the attributes of an empty slot
			return vfs.Entry{Sub: func() vfs.Tree {
				return vfs.Tree{
					"types": dev.slots(vfs.Entry{Err: syscall.EINVAL}, GID.Type),
					"ndevs": dev.slots(vfs.Entry{Err: syscall.EINVAL}, func(GID) string { return dev.Netdev }),
				}
			}}, true
		case "counters":
			return vfs.Entry{Sub: func() vfs.Tree {
				c := d.count(dev.Name)
				return vfs.Tree{
					"port_xmit_data": line(strconv.FormatInt(c.SentBytes/4, 10)), "port_rcv_data": line(strconv.FormatInt(c.ReceivedBytes/4, 10)),
					"port_xmit_packets": line(strconv.FormatInt(c.SentPackets, 10)), "port_rcv_packets": line(strconv.FormatInt(c.ReceivedPackets, 10)),
				}
			}}, true
		case "hw_counters":
			return vfs.Entry{Sub: func() vfs.Tree { return hardwareCounters(d.count(dev.Name)) }}, dev.HCA != nil
		}
		return vfs.Entry{}, false
	})
}

// hardwareCounters returns the q counters and the congestion counters of mlx5 (drivers/infiniband/hw/mlx5/counters.c).
func hardwareCounters(c Counters) vfs.Tree {
	t := vfs.Tree{"lifespan": line("10")}
	for _, name := range []string{"out_of_sequence", "packet_seq_err", "local_ack_timeout_err", "implied_nak_seq_err", "rnr_nak_retry_err",
		"out_of_buffer",
		"duplicate_request", "np_cnp_sent", "np_ecn_marked_roce_packets", "rp_cnp_handled", "rp_cnp_ignored"} {
		t[name] = line(strconv.FormatInt(c.Events[name], 10))
	}
	return t
}

// slots returns a directory of the GID table with one file per slot.
func (d Device) slots(empty vfs.Entry, of func(GID) string) vfs.Entry {
	slot := func(i int) vfs.Entry {
		if i >= 0 && i < len(d.GIDs) {
			return line(of(d.GIDs[i]))
		}
		return empty
	}
	return vfs.Entry{
		Sub: func() vfs.Tree {
			t := make(vfs.Tree, gidSlots)
			for i := range gidSlots {
				t[strconv.Itoa(i)] = slot(i)
			}
			return t
		},
		One: func(name string) (vfs.Entry, bool) {
			i, err := strconv.Atoi(name)
			return slot(i), err == nil && i >= 0 && i < gidSlots && strconv.Itoa(i) == name
		},
	}
}

func line(s string) vfs.Entry { return vfs.Entry{Data: s + "\n"} }

// netFiles returns the files of an interface.
func (d *Devices) netFiles(l netif.Link) vfs.Entry {
	return vfs.Listed([]string{"address", "mtu", "operstate", "flags", "ifindex", "type", "device", "carrier", "speed", "ecn"},
		func(name string) (vfs.Entry, bool) {
			switch name {
			case "address":
				return line(l.MAC), true
			case "mtu":
				return line(strconv.Itoa(l.MTU)), true
			case "operstate":
				if l.Running() {
					return line("up"), true
				}
				return line("down"), true
			case "flags":
				if l.Up {
					return line("0x1003"), true
				}
				return line("0x1002"), true
			case "ifindex":
				return line(strconv.Itoa(l.Index)), true
			case "type":
				return line("1"), true
			case "device":
				return vfs.Entry{Link: "../../../" + l.PCI()}, true
			case "carrier", "speed":
				carrier, speed := "0", "-1"
				switch {
				case !l.Up: // Linux returns EINVAL for the carrier and the speed of an interface that is down
					return vfs.Entry{Err: syscall.EINVAL}, true
				case l.Connected && l.HCA != nil:
					carrier, speed = "1", strconv.Itoa(l.HCA.SpeedMbps)
				case l.Connected:
					carrier, speed = "1", "10000"
				}
				return line(map[string]string{"carrier": carrier, "speed": speed}[name]), true
			case "ecn":
				if l.HCA != nil && l.HCA.DCB != nil && d.ECN() {
					return vfs.Entry{Dir: true, Mode: 0o755, Sub: l.HCA.ECN}, true
				}
			}
			return vfs.Entry{}, false
		})
}

// Verbs returns the content of /sys/class/infiniband_verbs.
func (d *Devices) Verbs() vfs.Tree {
	t := vfs.Tree{"abi_version": {Data: "6\n"}}
	for i, dev := range d.List() {
		t[fmt.Sprintf("uverbs%d/ibdev", i)] = vfs.Entry{Data: dev.Name + "\n"}
		t[fmt.Sprintf("uverbs%d/abi_version", i)] = vfs.Entry{Data: "3\n"}
	}
	return t
}

// Nodes returns the content of /dev/infiniband: the device nodes of the loaded modules.
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
