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

// SlotPath is where a slot's PCI functions are below /sys/devices: VMware's bridges 5 to 8 are 00:15 to 00:18, with a function for
// each device behind them (KB 311606).
func SlotPath(n int) string {
	return fmt.Sprintf("pci0000:00/0000:00:%02x.%d/0000:%02x:00.", 0x10+n/32, n%32, netif.Bus(n))
}

// Infiniband is /sys/class/infiniband: links to the devices.
func (d *Devices) Infiniband() vfs.Tree {
	t := vfs.Tree{}
	for _, dev := range d.List() {
		t[dev.Name] = vfs.Entry{Link: "../../devices/" + SlotPath(dev.Slot) + dev.function() + "/infiniband/" + dev.Name}
	}
	return t
}

// Net is /sys/class/net: links to the interfaces.
func (d *Devices) Net() vfs.Tree {
	t := vfs.Tree{"lo": {Link: "../../devices/virtual/net/lo"}}
	for _, l := range d.Stack.Links() {
		t[l.Name] = vfs.Entry{Link: "../../devices/" + SlotPath(l.Slot) + "0/net/" + l.Name}
	}
	return t
}

// PCI is /sys/bus/pci.
func (d *Devices) PCI() vfs.Tree {
	t := vfs.Tree{"drivers/vmxnet3": {Dir: true}, "drivers/" + Driver: {Dir: true}, "drivers/" + vfNetDriver: {Dir: true}, "devices": {Dir: true}}
	for _, l := range d.Stack.Links() {
		at := SlotPath(l.Slot)
		for _, function := range []string{"0", "1"}[:map[bool]int{true: 2, false: 1}[l.Paired]] {
			t["devices/"+at[strings.LastIndex(at, "/")+1:]+function] = vfs.Entry{Link: "../../../devices/" + at + function}
		}
	}
	return t
}

// Tree is /sys/devices: the PCI functions with the interfaces and the RDMA devices below them. The RDMA function has no
// netdev below it: gid_attrs/ndevs names it, and the interface is found below function 0. The content of an interface
// or a device is only created when it is read, because walking sysfs reads hundreds of files one by one.
func (d *Devices) Tree() vfs.Tree {
	t := vfs.Tree{"virtual/net/lo/address": {Data: "00:00:00:00:00:00\n"}, "virtual/net/lo/mtu": {Data: "65536\n"},
		"virtual/net/lo/operstate": {Data: "unknown\n"}, "virtual/net/lo/flags": {Data: "0x9\n"}}
	for _, l := range d.Stack.Links() {
		if l.HCA != nil {
			Function(t, SlotPath(l.Slot)+"0", "0x15b3", fmt.Sprintf("%#04x", l.HCA.Device), "0x020000", vfNetDriver)
		} else {
			Function(t, SlotPath(l.Slot)+"0", vmware, "0x07b0", "0x020000", "vmxnet3")
		}
		t[SlotPath(l.Slot)+"0/net/"+l.Name] = vfs.Entry{Sub: func() vfs.Tree { return d.netFiles(l) }}
		if l.Paired {
			Function(t, SlotPath(l.Slot)+"1", vmware, "0x0820", "0x020700", "")
		}
	}
	for _, dev := range d.List() {
		if dev.HCA == nil {
			Function(t, SlotPath(dev.Slot)+"1", vmware, "0x0820", "0x020700", Driver)
		}
		t[SlotPath(dev.Slot)+dev.function()+"/infiniband/"+dev.Name] = vfs.Entry{Sub: func() vfs.Tree { return d.verbsFiles(dev) }}
	}
	return t
}

const (
	vmware      = "0x15ad"
	vfNetDriver = "mlx5_core"
)

// Function fills in a PCI function.
func Function(t vfs.Tree, at, vendor, device, class, driver string) {
	t[at+"/vendor"] = vfs.Entry{Data: vendor + "\n"}
	t[at+"/device"] = vfs.Entry{Data: device + "\n"}
	t[at+"/class"] = vfs.Entry{Data: class + "\n"}
	t[at+"/numa_node"] = vfs.Entry{Data: "-1\n"}
	if driver != "" {
		t[at+"/driver"] = vfs.Entry{Link: "../../../../bus/pci/drivers/" + driver}
	}
}

// verbsFiles are the files of an RDMA device.
func (d *Devices) verbsFiles(dev Device) vfs.Tree {
	t := vfs.Tree{
		"sys_image_guid": line(dev.Image().SystemGUID),
		"node_guid":      line(dev.NodeGUID()),
		"node_type":      line("1: CA"),
		"node_desc":      line(""),
		"fw_ver":         line(dev.Image().Firmware),
		"board_id":       line(dev.Image().Board),
		"hca_type":       line(dev.Image().Type),
		"hw_rev":         line(strconv.Itoa(dev.Image().Hardware)),
		"ports/1":        {Sub: func() vfs.Tree { return d.portFiles(dev) }},
	}
	at := SlotPath(dev.Slot)
	t["device"] = vfs.Entry{Link: "../../../" + at[strings.LastIndexByte(at, '/')+1:] + dev.function()}
	return t
}

