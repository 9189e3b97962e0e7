package linux

import (
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"syscall"

	"github.com/rdma-setup/rdma-setup/backends/lab/linux/rdma"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

// preset configures a guest as if it had been set up manually according to the guides: packages, modules, the address by MAC,
// locked memory and, on Ubuntu, the unit that reloads the driver after each boot. Steps that match a defect are omitted.
func (m *Machine) preset() error {
	if m.hasDefect(world.OldPerftest) {
		if err := m.oldPerftest(); err != nil {
			return err
		}
	}
	switch m.cfg.Preset {
	case presetTemplate:
		return m.template()
	case presetGPU:
		return m.gpuPreset()
	case presetVGPU:
		if m.hasDefect(world.NoLicense) {
			return m.gpuPreset()
		}
		b := &builder{fs: m.sys.FS}
		b.dir(0o755, "/etc/nvidia", "/etc/nvidia/ClientConfigToken")
		b.file(0o744, tokenFile, licenseToken())
		return errors.Join(m.gpuPreset(), b.err)
	case presetDocker:
		if err := m.pkgs.Install(m.pkgs.Plan([]string{"docker.io"})); err != nil {
			return err
		}
		return m.engine.Pull(m.sys.Now, "nvcr.io/nvidia/tensorrt:20.12-py3")
	case presetSource:
		return m.sourcePreset()
	case "":
		return nil
	}
	if err := m.pkgs.Install(m.pkgs.Plan(m.presetPackages())); err != nil {
		return err
	}
	b := &builder{fs: m.sys.FS}
	if !m.hasDefect(world.NoMemlock) {
		b.file(0o644, "/etc/security/limits.d/rdma-setup.conf",
			"* soft memlock unlimited\n* hard memlock unlimited\nroot soft memlock unlimited\nroot hard memlock unlimited\n")
	}
	if !m.hasDefect(world.NoModules) {
		b.file(0o644, "/etc/modules-load.d/rdma-setup.conf", "ib_umad\nrdma_cm\nrdma_ucm\n")
	}
	if m.hasDefect(world.MOFED) {
		b.file(0o755, "/usr/bin/ofed_info", "#!/bin/sh\necho MLNX_OFED_LINUX-5.8-4.1.5.0:\n")
	}
	if m.distro.deb && !m.hasDefect(world.NoReload) {
		m.enable(b, "rdma-setup-pvrdma", "Load vmw_pvrdma again once the network is up", "/sbin/modprobe -r vmw_pvrdma",
			"/sbin/modprobe vmw_pvrdma")
	}
	adapters := m.Adapters()
	if i := slices.IndexFunc(adapters, func(a world.Adapter) bool { return a.Type == world.PVRDMA }); i >= 0 {
		m.presetAddress(b, adapters[i], ports(adapters[i : i+1])[0].Name())
	}
	return b.err
}

func (m *Machine) hasDefect(f world.Defect) bool { return slices.Contains(m.cfg.Defects, f) }

func (m *Machine) presetPackages() []string {
	names := []string{"rdma-core", "libibverbs", "libibverbs-utils", "infiniband-diags", "perftest", "automake", "autoconf", "rdma-core-devel",
		"pciutils-devel", "librdmacm-utils"}
	if m.distro.deb {
		names = []string{"rdma-core", "ibverbs-providers", "infiniband-diags", "ibverbs-utils", "rdmacm-utils", "perftest"}
		if m.distro.version == "20.04" {
			names = append(names, "ibutils")
		}
	}
	without := map[world.Defect]string{world.NoPerftest: "perftest", world.NoProvider: "rdma-core", world.NoDiags: "infiniband-diags"}
	return slices.DeleteFunc(names, func(name string) bool {
		return slices.ContainsFunc(m.cfg.Defects, func(f world.Defect) bool { return without[f] == name })
	})
}

// presetAddress configures the interface of an adapter.
func (m *Machine) presetAddress(b *builder, a world.Adapter, name string) {
	address, mtu := m.cfg.RDMAAddr, 9000
	if m.hasDefect(world.WrongAddress) {
		address = fmt.Sprintf("192.168.5.%d/24", 11+m.cfg.Index%200)
	}
	if m.hasDefect(world.LowMTU) {
		mtu = 1500
	}
	if m.hasDefect(world.AddressLost) {
		m.enable(b, "bring-up-rdma", "Address of the RDMA network", fmt.Sprintf("/sbin/ip link set dev %s mtu %d up", name, mtu),
			fmt.Sprintf("/sbin/ip addr add %s dev %s", address, name))
		return
	}
	if !m.distro.deb {
		b.file(0o600, "/etc/NetworkManager/system-connections/"+name+".nmconnection", fmt.Sprintf(
			"[connection]\nid=%s\nuuid=%s\ntype=ethernet\n\n[ethernet]\nmac-address=%s\nmtu=%d\n\n[ipv4]\naddress1=%s\nmethod=manual\n", name,
			uuid4(), a.MAC, mtu, address))
		return
	}
	addresses := "[" + address + "]"
	if m.hasDefect(world.NoAddress) {
		addresses = "[]"
	}
	b.file(0o600, "/etc/netplan/60-rdma-setup.yaml", fmt.Sprintf(
		"network:\n  version: 2\n  ethernets:\n    %s:\n      match:\n        macaddress: %s\n      addresses: %s\n      mtu: %d\n      "+
			"dhcp4: false\n", name, a.MAC, addresses, mtu))
	if first := ports(m.Adapters())[0].Name(); m.hasDefect(world.TwoInSubnet) {
		b.file(0o600, "/etc/netplan/70-storage.yaml", "network:\n  version: 2\n  ethernets:\n    "+first+
			":\n      addresses: [192.168.50.240/24]\n")
	}
}

// tokenFile is the path of the client configuration token for NVIDIA's driver.
const tokenFile = "/etc/nvidia/ClientConfigToken/client_configuration_token_11-23-2026-10-00-00.tok"

// enable creates and enables a unit that runs commands once per boot, after the network is up.
func (m *Machine) enable(b *builder, name, text string, commands ...string) {
	unit := "/etc/systemd/system/" + name + ".service"
	body := "[Unit]\nDescription=" + text +
		"\nAfter=network-online.target " +
		"systemd-modules-load.service\nWants=network-online.target\n\n[Service]\nType=oneshot\nRemainAfterExit=yes\n"
	for _, c := range commands {
		body += "ExecStart=" + c + "\n"
	}
	b.file(0o644, unit, body+"\n[Install]\nWantedBy=multi-user.target\n")
	b.link(unit, "/etc/systemd/system/multi-user.target.wants/"+name+".service")
}

// applyDefects applies the defects that take effect at the end of a boot.
func (m *Machine) applyDefects() {
	if m.hasDefect(world.PortDown) {
		m.rdma.Detach(rdma.Driver)
		m.rdma.Attach(rdma.Driver, true)
	}
	if m.hasDefect(world.Trace) {
		m.kernel.Logf("WARNING: CPU: 1 PID: 412 at drivers/infiniband/core/cq.c:322 ib_free_cq+0x109/0x150 [ib_core]")
		m.kernel.Logf("Call Trace:")
	}
}

// licenseServer is the license server of vGPUs; it listens on port 443.
const licenseServer = "dls.lab.example"

// licenseToken returns a client configuration token: a JSON Web Token that names the license server. NVIDIA does not document its
// form; it is that of three public implementations of the license server.
func licenseToken() string {
	payload := `{"iss":"NLS Service Instance","aud":"NLS Licensed Client","service_instance_configuration":{"svc_port_set_list":[{"idx":0,"d_name":"DLS",` +
		`"svc_port_map":[{"service":"auth","port":443},{"service":"lease","port":443}]}],"node_url_list":[{"idx":0,"url":"` + licenseServer +
		`","url_qr":"` + licenseServer + `","svc_port_set_idx":0}]}}`
	return "eyJhbGciOiJSUzI1NiJ9." + base64.RawURLEncoding.EncodeToString([]byte(payload)) + ".bGFi\n"
}

// dial connects to a TCP port from the guest. Only the license server is modelled.
func (m *Machine) dial(host, port string) error {
	if host != licenseServer || port != "443" || m.hasDefect(world.NoLicenseServer) {
		return syscall.ECONNREFUSED
	}
	return nil
}
