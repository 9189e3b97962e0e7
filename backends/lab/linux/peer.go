package linux

import (
	"context"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/lab/fabric"
	"github.com/rdma-setup/rdma-setup/backends/lab/linux/nvidia"
	"github.com/rdma-setup/rdma-setup/backends/lab/linux/perftest"
	"github.com/rdma-setup/rdma-setup/backends/lab/linux/pkgs"
	"github.com/rdma-setup/rdma-setup/backends/lab/shell/sh"
	"github.com/rdma-setup/rdma-setup/backends/lab/shell/vfs"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

// peerAPI returns the origin of ib_core's peer memory interface: MLNX_OFED, or the kernel of Ubuntu.
func (m *Machine) peerAPI() nvidia.API {
	switch {
	case m.pkgs.Installed(pkgs.OFED), m.pkgs.Installed("ofed-scripts"):
		return nvidia.OFED
	case m.distro.id == "ubuntu":
		return nvidia.Inbox
	}
	return nvidia.NoAPI
}

// packageChanged handles the installation or removal of a package that contains modules.
func (m *Machine) packageChanged(p pkgs.Package, installed bool) {
	version, open, driver := pkgs.IsDriver(p.Name)
	switch {
	case driver && installed:
		m.nvidia.Install(version, open, p.Name == pkgs.GuestDriver)
	case driver:
		m.nvidia.Remove()
	case p.Name == pkgs.DOCA && installed:
		m.mofed.FromDOCA()
	case p.Name == pkgs.LegacyModule:
		m.nvidia.InstallLegacy(installed)
	}
	if m.distro.deb && driver {
		// The packages of Ubuntu update the initial RAM disk ("Processing triggers for initramfs-tools"), so that it contains
		// the driver's file in /etc/modprobe.d only while the driver is installed.
		_ = m.sys.FS.WriteFile(vfs.Root(), "/boot/initrd.img-"+m.distro.kernel, m.ramdisk(), 0o644) // a full /boot keeps the old image
	}
}

// kallsyms returns the relevant lines of /proc/kallsyms. Addresses are visible to root only.
func (m *Machine) kallsyms() string {
	text := "ffffffff81000000 T _stext\n"
	if m.kernel.Loaded("ib_core") {
		names := []string{"ib_register_device"}
		if m.peerAPI() != nvidia.NoAPI {
			names = append(names, "ib_register_peer_memory_client", "ib_unregister_peer_memory_client")
		}
		module := "\t[ib_core]"
		if m.kernel.BuiltIn("ib_core") {
			module = ""
		}
		for _, name := range names {
			text += "ffffffffc0a1b2c0 T " + name + module + "\n"
		}
	}
	return text
}

func (m *Machine) ofedInfo(_ context.Context, p *sh.Proc) int {
	if len(p.Args) > 1 && p.Args[1] == "-s" {
		p.Printf("%s:\n", pkgs.OFEDVersion)
		return 0
	}
	p.Printf("%s (OFED-24.10-1.1.4):\n\n", pkgs.OFEDVersion)
	return 0
}

// smiNICs returns the RDMA devices for nvidia-smi. In a VM each device is below its own bridge. A device can be on another NUMA
// node only if the VM is larger than one NUMA node.
func (m *Machine) smiNICs() []nvidia.NIC {
	var list []nvidia.NIC
	for _, d := range m.rdma.List() {
		list = append(list, nvidia.NIC{Name: d.Name, Remote: func(g nvidia.GPU) string {
			text := "PHB"
			m.site.World.View(func(s *world.State) {
				v := s.VM(m.cfg.VM)
				if h := s.Host(v.Host); h != nil && v.CPUs > h.Cores/h.Sockets && fabric.PeerOf(s, m.cfg.VM, g.Host, d.MAC).Distance == world.Sockets {
					text = "SYS"
				}
			})
			return text
		}})
	}
	return list
}

// cuda returns the properties of the GPUs that perftest requires.
func (m *Machine) cuda() perftest.CUDA {
	return perftest.CUDA{
		Ready: m.nvidia.Ready,
		GPUs: func() []perftest.GPU {
			var list []perftest.GPU
			for _, g := range m.site.gpus(m.cfg.VM) {
				list = append(list, perftest.GPU{Name: g.Name, Bus: strings.ToUpper(strings.TrimSuffix(strings.TrimPrefix(g.Address, "0000:"), ".0")),
					Host: g.Host})
			}
			return list
		},
		PeerMemory: m.nvidia.PeerMemory,
		Peer: func(gpu, mac string) (p fabric.Peer) {
			m.site.World.View(func(s *world.State) { p = fabric.PeerOf(s, m.cfg.VM, gpu, mac) })
			return p
		},
	}
}
