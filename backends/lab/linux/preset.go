package linux

import (
	"fmt"
	"slices"

	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

// preset sets up a guest as somebody did before us, by the guides: packages, modules, the address by MAC, locked
// memory, and on Ubuntu the unit that loads the driver again after each boot.
func (m *Machine) preset() error {
	if m.cfg.Preset != "pvrdma" {
		return nil
	}
	adapters := m.Adapters()
	i := slices.IndexFunc(adapters, func(a world.Adapter) bool { return a.Type == world.PVRDMA })
	if i < 0 {
		return nil
	}
	names := []string{"rdma-core", "libibverbs", "libibverbs-utils", "infiniband-diags", "perftest", "automake", "autoconf", "rdma-core-devel", "pciutils-devel", "librdmacm-utils"}
	if m.distro.deb {
		names = []string{"rdma-core", "ibverbs-providers", "infiniband-diags", "ibverbs-utils", "rdmacm-utils", "perftest"}
		if m.distro.version == "20.04" {
			names = append(names, "ibutils")
		}
	}
	if err := m.pkgs.Install(m.pkgs.Plan(names)); err != nil {
		return err
	}
	a := adapters[i]
	b := &builder{fs: m.sys.FS}
	b.file(0o644, "/etc/security/limits.d/rdma-setup.conf", "* soft memlock unlimited\n* hard memlock unlimited\nroot soft memlock unlimited\nroot hard memlock unlimited\n")
	b.file(0o644, "/etc/modules-load.d/rdma-setup.conf", "ib_umad\nrdma_cm\nrdma_ucm\n")
	name := ports(adapters[i : i+1])[0].Name()
	if !m.distro.deb {
		b.file(0o600, "/etc/NetworkManager/system-connections/"+name+".nmconnection", fmt.Sprintf(
			"[connection]\nid=%s\nuuid=%s\ntype=ethernet\n\n[ethernet]\nmac-address=%s\nmtu=9000\n\n[ipv4]\naddress1=%s\nmethod=manual\n", name, uuid4(), a.MAC, m.cfg.RDMAAddr))
		return b.err
	}
	b.file(0o600, "/etc/netplan/60-rdma-setup.yaml", fmt.Sprintf(
		"network:\n  version: 2\n  ethernets:\n    %s:\n      match:\n        macaddress: %s\n      addresses: [%s]\n      mtu: 9000\n      dhcp4: false\n", name, a.MAC, m.cfg.RDMAAddr))
	const unit = "/etc/systemd/system/rdma-setup-pvrdma.service"
	b.file(0o644, unit, "[Unit]\nDescription=Load vmw_pvrdma again once the network is up\nAfter=network-online.target systemd-modules-load.service\nWants=network-online.target\n\n"+
		"[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/sbin/modprobe -r vmw_pvrdma\nExecStart=/sbin/modprobe vmw_pvrdma\n\n[Install]\nWantedBy=multi-user.target\n")
	b.link(unit, "/etc/systemd/system/multi-user.target.wants/rdma-setup-pvrdma.service")
	return b.err
}
