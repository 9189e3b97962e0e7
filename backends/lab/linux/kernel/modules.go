package kernel

import "slices"

// Modules returns the modules that RDMA requires from the kernel packages of distributions.
func Modules() []Module {
	return []Module{
		{Name: "vmxnet3", Size: 73728, Text: "VMware vmxnet3 virtual NIC driver", Alias: "pci:v000015ADd000007B0sv*sd*bc*sc*i*", Path: "drivers/net/vmxnet3"},
		{Name: "vmw_balloon", Size: 28672, Text: "VMware Memory Control (Balloon) Driver", Path: "drivers/misc"},
		{Name: "vmw_vmci", Size: 94208, Text: "VMware Virtual Machine Communication Interface.", Path: "drivers/misc/vmw_vmci"},
		{Name: "vsock", Size: 49152, Text: "VMware Virtual Socket Family", Path: "net/vmw_vsock"},
		{Name: "vmw_vsock_vmci_transport", Size: 36864, Needs: []string{"vsock", "vmw_vmci"}, Text: "VMCI transport for Virtual Sockets", Path: "net/vmw_vsock"},
		{Name: "configfs", Size: 57344, Text: "Simple RAM filesystem for user driven kernel subsystem configuration.", Path: "fs/configfs"},
		{Name: "sunrpc", Size: 692224, Text: "RPC client and server support", Path: "net/sunrpc"},
		{Name: "ib_core", Size: 442368, Text: "core kernel InfiniBand API", Path: "drivers/infiniband/core"},
		{Name: "ib_uverbs", Size: 172032, Needs: []string{"ib_core"}, Text: "InfiniBand userspace verbs access", Path: "drivers/infiniband/core"},
		{Name: "ib_umad", Size: 45056, Needs: []string{"ib_core"}, Text: "InfiniBand userspace MAD packet access", Path: "drivers/infiniband/core"},
		{Name: "ib_cm", Size: 139264, Needs: []string{"ib_core"}, Text: "InfiniBand CM", Path: "drivers/infiniband/core"},
		{Name: "iw_cm", Size: 61440, Needs: []string{"ib_core"}, Text: "iWARP CM", Path: "drivers/infiniband/core"},
		{Name: "rdma_cm", Size: 139264, Needs: []string{"iw_cm", "ib_cm", "ib_core", "configfs"}, Text: "Generic RDMA CM Agent", Path: "drivers/infiniband/core"},
		{Name: "rdma_ucm", Size: 32768, Needs: []string{"rdma_cm", "ib_uverbs", "ib_core"}, Text: "RDMA Userspace Connection Manager Access", Path: "drivers/infiniband/core"},
		{Name: "rpcrdma", Size: 364544, Needs: []string{"rdma_cm", "sunrpc", "ib_core"}, Text: "RPC/RDMA Transport", Path: "net/sunrpc/xprtrdma"},
		{Name: "ib_ipoib", Size: 151552, Needs: []string{"ib_cm", "ib_core"}, Text: "IP-over-InfiniBand net driver", Path: "drivers/infiniband/ulp/ipoib"},
		{Name: "vmw_pvrdma", Size: 69632, Needs: []string{"ib_uverbs", "ib_core"}, Text: "VMware Paravirtual RDMA driver",
			Alias: "pci:v000015ADd00000820sv*sd*bc*sc*i*", Path: "drivers/infiniband/hw/vmw_pvrdma"},
		{Name: "mlx5_core", Size: 1953792, Text: "Mellanox 5th generation network adapters (ConnectX series) core driver",
			Alias: "pci:v000015B3d00001017sv*sd*bc*sc*i*", Path: "drivers/net/ethernet/mellanox/mlx5/core"},
		{Name: "mlx5_ib", Size: 458752, Needs: []string{"mlx5_core", "ib_uverbs", "ib_core"}, Text: "Mellanox 5th generation network adapters (ConnectX " +
			"series) IB driver", Path: "drivers/infiniband/hw/mlx5"},
		{Name: "crc16", Size: 16384, Text: "CRC16 calculations", Path: "lib"},
		{Name: "ext4", Size: 983040, Needs: []string{"crc16"}, Text: "Fourth Extended Filesystem", Path: "fs/ext4"},
		{Name: "mlx4_core", Size: 385024, Text: "Mellanox ConnectX HCA low-level driver", Path: "drivers/net/ethernet/mellanox/mlx4"},
		{Name: "mlx4_ib", Size: 225280, Needs: []string{"mlx4_core", "ib_uverbs", "ib_core"}, Text: "Mellanox ConnectX HCA InfiniBand driver", Path: "drivers/infiniband/hw/mlx4"},
	}
}

// Nouveau returns the kernel's own driver for NVIDIA's GPUs (drivers/gpu/drm/nouveau), without its dependencies.
func Nouveau() Module {
	return Module{Name: "nouveau", Size: 2510848, Text: "nVidia Riva/TNT/GeForce/Quadro/Tesla/Tegra K1+", Alias: "pci:v000010DEd*sv*sd*bc03sc*i*", Path: "drivers/gpu/drm/nouveau"}
}

// Without returns the modules except those that a distribution does not build.
func Without(list []Module, names ...string) []Module {
	return slices.DeleteFunc(slices.Clone(list), func(m Module) bool { return slices.Contains(names, m.Name) })
}

// WithBuiltIn returns the modules with those named built into the kernel, and all that these need: what is built in cannot need a
// module that is loaded.
func WithBuiltIn(list []Module, names ...string) []Module {
	if len(names) > 0 {
		list = slices.Clone(list)
	}
	for len(names) > 0 {
		var needs []string
		for i, m := range list {
			if slices.Contains(names, m.Name) && !m.BuiltIn {
				list[i].BuiltIn = true
				needs = append(needs, m.Needs...)
			}
		}
		names = needs
	}
	return list
}
