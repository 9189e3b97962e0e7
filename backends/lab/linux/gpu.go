package linux

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/lab/linux/netif"
	"github.com/rdma-setup/rdma-setup/backends/lab/linux/nvidia"
	"github.com/rdma-setup/rdma-setup/backends/lab/linux/rdma"
	"github.com/rdma-setup/rdma-setup/backends/lab/shell/vfs"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

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
				if up := h.Above(c.Address); len(up) > 0 && strings.EqualFold(v.Setting("pciPassthru.allowP2P"), "TRUE") && strings.EqualFold(v.Setting("pciPassthru.RelaxACSforP2P"), "TRUE") {
					root = up[len(up)-1]
				}
				list = append(list, nvidia.GPU{Root: root, GPU: *c.GPU, Address: address, Slot: d.Slot, Class: c.Class, Device: c.Device, Sub: c.SubDevice,
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
			return rdma.Function("0x10de", fmt.Sprintf("%#04x", g.Device), fmt.Sprintf("%#06x", int(g.Class)<<8), cmp.Or(m.loaded("nvidia"), m.loaded("nouveau")))
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
