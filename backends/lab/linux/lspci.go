package linux

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/lab/linux/netif"
	"github.com/rdma-setup/rdma-setup/backends/lab/linux/nvidia"
	"github.com/rdma-setup/rdma-setup/backends/lab/linux/rdma"
	"github.com/rdma-setup/rdma-setup/backends/lab/shell/sh"
	"github.com/rdma-setup/rdma-setup/backends/lab/shell/vfs"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

// A function is a PCI function as lspci shows it.
type function struct{ at, class, classID, text, id, revision string }

// functions returns the functions on the VM's PCI buses.
func (m *Machine) functions() []function {
	list := []function{{at: "00:00.0", class: "Host bridge", classID: "0600",
		text: "Intel Corporation 440BX/ZX/DX - 82443BX/ZX/DX Host bridge", id: "8086:7190"},
		{at: "00:0f.0", class: "VGA compatible controller", classID: "0300", text: "VMware SVGA II Adapter", id: "15ad:0405"},
		{at: "03:00.0", class: "Serial Attached SCSI controller", classID: "0107", text: "VMware PVSCSI SCSI Controller", id: "15ad:07c0"}}
	for _, l := range m.net.Stack.Links() {
		bus := fmt.Sprintf("%02x:00.", netif.Bus(l.Slot))
		if l.HCA != nil {
			list = append(list, function{at: bus + "0", class: "Ethernet controller", classID: "0200", text: "Mellanox Technologies " + l.HCA.Name,
				id: fmt.Sprintf("15b3:%04x", l.HCA.Device)})
			continue
		}
		list = append(list, function{at: bus + "0", class: "Ethernet controller", classID: "0200", text: "VMware VMXNET3 Ethernet Controller",
			id: "15ad:07b0"})
		if l.Paired {
			list = append(list, function{at: bus + "1", class: "Infiniband controller", classID: "0207", text: "VMware Paravirtual RDMA controller",
				id: "15ad:0820"})
		}
	}
	for _, g := range m.site.gpus(m.cfg.VM) {
		class := map[uint16]string{0x0300: "VGA compatible controller", 0x0302: "3D controller"}[g.Class]
		list = append(list, function{at: strings.TrimPrefix(g.Address, "0000:"), class: class, classID: fmt.Sprintf("%04x", g.Class),
			text: "NVIDIA Corporation " + g.Text, id: fmt.Sprintf("10de:%04x", g.Device), revision: "a1"})
	}
	return list
}

func (m *Machine) lspci(_ context.Context, p *sh.Proc) int {
	o, err := p.Options("n D")
	if err != nil {
		return p.Usage(1, err)
	}
	numeric := 0
	for _, a := range p.Args[1:] {
		numeric += strings.Count(a, "n")
	}
	for _, d := range m.functions() {
		d.head(p, o.Has("D"), numeric)
	}
	return 0
}

func (d function) head(p *sh.Proc, domain bool, numeric int) {
	at, revision := d.at, "01"
	if domain {
		at = "0000:" + at
	}
	if d.revision != "" {
		revision = d.revision
	}
	switch {
	case numeric == 1:
		p.Printf("%s %s: %s", at, d.classID, d.id)
	case numeric > 1:
		p.Printf("%s %s [%s]: %s [%s]", at, d.class, d.classID, d.text, d.id)
	default:
		p.Printf("%s %s: %s", at, d.class, d.text)
	}
	p.Printf(" (rev %s)\n", revision)
}

// loaded returns the name of a module if it is loaded, otherwise "".
func (m *Machine) loaded(module string) string {
	if m.kernel.Loaded(module) {
		return module
	}
	return ""
}

// gpus returns the GPUs and vGPUs of a VM that is on, in the order of their guest addresses.
func (s *Site) gpus(vm string) []nvidia.GPU {
	var list []nvidia.GPU
	s.World.View(func(st *world.State) {
		v := st.VM(vm)
		if v == nil || !v.On {
			return
		}
		h := st.Host(v.Host)
		for _, d := range v.Devices {
			address := fmt.Sprintf("0000:%02x:00.0", netif.Bus(d.Slot))
			switch c := h.PCIDevice(d.PCI + d.Assigned); {
			case d.Profile != "":
				list = append(list, share(h, d, address))
			case c != nil && c.GPU != nil:
				root := ""
				if up := h.Above(c.Address); len(up) > 0 && strings.EqualFold(v.Setting("pciPassthru.allowP2P"), "TRUE") &&
					strings.EqualFold(v.Setting("pciPassthru.RelaxACSforP2P"), "TRUE") {
					root = up[len(up)-1]
				}
				list = append(list, nvidia.GPU{Root: root, GPU: *c.GPU, Address: address, Slot: d.Slot, Class: c.Class, Device: c.Device,
					Sub:  c.SubDevice,
					Text: c.DeviceName, BARs: c.BARs, NUMA: c.NUMA, Host: c.Address})
			}
		}
	})
	return list
}

// share returns a vGPU with NVIDIA's name for it and the memory size of its profile.
func share(h *world.Host, d *world.Passthrough, address string) nvidia.GPU {
	name := strings.ToUpper(strings.TrimPrefix(d.Profile, "grid_"))
	g := nvidia.GPU{Address: address, Slot: d.Slot, Class: 0x0302, Profile: d.Profile}
	if strings.HasSuffix(d.Group.Name, "%NVLink") {
		g.Group = fmt.Sprint(d.Group.Key)
	}
	if c := h.SharedGPU(d); c != nil {
		g.GPU, g.Device, g.Sub, g.Text, g.Host, g.NUMA = *c.GPU, c.Device, c.SubDevice, c.DeviceName, c.Address, c.NUMA
	}
	one := world.VM{Devices: []*world.Passthrough{d}}
	g.Name, g.MemoryMiB = "GRID "+name, one.ShareMB()
	g.BARs = d.BARs()
	return g
}

// sysPCI returns the content of /sys/bus/pci.
func (m *Machine) sysPCI() vfs.Tree {
	t := m.rdma.PCI()
	for _, g := range m.site.gpus(m.cfg.VM) {
		t["devices/"+g.Address] = vfs.Entry{Link: "../../../devices/" + rdma.SlotPath(g.Slot) + "0"}
	}
	return t
}

// sysDevices returns the content of /sys/devices.
func (m *Machine) sysDevices() vfs.Tree {
	t := m.rdma.Tree()
	for _, g := range m.site.gpus(m.cfg.VM) {
		t[rdma.SlotPath(g.Slot)+"0"] = vfs.Entry{Sub: func() vfs.Tree {
			return rdma.Function("0x10de", fmt.Sprintf("%#04x", g.Device), fmt.Sprintf("%#06x", int(g.Class)<<8),
				cmp.Or(m.loaded("nvidia"), m.loaded("nouveau")))
		}}
	}
	return t
}

// sysFirmware returns the content of /sys/firmware: it contains efi if the guest was booted by EFI.
func (m *Machine) sysFirmware() vfs.Tree {
	t := vfs.Tree{"acpi": {Dir: true}}
	m.site.World.View(func(s *world.State) {
		if v := s.VM(m.cfg.VM); v != nil && v.Firmware == "efi" {
			t["efi/fw_platform_size"] = vfs.Entry{Data: "64\n"}
			t["efi/efivars"] = vfs.Entry{Dir: true}
		}
	})
	return t
}
