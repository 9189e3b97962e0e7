package linux

import (
	"github.com/rdma-setup/rdma-setup/backends/lab/linux/netif"
	"github.com/rdma-setup/rdma-setup/backends/lab/linux/nvidia"
	"github.com/rdma-setup/rdma-setup/backends/lab/linux/perftest"
	"github.com/rdma-setup/rdma-setup/backends/lab/linux/pkgs"
	"github.com/rdma-setup/rdma-setup/backends/lab/shell/sh"
	"github.com/rdma-setup/rdma-setup/backends/lab/shell/vfs"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

// Presets of guests for GPUs: "gpu" is a template with a manually built perftest with CUDA, "gpudirect" is the complete setup,
// "docker" has only Docker.
const (
	presetTemplate = "gpu"
	presetGPU      = "gpudirect"
	presetVGPU     = "vgpu" // gpudirect with the vGPU guest driver and a license token
	presetDocker   = "docker"
	presetSource   = "gpu-source" // no perftest with CUDA, but a share with everything required to build it and NVIDIA's driver
)

// template installs a perftest with CUDA and a CUDA sample that do not belong to a package.
func (m *Machine) template() error {
	if m.hasDefect(world.NoPerftest) {
		return nil
	}
	for _, name := range []string{"ib_send_bw", "ib_write_bw", "ib_read_bw", "ib_send_lat", "ib_write_lat", "ib_read_lat"} {
		if err := m.sys.Install("cuda-"+name, "/opt/perftest/bin/"+name); err != nil {
			return err
		}
	}
	return m.sys.Install("p2pBandwidthLatencyTest", "/usr/local/cuda/samples/bin/x86_64/linux/release/p2pBandwidthLatencyTest")
}

// gpuPreset sets up a guest for GPUDirect: packages, NVIDIA's driver, peer memory and the address of the card.
func (m *Machine) gpuPreset() error {
	if err := m.template(); err != nil {
		return err
	}
	if !m.hasDefect(world.NoGPUDriver) {
		driver := []string{"nvidia-driver-570-server-open"}
		if !m.distro.deb {
			driver = []string{"kmod-nvidia-open-dkms", "nvidia-driver-cuda"}
		}
		switch {
		case m.cfg.Preset == presetVGPU:
			driver = []string{pkgs.GuestDriver}
		case m.hasDefect(world.ClosedDriver):
			driver = []string{"nvidia-driver-570-server"}
		}
		if err := m.pkgs.Install(m.pkgs.Plan(driver)); err != nil {
			return err
		}
	}
	if err := m.pkgs.Install(m.pkgs.Plan(m.presetPackages())); err != nil {
		return err
	}
	if m.hasDefect(world.OFEDLater) {
		if err := m.pkgs.Install(m.pkgs.Plan([]string{"mlnx-ofed-all"})); err != nil {
			return err
		}
	}
	b := &builder{fs: m.sys.FS}
	b.file(0o644, "/etc/security/limits.d/rdma-setup.conf",
		"* soft memlock unlimited\n* hard memlock unlimited\nroot soft memlock unlimited\nroot hard memlock unlimited\n")
	if !m.hasDefect(world.NoPersistence) {
		m.enable(b, "nvidia-persistence-mode", "NVIDIA persistence mode", "/usr/bin/nvidia-smi -pm 1")
	}
	load := "ib_umad\nrdma_cm\nrdma_ucm\n"
	if m.hasDefect(world.ClosedDriver) && !m.hasDefect(world.NoPeermem) { // the open modules support DMA-BUF
		load += nvidia.Peermem + "\n"
	}
	b.file(0o644, "/etc/modules-load.d/rdma-setup.conf", load)
	mac, slot := m.site.wholeMAC(m.cfg.VM)
	if mac != "" {
		m.presetAddress(b, world.Adapter{MAC: mac}, netif.Port{Slot: slot}.Name())
	}
	return b.err
}

// wholeMAC returns the MAC of the first port of a card that is passed through to a VM. The VM may be off.
func (s *Site) wholeMAC(vm string) (mac string, slot int) {
	s.World.View(func(st *world.State) {
		v := st.VM(vm)
		if v == nil || st.Host(v.Host) == nil {
			return
		}
		for _, d := range v.Devices {
			if p := st.Host(v.Host).Whole(d.PCI + d.Assigned); p != nil && mac == "" {
				mac, slot = p.MAC, d.Slot
			}
		}
	})
	return mac, slot
}

// Files on the share of a guest that builds software.
const (
	shareDir       = "/mnt/share"
	driverFile     = shareDir + "/NVIDIA-Linux-x86_64-570.133.20.run"
	perftestSource = shareDir + "/perftest-24.10.0-0.65.tar.gz"
)

// oldPerftest installs v4.4-0.11 in the directory of VMware's guide, which has precedence over the distribution's.
func (m *Machine) oldPerftest() error {
	for _, name := range []string{"ib_send_bw", "ib_write_bw", "ib_read_bw", "ib_send_lat", "ib_write_lat", "ib_read_lat"} {
		if err := m.sys.Install(perftest.OldPrefix+name, "/usr/local/bin/"+name); err != nil {
			return err
		}
	}
	return nil
}

// sourcePreset installs the packages required to build the driver and perftest, and mounts a share with the source files. A
// real .run file unpacks itself and starts the installer that it contains; here the installer is a separate file.
func (m *Machine) sourcePreset() error {
	names := []string{"gcc", "make", "dkms", "libibverbs-dev", "librdmacm-dev", "libibumad-dev", "libpci-dev",
		"linux-headers-" + m.distro.kernel}
	if !m.distro.deb {
		names = []string{"gcc", "make", "dkms", "rdma-core-devel", "pciutils-devel", "kernel-devel-" + m.distro.kernel}
	}
	if err := m.pkgs.Install(m.pkgs.Plan(names)); err != nil {
		return err
	}
	b := &builder{fs: m.sys.FS}
	b.dir(0o755, shareDir, shareDir+"/.nvidia", "/usr/local/cuda/include")
	b.file(0o644, "/usr/local/cuda/include/cuda.h", "#define CUDA_VERSION 12080\n")
	b.file(0o644, perftestSource, string(perftest.Archive("24.10.0-0.65", sh.Binary)))
	b.file(0o644, driverFile, "#!/bin/sh\n# NVIDIA Accelerated Graphics Driver for Linux-x86_64 "+pkgs.DriverVersion+"\nexec "+shareDir+
		"/.nvidia/nvidia-installer "+pkgs.DriverVersion+" \"$@\"\n")
	b.file(0o755, shareDir+"/.nvidia/nvidia-installer", string(sh.Binary("nvidia-installer")))
	return b.err
}

// toolchain returns the tools required to build modules.
func (m *Machine) toolchain() nvidia.Toolchain {
	return nvidia.Toolchain{Tool: m.pkgs.Installed, Headers: func() bool {
		_, err := m.sys.FS.Stat(vfs.Root(), "/lib/modules/"+m.distro.kernel+"/build/Makefile")
		return err == nil
	}}
}

// source returns the properties required to build perftest.
func (m *Machine) source() perftest.Source {
	return perftest.Source{Installed: m.pkgs.Installed, Debian: m.distro.deb, Driver: func() bool {
		version, _ := m.nvidia.Version()
		return version != ""
	}}
}