// portFiles are the files of a device's port.
func (d *Devices) portFiles(dev Device) vfs.Tree {
	state, word := dev.State()
	phys, physWord := dev.Phys()
	gbps, lanes := dev.Rate()
	t := vfs.Tree{
		"state":      line(fmt.Sprintf("%d: %s", state, word)),
		"phys_state": line(fmt.Sprintf("%d: %s", phys, physWord)),
		"rate":       line(fmt.Sprintf("%s Gb/sec (%s)", gbps, lanes)),
		"link_layer": line("Ethernet"),
		"lid":        line("0x0"),
		"sm_lid":     line("0x0"),
		"cap_mask":   line("0x04010000"),
		"gids": {Sub: func() vfs.Tree {
			return dev.slots(line("0000:0000:0000:0000:0000:0000:0000:0000"), GID.Full)
		}},
		// The kernel answers EINVAL for the attributes of an empty slot.
		"gid_attrs/types": {Sub: func() vfs.Tree { return dev.slots(vfs.Entry{Err: syscall.EINVAL}, GID.Type) }},
		"gid_attrs/ndevs": {Sub: func() vfs.Tree {
			return dev.slots(vfs.Entry{Err: syscall.EINVAL}, func(GID) string { return dev.Netdev })
		}},
		"counters": {Sub: func() vfs.Tree {
			c := d.count(dev.Name)
			return vfs.Tree{
				"port_xmit_data": line(strconv.FormatInt(c.SentBytes/4, 10)), "port_rcv_data": line(strconv.FormatInt(c.ReceivedBytes/4, 10)),
				"port_xmit_packets": line(strconv.FormatInt(c.SentPackets, 10)), "port_rcv_packets": line(strconv.FormatInt(c.ReceivedPackets, 10)),
			}
		}},
	}
	if dev.HCA != nil {
		t["hw_counters"] = vfs.Entry{Sub: func() vfs.Tree { return hardwareCounters(d.count(dev.Name)) }}
	}
	return t
}

// hardwareCounters are the q counters and the congestion counters of mlx5 (drivers/infiniband/hw/mlx5/counters.c).
func hardwareCounters(c Counters) vfs.Tree {
	t := vfs.Tree{"lifespan": line("10")}
	for _, name := range []string{"out_of_sequence", "packet_seq_err", "local_ack_timeout_err", "implied_nak_seq_err", "rnr_nak_retry_err", "out_of_buffer",
		"duplicate_request", "np_cnp_sent", "np_ecn_marked_roce_packets", "rp_cnp_handled", "rp_cnp_ignored"} {
		t[name] = line(strconv.FormatInt(c.Events[name], 10))
	}
	return t
}

// slots are the files of the GID table, one a slot.
func (d Device) slots(empty vfs.Entry, of func(GID) string) vfs.Tree {
	t := make(vfs.Tree, gidSlots)
	for i := range gidSlots {
		e := empty
		if i < len(d.GIDs) {
			e = line(of(d.GIDs[i]))
		}
		t[strconv.Itoa(i)] = e
	}
	return t
}

func line(s string) vfs.Entry { return vfs.Entry{Data: s + "\n"} }

// netFiles are the files of an interface.
func (d *Devices) netFiles(l netif.Link) vfs.Tree {
	state, flags := "down", 0x1002
	if l.Up {
		flags |= 1
	}
	if l.Running() {
		state = "up"
	}
	t := vfs.Tree{
		"address": line(l.MAC), "mtu": line(strconv.Itoa(l.MTU)), "operstate": line(state), "flags": line(fmt.Sprintf("%#x", flags)),
		"ifindex": line(strconv.Itoa(l.Index)), "type": line("1"), "device": {Link: "../../../" + l.PCI()},
		// Linux answers EINVAL for the carrier and the speed of an interface that is down.
		"carrier": {Err: syscall.EINVAL}, "speed": {Err: syscall.EINVAL},
	}
	switch {
	case l.Up && l.Connected && l.HCA != nil:
		t["carrier"], t["speed"] = line("1"), line(strconv.Itoa(l.HCA.SpeedMbps))
	case l.Up && l.Connected:
		t["carrier"], t["speed"] = line("1"), line("10000")
	case l.Up:
		t["carrier"], t["speed"] = line("0"), line("-1")
	}
	if l.HCA != nil && l.HCA.DCB != nil && d.ECN() {
		t["ecn"] = vfs.Entry{Dir: true, Mode: 0o755, Sub: l.HCA.ECN}
	}
	return t
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
