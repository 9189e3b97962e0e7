package rdma

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/lab/linux/netif"
	"github.com/rdma-setup/rdma-setup/backends/lab/shell/sh"
	"github.com/rdma-setup/rdma-setup/backends/lab/shell/vfs"
)

// Verbs contains the data that the verbs library requires from the guest.
type Verbs struct {
	Devices  *Devices
	Provider func(driver string) bool // reports whether the library's provider for a kernel module is installed
	Uverbs   func() bool              // reports whether ib_uverbs is loaded
	Version  string                   // version of rdma-core, which determines the GID format of ibv_devinfo
}

// Programs returns the programs that show RDMA devices.
func (v *Verbs) Programs() map[string]sh.Program {
	return map[string]sh.Program{"ibv_devinfo": v.ibvDevinfo, "rdma": v.rdma}
}

// Open returns the devices that a program run as p can open through the library.
func (v *Verbs) Open(p *sh.Proc) []Device {
	if !v.Uverbs() {
		return nil
	}
	var list []Device
	for i, d := range v.Devices.List() {
		if v.Provider(d.Driver()) {
			list = append(list, d)
			continue
		}
		fmt.Fprintf(p.Stderr, "libibverbs: Warning: couldn't open config directory '/etc/libibverbs.d'.\n"+
			"libibverbs: Warning: no userspace device-specific driver found for /sys/class/infiniband_verbs/uverbs%d\n", i)
	}
	return list
}

func (v *Verbs) ibvDevinfo(_ context.Context, p *sh.Proc) int {
	o, err := p.Options("d: i: l v ib-dev: ib-port: list verbose")
	if err != nil {
		return p.Usage(1, err)
	}
	list := v.Open(p)
	if o.Has("l", "list") {
		p.Printf("%d HCA%s found:\n", len(list), map[bool]string{true: "s"}[len(list) != 1])
		for _, d := range list {
			p.Printf("\t%s\n", d.Name)
		}
		p.Printf("\n")
		return 0
	}
	if want := o.Value("d", "ib-dev"); want != "" {
		var one []Device
		for _, d := range list {
			if d.Name == want {
				one = append(one, d)
			}
		}
		if one == nil {
			fmt.Fprintf(p.Stderr, "IB device '%s' wasn't found\n", want)
			return 255
		}
		list = one
	}
	if len(list) == 0 {
		fmt.Fprintf(p.Stderr, "No IB devices found\n")
		return 255
	}
	for _, d := range list {
		v.devinfo(p, d, o.Has("v", "verbose"))
	}
	return 0
}

// mtuCode returns the enumeration value of an InfiniBand MTU.
func mtuCode(mtu int) int {
	code := 1
	for m := 256; m < mtu; m *= 2 {
		code++
	}
	return code
}

func (v *Verbs) devinfo(p *sh.Proc, d Device, verbose bool) {
	state, word := d.State()
	im := d.Image()
	p.Printf("hca_id:\t%s\n\ttransport:\t\t\tInfiniBand (0)\n\tfw_ver:\t\t\t\t%s\n\tnode_guid:\t\t\t%s\n\tsys_image_guid:\t\t\t%s\n"+
		"\tvendor_id:\t\t\t%#04x\n\tvendor_part_id:\t\t\t%d\n\thw_ver:\t\t\t\t%#x\n\tboard_id:\t\t\t%s\n\tphys_port_cnt:\t\t\t1\n",
		d.Name, im.Firmware, d.NodeGUID(), im.SystemGUID, im.Vendor, im.Part, im.Hardware, im.Board)
	if verbose {
		p.Printf("\tmax_mr_size:\t\t\t0xffffffffffffffff\n\tpage_size_cap:\t\t\t0x1000\n\tmax_qp:\t\t\t\t65536\n\tmax_qp_wr:\t\t\t4096\n" +
			"\tdevice_cap_flags:\t\t0x00009400\n\t\t\t\t\tPORT_ACTIVE_EVENT\n\t\t\t\t\tRC_RNR_NAK_GEN\n\tmax_sge:\t\t\t16\n\tmax_cq:\t\t\t\t65536\n" +
			"\tmax_cqe:\t\t\t262144\n\tmax_mr:\t\t\t\t131072\n\tmax_pd:\t\t\t\t131072\n\tmax_qp_rd_atom:\t\t\t16\n\tatomic_cap:\t\t\tATOMIC_NONE (0)\n" +
			"\tmax_pkeys:\t\t\t1\n\tlocal_ca_ack_delay:\t\t5\n\tnum_comp_vectors:\t\t1\n")
	}
	mtu := ActiveMTU(d.MTU)
	p.Printf("\t\tport:\t1\n\t\t\tstate:\t\t\tPORT_%s (%d)\n\t\t\tmax_mtu:\t\t4096 (5)\n\t\t\tactive_mtu:\t\t%d (%d)\n\t\t\tsm_lid:\t\t\t0\n"+
		"\t\t\tport_lid:\t\t0\n\t\t\tport_lmc:\t\t0x00\n\t\t\tlink_layer:\t\tEthernet\n", word, state, mtu, mtuCode(mtu))
	if verbose {
		phys, physWord := d.Phys()
		width, widthCode, speed, speedCode := lanes(d)
		p.Printf(
			"\t\t\tmax_msg_sz:\t\t0x40000000\n\t\t\tport_cap_flags:\t\t0x04010000\n\t\t\tport_cap_flags2:\t0x0000\n\t\t\tmax_vl_num:\t\t1 (1)\n"+
				"\t\t\tbad_pkey_cntr:\t\t0x0\n\t\t\tqkey_viol_cntr:\t\t0x0\n\t\t\tsm_sl:\t\t\t0\n\t\t\tpkey_tbl_len:\t\t1\n\t\t\tgid_tbl_len:\t\t%d\n"+
				"\t\t\tsubnet_timeout:\t\t0\n\t\t\tinit_type_reply:\t0\n\t\t\tactive_width:\t\t%s (%d)\n\t\t\tactive_speed:\t\t%s "+
				"(%d)\n\t\t\tphys_state:\t\t%s (%d)\n",
			gidSlots, width, widthCode, speed, speedCode, map[string]string{"LinkUp": "LINK_UP", "Disabled": "DISABLED"}[physWord], phys)
		for i, g := range d.GIDs {
			text := g.Full()
			if g.V2 {
				text = short(g.Addr)
			}
			p.Printf("\t\t\tGID[%3d]:\t\t%s, %s\n", i, text, strings.TrimPrefix(g.Type(), "IB/"))
		}
	}
	p.Printf("\n")
}

