package scenario

import (
	"slices"

	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

// theSwitch returns a function that applies f to the RDMA DVS and its port group.
func theSwitch(f func(*world.DVS, *world.PortGroup)) func(*world.State) {
	return func(s *world.State) { f(s.Switch("RDMA-DVS"), s.Switch("RDMA-DVS").PortGroup("RDMA-PG")) }
}

// lastVM returns a function that applies f to the last VM.
func lastVM(f func(*world.VM)) func(*world.State) {
	return func(s *world.State) {
		if len(s.VMs) > 0 {
			f(s.VMs[len(s.VMs)-1])
		}
	}
}

// brokenSwitches returns faults of the DVS, its port group and its members.
func brokenSwitches() []brokenScenario {
	return []brokenScenario{
		{name: "dvs-missing", text: "somebody removed the DVS and the adapters on it", inject: func(s *world.State) {
			s.RemoveSwitch("RDMA-DVS")
			for _, v := range s.VMs {
				v.Adapters = v.Adapters[:1]
			}
		}},
		{name: "dvs-version", text: "the DVS is of an older version than the hosts",
			inject: theSwitch(func(d *world.DVS, _ *world.PortGroup) { d.Version = "7.0.3" })},
		{name: "not-member", text: "a host is not a member of the DVS",
			inject: theSwitch(func(d *world.DVS, _ *world.PortGroup) { d.Members = d.Members[:len(d.Members)-1] })},
		{name: "uplink-second", text: "a host has two NICs on the DVS", inject: theSwitch(func(d *world.DVS, _ *world.PortGroup) {
			d.Uplinks = append(d.Uplinks, "Uplink 2")
			d.Members[len(d.Members)-1].PNICs = []string{"vmnic2", "vmnic3"}
		})},
		{name: "uplink-missing", text: "a host has no NIC on the DVS",
			inject: theSwitch(func(d *world.DVS, _ *world.PortGroup) { d.Members[len(d.Members)-1].PNICs = nil })},
		{name: "uplink-standby", text: "the port group has a standby uplink", inject: theSwitch(func(d *world.DVS, pg *world.PortGroup) {
			d.Uplinks = append(d.Uplinks, "Uplink 2")
			pg.Standby = []string{"Uplink 2"}
		})},
		{name: "uplink-team", text: "the port group teams two uplinks", inject: theSwitch(func(d *world.DVS, pg *world.PortGroup) {
			d.Uplinks = append(d.Uplinks, "Uplink 2")
			pg.Active = slices.Clone(d.Uplinks)
		})},
		{name: "uplink-unused", text: "the DVS has an uplink that nothing uses",
			inject: theSwitch(func(d *world.DVS, _ *world.PortGroup) { d.Uplinks = append(d.Uplinks, "Uplink 2") })},
		{name: "ens", text: "a host runs the enhanced data path on the DVS, in poll mode",
			inject: theSwitch(func(d *world.DVS, _ *world.PortGroup) { d.Members[len(d.Members)-1].ENS = true })},
		{name: "nioc", text: "Network I/O Control is on", inject: theSwitch(func(d *world.DVS, _ *world.PortGroup) { d.NIOC = true })},
		{name: "dvs-mtu", text: "the DVS has MTU 1500", inject: theSwitch(func(d *world.DVS, _ *world.PortGroup) { d.MTU = 1500 })},
		{name: "dvs-mtu-low", text: "the DVS has MTU 4500", inject: theSwitch(func(d *world.DVS, _ *world.PortGroup) { d.MTU = 4500 })},
		{name: "pg-missing", text: "the port group has another name", inject: func(s *world.State) {
			d := s.Switch("RDMA-DVS")
			s.RenamePortGroup(d, d.PortGroup("RDMA-PG"), "RDMA-PG-old")
		}},
		{name: "pg-binding", text: "the port group uses ephemeral binding",
			inject: theSwitch(func(_ *world.DVS, pg *world.PortGroup) { pg.Binding = "ephemeral" })},
		{name: "pg-vlan", text: "the port group has another VLAN", inject: theSwitch(func(_ *world.DVS, pg *world.PortGroup) { pg.VLAN = 100 })},
	}
}

// brokenVMs returns faults of the VMs' configuration in vCenter.
func brokenVMs() []brokenScenario {
	return []brokenScenario{
		{name: "one-host", text: "all VMs are on one host", inject: func(s *world.State) {
			for _, v := range s.VMs {
				v.Host = s.Hosts[0].Name
			}
		}},
		{name: "hwversion", text: "a VM has hardware version 12", inject: lastVM(func(v *world.VM) { v.Hardware = 12 })},
		{name: "hwversion-old", text: "a VM has hardware version 14", inject: lastVM(func(v *world.VM) { v.Hardware = 14 })},
		{name: "snapshot", text: "a VM has a snapshot", inject: lastVM(func(v *world.VM) { v.Snap("before patch 1", "") })},
		{name: "memory-reservation", text: "the memory of a VM is not reserved",
			inject: lastVM(func(v *world.VM) { v.Locked, v.Reserved = false, 0 })},
		{name: "vcpus", text: "a VM has more vCPUs than a socket has cores", inject: lastVM(func(v *world.VM) { v.CPUs = 32 })},
		{name: "adapter-missing", text: "a VM has no PVRDMA adapter", inject: lastVM(func(v *world.VM) { v.Adapters = v.Adapters[:1] })},
		{name: "adapter-first", text: "a VM has the PVRDMA adapter as its only one",
			inject: lastVM(func(v *world.VM) { v.Adapters = v.Adapters[1:] })},
		{name: "adapter-twice", text: "a VM has two PVRDMA adapters on one port group", inject: lastVM(func(v *world.VM) {
			two := *v.Adapters[1]
			two.Key, two.Label, two.MAC, two.Slot = 4002, "Network adapter 3", world.MAC(v.Index, 2), v.NextSlot()
			v.Adapters = append(v.Adapters, &two)
		})},
		{name: "adapter-disconnected", text: "the PVRDMA adapter of a VM is disconnected",
			inject: lastVM(func(v *world.VM) { v.Adapters[1].Connected, v.Adapters[1].Start = false, false })},
		{name: "adapter-elsewhere", text: "the PVRDMA adapter of a VM is on a standard port group", inject: lastVM(func(v *world.VM) {
			v.Adapters[1].DVS, v.Adapters[1].PortGroup = "", "VM Network"
		})},
		{name: "protocol-mixed", text: "a VM uses RoCE v1", inject: lastVM(func(v *world.VM) { v.Adapters[1].Protocol = "rocev1" })},
	}
}

// brokenGuests returns faults of the guests' operating systems.
func brokenGuests() []brokenScenario {
	defect := func(f world.Defect) func(*world.State) {
		return lastVM(func(v *world.VM) { v.Guest.Defects = []world.Defect{f} })
	}
	return []brokenScenario{
		{name: "guest-driver", text: "a guest's kernel has no vmw_pvrdma", inject: defect(world.NoDriver)},
		{name: "guest-login", text: "a guest refuses every login", inject: defect(world.NoLogin)},
		{name: "sudo", text: "the user of a guest may not use sudo", inject: defect(world.NoSudo)},
		{name: "packages", text: "a guest has no rdma-core", inject: defect(world.NoProvider)},
		{name: "tools-missing", text: "a guest has no infiniband-diags", inject: defect(world.NoDiags)},
		{name: "perftest-missing", text: "a guest has no perftest", inject: defect(world.NoPerftest)},
		{name: "perftest-version", text: "a guest has perftest v4.4-0.11 (5.60), which newer releases refuse", inject: defect(world.OldPerftest)},
		{name: "mofed", text: "a guest has MLNX_OFED", inject: defect(world.MOFED)},
		{name: "modules", text: "a guest does not load ib_umad at boot", inject: defect(world.NoModules)},
		{name: "persist", text: "a guest has no unit that loads the driver again", inject: defect(world.NoReload)},
		{name: "port-down", text: "the RDMA port of a guest is down", inject: defect(world.PortDown)},
		{name: "guest-mtu", text: "the RDMA interface of a guest has MTU 1500", inject: defect(world.LowMTU)},
		{name: "no-address", text: "the RDMA interface of a guest has no address", inject: defect(world.NoAddress)},
		{name: "wrong-address", text: "the RDMA interface of a guest has another address", inject: defect(world.WrongAddress)},
		{name: "address-lost", text: "the RDMA address of a guest is in no configuration file", inject: defect(world.AddressLost)},
		{name: "subnet-twice", text: "a guest has two interfaces in the RDMA network", inject: defect(world.TwoInSubnet)},
		{name: "duplicate-ip", text: "a vmknic has the RDMA address of a guest", inject: func(s *world.State) {
			if len(s.VMs) > 0 {
				h := s.Hosts[0]
				h.VMKs = append(h.VMKs, &world.VMK{Device: "vmk1", MAC: "00:50:56:60:00:02", IP: "192.168.50.11", Prefix: 24, MTU: 1500,
					VSwitch: "vSwitch0", PortGroup: "VM Network", NetStack: "defaultTcpipStack"})
			}
		}},
		{name: "memlock", text: "a guest limits locked memory", inject: defect(world.NoMemlock)},
		{name: "kernel-trace", text: "the kernel log of a guest has a call trace", inject: defect(world.Trace)},
	}
}
