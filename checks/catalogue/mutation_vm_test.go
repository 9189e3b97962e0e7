package catalogue_test

import (
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

func directMutations() []mutation {
	return []mutation{
		{"HOST-MAXVFS-LEN-005", s, checks.Warn, parameter(connectX.Driver(), "max_vfs", "8"), "CL-PARAM-009 HOST-MAXVFS-ORDER-006"},
		{"HOST-MAXVFS-LEN-005", s, checks.Fail, parameter(connectX.Driver(), "max_vfs", "0,8,8"), "CL-PARAM-009"},
		{"HOST-MAXVFS-ORDER-006", s, checks.Fail, parameter(connectX.Driver(), "max_vfs", "8,0"), "CL-PARAM-009"},
		{"HOST-MAXVFS-LOWPF-007", s, checks.Warn, func(f *checks.Facts) {
			for i := range f.Inventory.Hosts {
				f.Inventory.Hosts[i].NICs[0].PCI, f.Inventory.Hosts[i].NICs[1].PCI = "0000:43:00.0", "0000:43:00.1"
				f.Inventory.Hosts[i].System.Modules[connectX.Driver()].Value.Params["max_vfs"] = "0,9"
				f.Inventory.VMs[i].Adapters[1].PF, f.Inventory.VMs[i].Extra["pciPassthru0.pfId"] = "0000:43:00.1", "00000:067:00.1"
			}
			f.Baseline = nil
		}, ""},
		{"HOST-NUMVFS-008", s, checks.Fail, card(func(c *backends.Firmware) { c.Current["NUM_OF_VFS"] = "4" }), ""},
		{"HOST-SRIOVEN-009", s, checks.Warn, card(func(c *backends.Firmware) { c.Current["SRIOV_EN"] = "False(0)" }), ""},
		{"HOST-SRIOVEN-009", s, checks.Fail,
			card(func(c *backends.Firmware) { c.Current["SRIOV_EN"], c.Next["SRIOV_EN"] = "False(0)", "False(0)" }), ""},
		{"HOST-VF-COUNT-010", s, checks.Fail, func(f *checks.Facts) { theNIC(f).SRIOV.Requested = 12 }, ""},
		{"HOST-VF-FREE-011", s, checks.Fail, func(f *checks.Facts) {
			theNIC(f).SRIOV.VFs, theNIC(f).SRIOV.Requested = 1, 1
			theVM(f).Power = "poweredOff"
		}, ""},
		{"HOST-VF-INTR-012", s, checks.Warn, func(f *checks.Facts) { theNIC(f).SRIOV.VFs = 1024 }, ""},
		{"HOST-PT-ACTIVE-013", g, checks.Warn, func(f *checks.Facts) { theHost(f).GPUs[0].Active = false }, ""},
		{"HOST-PT-ACTIVE-013", g, checks.Fail, func(f *checks.Facts) { theHost(f).GPUs[0].Enabled = false }, ""},
		{"HOST-PT-FREE-014", g, checks.Warn, stranger("poweredOff"), ""},
		{"HOST-PT-FREE-014", g, checks.Fail, stranger("poweredOn"), ""},
		{"HOST-PT-DEPEND-015", g, checks.Fail, func(f *checks.Facts) { theHost(f).PCI[5].Dependents = []string{"0000:17:00.0"} }, ""},
		{"HOST-GPU-ROOT-016", g, checks.Fail, func(f *checks.Facts) {
			theHost(f).GPUs[0].RootPort, theHost(f).GPUs[0].Switches = "0000:80:01.0", nil
		}, ""},
		{"HOST-GPU-ROOT-016", g, checks.Warn, func(f *checks.Facts) {
			theHost(f).GPUs[0].RootPort, theHost(f).GPUs[0].Switches = "0000:40:03.0", nil
		}, ""},
		{"HOST-GPU-ATS-017", g, checks.Warn, card(func(c *backends.Firmware) { c.Current["ATS_ENABLED"] = "False(0)" }), ""},
		{"HOST-GPU-GFX-018", g, checks.Warn, func(f *checks.Facts) { theHost(f).GraphicsType = "sharedDirect" }, ""},
		{"HOST-VGPUMGR-019", g, checks.Fail, vgpus(connectX.VIBs()[1], "", "grid_a100d-80c"), ""},
		{"HOST-VGPUMGR-019", g, checks.Warn, vgpus("NVD-AIE_ESXi_8.0.0_Driver", "570.133.10-1OEM.800.1.0.20613240"), ""},
		{"HOST-VGPUMGR-019", g, checks.Unknown, func(f *checks.Facts) {
			vgpus("", "")(f)
			theHost(f).System.VIBs = backends.Fact[map[string]backends.VIB]{State: backends.FactUnreadable, Why: "no answer"}
		}, ""},
	}
}

// vgpus adds vGPU profiles to the VM of the host, which then serves vGPUs, and installs a VIB.
func vgpus(vib, version string, profiles ...string) func(*checks.Facts) {
	return func(f *checks.Facts) {
		h := theHost(f)
		h.GraphicsType, h.Profiles, h.System.VIBs.Value[vib] = backends.SharedDirect, profiles,
			backends.VIB{Version: version, Acceptance: "VMwareCertified"}
		for i := range h.GPUs {
			h.GPUs[i].Graphics = backends.SharedDirect
		}
		f.Answers.GPUDirect.GPUs = map[string]answers.VMGPUs{theVM(f).Name: {Profile: "grid_a100d-80c"}}
	}
}

// stranger assigns the third host's GPU to a VM that nobody selected.
func stranger(power string) func(*checks.Facts) {
	return func(f *checks.Facts) {
		f.Inventory.VMs = append(f.Inventory.VMs, backends.VM{Name: "render", Host: "lyon-2", Power: power})
		theHost(f).GPUs[0].UsedBy = "render"
	}
}

func switchMutations() []mutation {
	return []mutation{
		{"DVS-EXIST-001", p, checks.Fail, func(f *checks.Facts) { theSwitch(f).Name = "other" }, ""},
		{"DVS-VERSION-002", p, checks.Warn, func(f *checks.Facts) { theSwitch(f).Version = "8.0.0" }, ""},
		{"DVS-VERSION-002", p, checks.Fail, func(f *checks.Facts) { theSwitch(f).Version = "9.0.0" }, ""},
		{"DVS-MEMBER-003", p, checks.Fail, func(f *checks.Facts) { delete(theSwitch(f).Members, "lyon-2") }, ""},
		{"DVS-MEMBER-003", s, checks.Warn, func(f *checks.Facts) {
			theSwitch(f).Members["lyon-2"] = backends.Member{PNICs: []string{"vmnic4"}, Status: "outOfSync"}
		}, ""},
		{"DVS-UPLINKS-004", p, checks.Fail, func(f *checks.Facts) { theGroup(f).Active = []string{"Uplink 1", "Uplink 2"} }, ""},
		{"DVS-UPLINKS-004", p, checks.Warn, func(f *checks.Facts) { theSwitch(f).Uplinks = []string{"Uplink 1", "Uplink 2"} }, ""},
		{"DVS-NIOC-005", p, checks.Warn, func(f *checks.Facts) { theSwitch(f).NIOC = true }, ""},
		{"DVS-NIOC-005", s, checks.Fail, func(f *checks.Facts) { theSwitch(f).NIOC = true }, ""},
		{"DVS-NIOC-005", s, checks.Warn, func(f *checks.Facts) { theSwitch(f).NIOC, theSwitch(f).Note = true, "" }, ""},
		{"DVS-MTU-006", p, checks.Warn, func(f *checks.Facts) { theSwitch(f).MTU = 5000 }, ""},
		{"DVS-MTU-006", p, checks.Fail, func(f *checks.Facts) { theSwitch(f).MTU = 1500 }, ""},
		{"DVS-PG-007", p, checks.Fail, func(f *checks.Facts) { f.Inventory.PortGroups = nil }, ""},
		{"DVS-PG-007", p, checks.Fail, func(f *checks.Facts) { theGroup(f).Switch = "other" }, ""},
		{"DVS-PG-007", p, checks.Warn, func(f *checks.Facts) { theGroup(f).Binding = "ephemeral" }, ""},
		{"DVS-PG-VLAN-008", p, checks.Fail, func(f *checks.Facts) { theGroup(f).VLAN = "7" }, ""},
		{"DVS-PG-SEC-009", s, checks.Fail, func(f *checks.Facts) {
			theGuest(f).Interfaces[1].MAC = "0e:00:00:00:00:01"
		}, "GST-IP-014"},
		{"DVS-HEALTH-010", p, checks.Fail, func(f *checks.Facts) { theSwitch(f).Health.Mismatch = []string{"lyon-2 Uplink 1: MTU"} }, ""},
		{"DVS-HEALTH-010", p, checks.Unknown, func(f *checks.Facts) { theSwitch(f).Health.Enabled = false }, ""},
		{"SW-LLDP-011", p, checks.Warn,
			theFacts(func(h *backends.HostSystem) { h.Neighbours = backends.FactOf(map[string]backends.Neighbour{}) }), ""},
		{"SW-PFC-012", p, checks.Unknown, func(f *checks.Facts) { f.Answers.Confirmed.SwitchPFC = false }, ""},
		{"SW-MTU-013", p, checks.Warn, func(f *checks.Facts) {
			for i := range f.Pairs {
				f.Pairs[i].Payload = 1472
			}
		}, "PAIR-MTU-002"},
		{"SW-BUFFER-014", p, checks.Warn, stats(backends.PortStats{Pause: 5, Over: time.Second}), ""},
		{"SW-BUFFER-014", p, checks.Fail, stats(backends.PortStats{Pause: 5000, Over: time.Second}), ""},
	}
}

func vmMutations() []mutation {
	return []mutation{
		{"VM-POWER-001", p, checks.Fail, func(f *checks.Facts) { theVM(f).Power = "suspended" }, ""},
		{"VM-POWER-001", p, checks.Warn, func(f *checks.Facts) { f.Before = true }, ""},
		{"VM-HWVER-002", p, checks.Warn, func(f *checks.Facts) { theVM(f).Hardware = 14 }, ""},
		{"VM-HWVER-002", p, checks.Fail, func(f *checks.Facts) { theVM(f).Hardware = 11 }, ""},
		{"VM-HWVER-DDIO-003", g, checks.Fail, func(f *checks.Facts) { theVM(f).Hardware, theVM(f).Passthrough = 15, []string{"dynamic"} }, ""},
		{"VM-HWVER-SLOT-004", p, checks.Warn, func(f *checks.Facts) { theVM(f).Hardware = 20 }, ""},
		{"VM-SNAP-005", s, checks.Fail, func(f *checks.Facts) { theVM(f).Snapshots = 1 }, ""},
		{"VM-SNAP-P-006", p, checks.Warn, func(f *checks.Facts) { theVM(f).Snapshots = 1 }, ""},
		{"VM-MEMRES-007", p, checks.Warn, func(f *checks.Facts) { theVM(f).MemoryLocked = false }, ""},
		{"VM-MEMRES-007", s, checks.Fail, func(f *checks.Facts) { theVM(f).Reservation = 1 }, ""},
		{"VM-PCIADDR-050", s, checks.Warn, func(f *checks.Facts) { theVM(f).Extra = map[string]string{} }, ""},
		{"VM-PCIADDR-050", s, checks.Fail, func(f *checks.Facts) { theVM(f).Extra["pciPassthru0.pfId"] = "00000:043:00.0" }, ""},
		{"VM-PCIADDR-050", g, checks.Fail, func(f *checks.Facts) { theVM(f).Extra["pciPassthru1.id"] = "00000:067:00.1" }, ""},
		{"VM-MEMFIT-008", p, checks.Fail, func(f *checks.Facts) { theVM(f).Power, theHost(f).MemoryUsedMB = "poweredOff", 1<<20-1000 }, ""},
		{"VM-MEMFIT-008", p, checks.Warn, func(f *checks.Facts) {
			theVM(f).Power, theHost(f).MemoryUsedMB = "poweredOff", 1<<20-1<<18
		}, ""},
		{"VM-MEMGPU-009", g, checks.Warn, func(f *checks.Facts) { theVM(f).MemoryMB = 100 << 10 }, ""},
		{"VM-HOTADD-010", s, checks.Fail, func(f *checks.Facts) { theVM(f).MemHotAdd = true }, ""},
		{"VM-LATSENS-011", s, checks.Warn, func(f *checks.Facts) { theVM(f).Latency, f.Answers.Tuning.Latency = "normal", "high" }, ""},
		{"VM-LATSENS-011", s, checks.Fail, func(f *checks.Facts) { theVM(f).MemoryLocked = false }, "VM-MEMRES-007"},
		{"VM-CPURES-012", s, checks.Warn, func(f *checks.Facts) { theVM(f).CPUReserved = ptr(int64(1000)) }, ""},
		{"VM-CPURES-012", s, checks.Fail, func(f *checks.Facts) { theVM(f).CPUReserved = ptr(int64(0)) }, ""},
		{"VM-NUMA-013", p, checks.Warn, func(f *checks.Facts) { theVM(f).CPUs = 32 }, ""},
		{"VM-NIC-FIRST-014", p, checks.Fail, func(f *checks.Facts) {
			a := theVM(f).Adapters
			a[0], a[1] = a[1], a[0]
		}, ""},
		{"VM-NIC-MAX-015", p, checks.Fail, func(f *checks.Facts) {
			for range 9 {
				theVM(f).Adapters = append(theVM(f).Adapters, backends.Adapter{Type: "vmxnet3"})
			}
		}, ""},
		{"VM-NIC-PVCOUNT-016", p, checks.Warn, twice(1), ""},
		{"VM-NIC-PVCOUNT-016", p, checks.Fail, twice(9), "VM-NIC-MAX-015"},
		{"VM-NIC-PROTO-017", p, checks.Fail, func(f *checks.Facts) { theVM(f).Adapters[1].Protocol = "rocev1" }, ""},
		{"VM-NIC-CONNECT-018", p, checks.Warn, func(f *checks.Facts) { theVM(f).Adapters[1].Connected = false }, ""},
		{"VM-NIC-CONNECT-018", s, checks.Fail, func(f *checks.Facts) { theVM(f).Adapters[1].Start = false }, ""},
		{"VM-NIC-DVS-019", p, checks.Fail, func(f *checks.Facts) { theVM(f).Adapters = theVM(f).Adapters[:1] }, ""},
		{"VM-NIC-DVS-019", p, checks.Fail, func(f *checks.Facts) { theVM(f).Adapters[1].Switch = "other" }, ""},
		{"VM-NIC-GUESTOS-032", p, checks.Warn, func(f *checks.Facts) {
			theVM(f).Adapters, theVM(f).GuestAdapters = theVM(f).Adapters[:1], []string{"VirtualVmxnet3"}
		}, "VM-NIC-DVS-019"},
		{"VM-NIC-GUESTOS-032", p, checks.Unknown, func(f *checks.Facts) { // the list is for the version before the upgrade
			theVM(f).Adapters, theVM(f).GuestAdapters = theVM(f).Adapters[:1], []string{"VirtualVmxnet3"}
			theVM(f).Hardware, f.Answers.VMs[2].Hardware = 13, answers.HardwareUpgrade
		}, "VM-NIC-DVS-019 VM-HWVER-002 PAIR-ARP-004"},
		{"VM-SRIOV-MTU-020", s, checks.Fail, func(f *checks.Facts) { theVM(f).Adapters[1].GuestMTU = false }, ""},
		{"VM-SRIOV-PF-021", s, checks.Fail, func(f *checks.Facts) {
			theVM(f).Adapters[1].PF, theVM(f).Extra["pciPassthru0.pfId"] = "0000:99:00.0", "00000:153:00.0"
		}, ""},
		{"VM-SRIOV-PF-021", s, checks.Fail, func(f *checks.Facts) { theVM(f).Adapters = theVM(f).Adapters[:1] }, ""},
	}
}

// twice adds n more PVRDMA adapters on the same port group.
func twice(n int) func(*checks.Facts) {
	return func(f *checks.Facts) {
		for range n {
			a := theVM(f).Adapters[1]
			a.MAC = "00:50:56:00:09:09"
			theVM(f).Adapters = append(theVM(f).Adapters, a)
		}
		if n > 1 {
			theHost(f).Version = f.Inventory.Hosts[0].Version
			theVM(f).Adapters = append(theVM(f).Adapters, theVM(f).Adapters[1])
		}
	}
}

func gpuMutations() []mutation {
	key := func(name, value string) func(*checks.Facts) {
		return func(f *checks.Facts) { theVM(f).Extra[name] = value }
	}
	return []mutation{
		{"VM-FIRMWARE-022", g, checks.Fail, func(f *checks.Facts) { theVM(f).Firmware = "bios" }, ""},
		{"VM-MMIO-ON-023", g, checks.Fail, key("pciPassthru.use64bitMMIO", "FALSE"), ""},
		{"VM-MMIO-SIZE-024", g, checks.Fail, key("pciPassthru.64bitMMIOSizeGB", "128"), ""},
		{"VM-MMIO-SIZE-024", g, checks.Fail, key("pciPassthru.64bitMMIOSizeGB", "300"), ""},
		{"VM-MMIO-SIZE-024", g, checks.Warn, func(f *checks.Facts) { f.Answers.GPUDirect.MMIO = answers.MMIO("512") }, ""},
		{"VM-P2P-025", g, checks.Warn, key("pciPassthru.RelaxACSforP2P", "FALSE"), ""},
		{"VM-P2P-025", g, checks.Fail, key("pciPassthru.allowP2P", ""), ""},
		{"VM-PTCOUNT-026", g, checks.Fail, func(f *checks.Facts) {
			for range 15 {
				theVM(f).Passthrough = append(theVM(f).Passthrough, "0000:43:00.0")
			}
		}, ""},
		{"VM-NESTED-027", g, checks.Fail, func(f *checks.Facts) { theVM(f).Nested = true }, ""},
		{"VM-FT-028", g, checks.Fail, func(f *checks.Facts) { theVM(f).FaultTolerant = true }, ""},
		{"VM-EXTRAKEYS-029", g, checks.Fail, key("PCIPASSTHRU.ALLOWP2P", "TRUE"), ""},
		{"VM-EXTRAKEYS-029", g, checks.Fail, key("pciPassthru.use64bitMMIO", "“TRUE”"), ""},
		{"VM-EXTRAKEYS-029", g, checks.Warn, func(f *checks.Facts) {
			delete(theVM(f).Extra, "pciPassthru.allowP2P")
			theVM(f).Extra["pcipassthru.allowp2p"] = "TRUE"
		}, ""},
		{"VM-PLACEMENT-030", p, checks.Warn, func(f *checks.Facts) { theVM(f).Host = "elsewhere" }, ""},
		{"VM-TOOLS-031", p, checks.Warn, func(f *checks.Facts) { theVM(f).Tools = "guestToolsNotRunning" }, ""},
	}
}