// short formats an address as inet_ntop does.
func short(a netip.Addr) string {
	if a.Is4In6() {
		return "::ffff:" + a.Unmap().String()
	}
	return a.String()
}

func lanes(d Device) (width string, widthCode int, speed string, speedCode int) {
	switch d.RateGbps {
	case 25:
		return "1X", 1, "25.0 Gbps", 32
	case 50:
		return "2X", 16, "25.0 Gbps", 32
	case 100:
		return "4X", 2, "25.0 Gbps", 32
	case 200:
		return "4X", 2, "50.0 Gbps", 64
	case 400:
		return "4X", 2, "100.0 Gbps", 128
	}
	return "1X", 1, "2.5 Gbps", 1
}

// rdma implements "rdma link" of iproute2.
func (v *Verbs) rdma(_ context.Context, p *sh.Proc) int {
	args := append(p.Args[1:], "", "", "")
	name, _, _ := strings.Cut(args[2], "/")
	switch {
	case args[0] != "link":
		fmt.Fprintf(p.Stderr, "Unknown argument \"%s\".\n", args[0])
		return 1
	case args[1] != "" && args[1] != "show" && !p.Root():
		fmt.Fprintf(p.Stderr, "error: Operation not permitted\n")
		return 1
	case args[1] != "" && args[1] != "show":
		fmt.Fprintf(p.Stderr, "error: Invalid argument\n")
		return 1
	}
	found := name == ""
	for _, d := range v.Devices.List() {
		if name != "" && name != d.Name {
			continue
		}
		found = true
		_, word := d.State()
		phys := map[string]string{"LinkUp": "LINK_UP", "Disabled": "DISABLED"}[second(d.Phys())]
		p.Printf("link %s/1 state %s physical_state %s netdev %s \n", d.Name, word, phys, d.Netdev)
	}
	if !found {
		fmt.Fprintf(p.Stderr, "Wrong device name\n")
		return 1
	}
	return 0
}

func second(_ int, s string) string { return s }

// HasProvider reports whether the library's provider for a kernel module is installed in fs.
func HasProvider(fs *vfs.FS, driver string) bool {
	_, err := fs.Stat(vfs.Root(), "/etc/libibverbs.d/"+strings.TrimSuffix(driver, "_ib")+".driver")
	return err == nil
}

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
		return Image{Type: "VMW_PVRDMA-1.0.1.0-k", Firmware: "3.0.000", Board: "1", SystemGUID: "0000:0000:0000:0000", Vendor: 0x15ad, Part: 2080,
			Hardware: 1}
	}
	part := int(d.HCA.Device)
	return Image{Type: fmt.Sprintf("MT%d", part), Firmware: d.HCA.Firmware, Board: d.HCA.PSID, SystemGUID: d.NodeGUID(), Vendor: 0x02c9,
		Part: part}
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
