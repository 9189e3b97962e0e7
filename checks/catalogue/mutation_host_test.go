package catalogue_test

import (
	"errors"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

func vcenterMutations() []mutation {
	return []mutation{
		{"VC-CONN-001", p, checks.Warn, func(f *checks.Facts) { f.Inventory.VCenter.Thumbprint = "AB:CE" }, ""},
		{"VC-CONN-001", p, checks.Fail, func(f *checks.Facts) { f.Inventory.VCenter.Version = "" }, "VC-VERSION-002"},
		{"VC-VERSION-002", p, checks.Warn, func(f *checks.Facts) { f.Inventory.VCenter.Version = "6.7.0" }, ""},
		{"VC-VERSION-002", p, checks.Fail, func(f *checks.Facts) { f.Inventory.VCenter.Version = "6.0.0" }, ""},
		{"VC-PRIV-003", p, checks.Warn, func(f *checks.Facts) { f.Lacks = []checks.Lack{{Entity: "/", Privilege: "Host.Config.NetService"}} },
			""},
		{"VC-PRIV-003", p, checks.Fail, func(f *checks.Facts) {
			f.Before, f.Lacks = true, []checks.Lack{{Entity: "/", Privilege: "Host.Config.NetService"}}
		}, "VM-POWER-001"},
		{"VC-PRIV-003", p, checks.Unknown, func(f *checks.Facts) { f.LacksErr = errors.New("no session") }, ""},
		{"VC-TIME-004", p, checks.Warn, func(f *checks.Facts) { f.Inventory.VCenter.Clock = noon.Add(30 * time.Second) }, ""},
		{"VC-TIME-004", p, checks.Fail, func(f *checks.Facts) { f.Inventory.VCenter.Clock = noon.Add(-time.Hour) }, ""},
		{"VC-DC-005", p, checks.Fail, func(f *checks.Facts) { f.Answers.Hosts.Datacenter, theHost(f).Datacenter = "", "Lille" }, ""},
		{"VC-TASK-006", p, checks.Fail, func(f *checks.Facts) { theHost(f).RecentTasks = []string{"host.shutdown"} }, ""},
		{"VC-LICENSE-007", p, checks.Warn, func(f *checks.Facts) { theSwitch(f).Members = nil }, "DVS-MEMBER-003"},
		{"VC-VLCM-008", s, checks.Warn, func(f *checks.Facts) { theHost(f).ManagedBy = []string{"vLCM image"} }, ""},
		{"VC-VLCM-008", s, checks.Warn, func(f *checks.Facts) { f.Inventory.VCenter.Version = "9.0.0" }, ""}, // Broadcom KB 379388
		{"CL-HOSTS-001", p, checks.Warn, func(f *checks.Facts) {
			f.Inventory.Hosts[0].InMaintenance, f.Inventory.Hosts[1].InMaintenance = true, true
		}, "HOST-MAINT-002"},
		{"CL-HOSTS-001", p, checks.Fail, func(f *checks.Facts) {
			for i := range f.Inventory.Hosts {
				f.Inventory.Hosts[i].InMaintenance = true
			}
		}, "HOST-MAINT-002"},
		{"CL-VER-002", p, checks.Warn, func(f *checks.Facts) { theHost(f).Build = "78" }, ""},
		{"CL-CPU-003", p, checks.Warn, func(f *checks.Facts) { theHost(f).CPUModel = "EPYC" }, ""},
		{"CL-NIC-004", p, checks.Warn, func(f *checks.Facts) { theNIC(f).PCIDeviceID, theNIC(f).Firmware = "101b", "20.29.1016" }, "CL-FW-005"},
		{"CL-FW-005", p, checks.Warn, func(f *checks.Facts) { theNIC(f).Firmware = "16.34.1000" }, ""},
		{"CL-DRV-006", p, checks.Warn, func(f *checks.Facts) { theNIC(f).DriverVersion = "4.22.73.1004" }, ""},
		{"CL-SLOT-007", p, checks.Warn, func(f *checks.Facts) { theNIC(f).NUMA = 1 }, ""},
		{"CL-SLOT-007", g, checks.Warn, func(f *checks.Facts) { theHost(f).GPUs[0].NUMA = 1 }, ""},
		{"CL-GPU-008", g, checks.Warn, func(f *checks.Facts) { theHost(f).GPUs[0].Model = "A100 40 GB" }, ""},
		{"CL-PARAM-009", s, checks.Warn, parameter(connectX.Driver(), "max_vfs", "0,9"), ""},
		{"CL-PARAM-009", p, checks.Fail, parameter(connectX.Driver(), "drss", "4"), ""},
		{"CL-PCIE-016", p, checks.Warn, card(func(c *backends.Firmware) { c.Slot.Gen = 4 }), ""},
		{"CL-POWER-010", p, checks.Warn, func(f *checks.Facts) { theHost(f).PowerPolicy = "low" }, "HOST-POWER-009"},
		{"CL-DRS-011", s, checks.Warn, func(f *checks.Facts) {
			f.Inventory.Clusters[0].DRS, f.Inventory.Clusters[0].DRSMode = true, "fullyAutomated"
		}, ""},
		{"CL-HA-012", s, checks.Warn, func(f *checks.Facts) { f.Inventory.Clusters[0].HA = true }, ""},
		{"CL-RULE-013", p, checks.Warn, func(f *checks.Facts) {
			for i := range f.Inventory.VMs {
				f.Inventory.VMs[i].Host = "lyon-0"
			}
			f.Pairs = nil
		}, "VM-PLACEMENT-030 PAIR-HOSTS-005"},
		{"CL-EVC-014", p, checks.Warn, func(f *checks.Facts) { f.Inventory.Clusters[0].EVC = ptr("intel-skylake") }, ""},
		{"CL-EVC-014", p, checks.Unknown, func(f *checks.Facts) { f.Inventory.Clusters[0].EVC = nil }, ""},
		{"CL-VSAN-015", s, checks.Warn, func(f *checks.Facts) {
			theHost(f).VMKs[0].Roles = []string{"vsan"}
			theFacts(func(h *backends.HostSystem) { h.Resync = backends.FactOf(int64(4096)) })(f)
		}, ""},
	}
}

func hostMutations() []mutation {
	return []mutation{
		{"HOST-CONN-001", p, checks.Fail, func(f *checks.Facts) { theHost(f).State = "notResponding" }, ""},
		{"HOST-CONN-001", p, checks.Fail, func(f *checks.Facts) { f.Answers.Hosts.Names = append(f.Answers.Hosts.Names, "lyon-9") }, ""},
		{"HOST-MAINT-002", p, checks.Warn, func(f *checks.Facts) { theHost(f).InMaintenance = true }, ""},
		{"HOST-REBOOT-003", p, checks.Warn, func(f *checks.Facts) { theHost(f).RebootRequired = true }, ""},
		{"HOST-NTP-004", p, checks.Warn, func(f *checks.Facts) { theHost(f).NTPActive = false }, ""},
		{"HOST-NTP-004", p, checks.Fail, func(f *checks.Facts) { theHost(f).NTP = nil }, ""},
		{"HOST-IOMMU-005", s, checks.Fail, func(f *checks.Facts) {
			for i := range theHost(f).PCI {
				theHost(f).PCI[i].Capable = false
			}
		}, ""},
		{"HOST-SRIOVBIOS-006", s, checks.Fail, func(f *checks.Facts) { theNIC(f).SRIOV.Capable = false }, ""},
		{"HOST-SRIOVBIOS-006", s, checks.Warn, func(f *checks.Facts) { theNIC(f).SRIOV.Max = 0 }, ""},
		{"HOST-ABOVE4G-007", g, checks.Unknown, func(f *checks.Facts) { f.Answers.Confirmed.Above4G, theVM(f).Passthrough = false, nil }, ""},
		{"HOST-BIOSPOWER-008", p, checks.Fail, func(f *checks.Facts) { theHost(f).PowerPolicies = nil }, ""},
		{"HOST-POWER-009", p, checks.Warn, func(f *checks.Facts) {
			for i := range f.Inventory.Hosts {
				f.Inventory.Hosts[i].PowerPolicy = "dynamic"
			}
		}, ""},
		{"HOST-HT-010", p, checks.Warn, func(f *checks.Facts) { theHost(f).Hyperthreads = false }, ""},
		{"HOST-SSH-011", s, checks.Warn, func(f *checks.Facts) { f.Before = true }, "VM-POWER-001"},
		{"HOST-LOCKDOWN-012", s, checks.Warn, func(f *checks.Facts) { theHost(f).Lockdown = "strict" }, ""},
		{"HOST-SECBOOT-013", s, checks.Warn, theFacts(func(h *backends.HostSystem) { delete(h.VIBs.Value, "nmst") }), ""},
		{"HOST-ACCEPT-014", s, checks.Fail, theFacts(func(h *backends.HostSystem) { h.Acceptance = backends.FactOf("VMwareCertified") }), ""},
		{"HOST-INTR-015", s, checks.Fail, theFacts(func(h *backends.HostSystem) { h.Log = []string{"WARNING: Out of interrupt vectors"} }), ""},
		{"HOST-HOTPLUG-016", g, checks.Fail,
			theFacts(func(h *backends.HostSystem) { h.Log = []string{"Device 0000:44:00.0 is not a passthrough device"} }), ""},
		{"HOST-USBBOOT-017", g, checks.Fail, func(f *checks.Facts) {
			theHost(f).PCI[6].Enabled, theHost(f).System.BootDevice = true, backends.FactOf("usb")
		}, ""},
		{"HOST-UPTIME-018", s, checks.Fail, func(f *checks.Facts) { f.Changed["lyon-2"] = noon }, ""},
		{"HOST-VMKNIC-SET-001", p, checks.Fail, func(f *checks.Facts) { theHost(f).Options["Net.PVRDMAVmknic"] = "" }, ""},
		{"HOST-VMKNIC-SET-001", p, checks.Fail, func(f *checks.Facts) { theHost(f).Options["Net.PVRDMAVmknic"] = `"vmk0"` }, ""},
		{"HOST-VMKNIC-EXIST-002", p, checks.Fail, func(f *checks.Facts) { theHost(f).VMKs = nil }, ""},
		{"HOST-VMKNIC-EXIST-002", p, checks.Warn, func(f *checks.Facts) { theHost(f).VMKs[0].DHCP = true }, ""},
		{"HOST-VMKNIC-SUBNET-003", p, checks.Warn, func(f *checks.Facts) { theHost(f).VMKs[0].IP = "10.2.0.9" }, ""},
		{"HOST-VMKNIC-DUP-004", p, checks.Fail, func(f *checks.Facts) { theHost(f).VMKs[0].IP = "10.1.0.1" }, ""},
		{"HOST-VMKNIC-PING-005", p, checks.Warn, peer(func(p *backends.Peer) { p.Loss = 2 }), ""},
		{"HOST-VMKNIC-PING-005", p, checks.Fail, peer(func(p *backends.Peer) { p.Loss = 100 }), ""},
		{"HOST-VMKNIC-MTU-006", p, checks.Warn, func(f *checks.Facts) { theHost(f).VMKs[0].Switch = "RDMA-DVS" }, ""},
		{"HOST-VMKNIC-MTU-006", p, checks.Fail, func(f *checks.Facts) {
			theHost(f).VMKs[0].Switch, theHost(f).VMKs[0].MTU = "RDMA-DVS", 9100
		}, "PAIR-MTU-HOST-003"},
		{"HOST-FW-PVRDMA-007", p, checks.Fail, func(f *checks.Facts) { theHost(f).Firewall["pvrdma"] = backends.Ruleset{AllIP: true} }, ""},
		{"HOST-FW-ALLOW-008", p, checks.Warn, func(f *checks.Facts) {
			theHost(f).Firewall["pvrdma"] = backends.Ruleset{Enabled: true, Networks: []string{"10.1.0.2"}}
		}, ""},
		{"PAIR-MTU-HOST-003", p, checks.Fail, peer(func(p *backends.Peer) { p.Payload = 1400 }), ""},
	}
}

// peer changes how the third host reaches the first.
func peer(change func(p *backends.Peer)) func(*checks.Facts) {
	return theFacts(func(h *backends.HostSystem) {
		p := h.Peers["lyon-0"]
		change(&p.Value)
		h.Peers["lyon-0"] = p
	})
}

// parameter sets a module parameter on the third host.
func parameter(module, name, value string) func(*checks.Facts) {
	return theFacts(func(h *backends.HostSystem) { h.Modules[module].Value.Params[name] = value })
}

func nicMutations() []mutation {
	everywhere := func(module, name, value string) func(*checks.Facts) {
		return func(f *checks.Facts) {
			for i := range f.Inventory.Hosts {
				f.Inventory.Hosts[i].System.Modules[module].Value.Params[name] = value
			}
		}
	}
	return []mutation{
		{"HOST-PNIC-RDMA-001", p, checks.Fail, func(f *checks.Facts) { theNIC(f).RDMADevice = "" }, ""},
		{"HOST-PNIC-RDMA-001", p, checks.Fail, func(f *checks.Facts) { theNIC(f).DPU = "dpu-0" }, ""},
		{"HOST-PNIC-RDMA-001", p, checks.Fail, func(f *checks.Facts) { theHost(f).NICs = nil }, ""},
		{"HOST-PNIC-ROCEV2-002", p, checks.Fail, func(f *checks.Facts) { theNIC(f).RoCEv2 = false }, ""},
		{"HOST-PNIC-ROCEV2-002", p, checks.Warn, func(f *checks.Facts) {
			theNIC(f).RoCEv2, f.Answers.PVRDMA.Protocol = false, "rocev1"
			for i := range f.Inventory.VMs {
				f.Inventory.VMs[i].Adapters[1].Protocol = "rocev1"
			}
		}, ""},
		{"HOST-PNIC-STATE-003", p, checks.Fail, func(f *checks.Facts) { theNIC(f).SpeedMbps = 0 }, ""},
		{"HOST-PNIC-STATE-003", s, checks.Fail, func(f *checks.Facts) { theNIC(f).RDMAState = "down" }, ""},
		{"HOST-PNIC-SPEED-004", p, checks.Warn, func(f *checks.Facts) { theNIC(f).MaxSpeedMbps = 200000 }, ""},
		{"HOST-PNIC-SPEED-004", p, checks.Fail, func(f *checks.Facts) { theNIC(f).SpeedMbps, f.Answers.NIC.Speed = 40000, 0 }, ""},
		{"HOST-PNIC-SPEED-004", p, checks.Fail, func(f *checks.Facts) { theNIC(f).SpeedMbps = 40000 }, ""},
		{"HOST-PNIC-MAC-005", p, checks.Fail, func(f *checks.Facts) {
			f.Answers.NIC.MACs = map[string]answers.MAC{"lyon-2": "02:00:00:00:09:09"}
		}, ""},
		{"HOST-PNIC-MAC-005", p, checks.Warn, func(f *checks.Facts) { f.Baseline.Hosts[2].NICs[1].PCI = "0000:83:00.0" }, ""},
		{"HOST-PNIC-DRIVER-006", p, checks.Warn, func(f *checks.Facts) { theNIC(f).Driver = "ixgben" }, "CL-DRV-006"},
		{"HOST-PNIC-DRIVER-006", p, checks.Fail, func(f *checks.Facts) {
			f.Answers.NIC.Driver, f.Answers.NIC.Speed, theNIC(f).Driver, theHost(f).NICs[0].Driver = connectX.Driver(), 0, "icen", "ntg3"
		}, ""},
		{"HOST-PNIC-DRIVER-006", p, checks.Fail, func(f *checks.Facts) {
			allNICs(f, func(n *backends.NIC) { n.Driver, n.DriverVersion = "icen", "1.3.3.0-1OEM.700.1.0.15843807" })
		}, ""},
		{"HOST-PNIC-DRIVER-006", p, checks.Warn, func(f *checks.Facts) {
			for i := range f.Inventory.Hosts {
				f.Inventory.Hosts[i].Version, f.Inventory.Hosts[i].NICs[1].Driver = "7.0.3", "nmlx4_core"
			}
			theSwitch(f).Version = "7.0.3"
		}, ""},
		{"HOST-PNIC-FWMATRIX-007", p, checks.Fail, func(f *checks.Facts) { allNICs(f, func(n *backends.NIC) { n.Firmware = "16.28.1002" }) }, ""},
		{"HOST-PNIC-FWMATRIX-007", p, checks.Unknown,
			func(f *checks.Facts) { allNICs(f, func(n *backends.NIC) { n.DriverVersion = "4.19.16.8" }) }, ""},
		{"HOST-PNIC-CVE-018", s, checks.Warn, func(f *checks.Facts) { allNICs(f, func(n *backends.NIC) { n.Firmware = "16.35.4030" }) }, ""},
		{"HOST-PNIC-PSID-008", s, checks.Warn, card(func(c *backends.Firmware) { c.PSID = "DEL0000000004" }), ""},
		{"HOST-PNIC-LINKTYPE-009", p, checks.Fail, card(func(c *backends.Firmware) { c.Current["LINK_TYPE_P1"] = "IB(1)" }), ""},
		{"HOST-PNIC-MODE-019", p, checks.Fail,
			card(func(c *backends.Firmware) { c.Next = map[string]string{"INTERNAL_CPU_OFFLOAD_ENGINE": "0"} }), ""},
		{"HOST-PNIC-PCIE-010", p, checks.Warn, card(func(c *backends.Firmware) { c.Slot.Lanes = 8 }), "CL-PCIE-016"},
		{"HOST-PNIC-PCIE-010", p, checks.Fail, card(func(c *backends.Firmware) { c.Slot.Lanes = 4 }), "CL-PCIE-016"},
		{"HOST-PNIC-NUMA-011", p, checks.Warn, func(f *checks.Facts) { theVM(f).NodeAffinity = ptr("1") }, ""},
		{"HOST-PNIC-USED-012", p, checks.Fail, func(f *checks.Facts) { theNIC(f).Roles = []string{"vmotion"} }, ""},
		{"HOST-PNIC-USED-012", s, checks.Fail, func(f *checks.Facts) { theNIC(f).Switch = "vSwitch1" }, ""},
		{"HOST-PNIC-ONLYUPLINK-013", p, checks.Fail, func(f *checks.Facts) {
			theSwitch(f).Members["lyon-2"] = backends.Member{PNICs: []string{"vmnic4", "vmnic5"}, Status: "up"}
		}, ""},
		{"HOST-PNIC-PAUSE-014", p, checks.Warn, func(f *checks.Facts) {
			f.Answers.QoS.Lossless = answers.LosslessPause
			for i := range f.Inventory.Hosts {
				h := f.Inventory.Hosts[i].System
				delete(h.Modules[connectX.Driver()].Value.Params, "pfctx")
				h.Pause.Value["vmnic4"] = backends.PauseSpec{Rx: true, Tx: true}
			}
			theFacts(func(h *backends.HostSystem) { h.Pause.Value["vmnic4"] = backends.PauseSpec{Rx: true} })(f)
		}, ""},
		{"HOST-PNIC-DCB-015", p, checks.Warn, theFacts(func(h *backends.HostSystem) { h.DCB["vmnic4"] = backends.FactOf(backends.DCB{}) }), ""},
		{"HOST-PNIC-DCB-015", p, checks.Fail, theFacts(func(h *backends.HostSystem) {
			h.DCB["vmnic4"] = backends.FactOf(backends.DCB{Supported: true, PFC: [8]bool{4: true}})
		}), ""},
		{"HOST-PNIC-ERR-016", p, checks.Warn, stats(backends.PortStats{Errors: 1, Over: time.Second}), ""},
		{"HOST-PNIC-ERR-016", p, checks.Fail, stats(backends.PortStats{Errors: 100, Over: time.Second}), ""},
		{"HOST-ENS-017", p, checks.Warn, func(f *checks.Facts) {
			theSwitch(f).Members["lyon-2"] = backends.Member{PNICs: []string{"vmnic4"}, Status: "up", ENS: true, Interrupt: new(bool)}
		}, ""},
		{"HOST-ENS-017", p, checks.Fail, func(f *checks.Facts) {
			theSwitch(f).Members["lyon-2"] = backends.Member{PNICs: []string{"vmnic4"}, Status: "up", ENS: true}
			f.Inventory.Host("lyon-2").NIC("vmnic4").Driver = "icen"
		}, "CL-DRV-006 CL-PARAM-009"},
		{"HOST-PFC-001", p, checks.Fail, parameter(connectX.Driver(), "pfcrx", "0x10"), "CL-PARAM-009"},
		{"HOST-PFC-001", p, checks.Warn, func(f *checks.Facts) {
			everywhere(connectX.Driver(), "pfcrx", "")(f)
			everywhere(connectX.Driver(), "pfctx", "0")(f)
		}, ""},
		{"HOST-TRUST-002", p, checks.Warn, everywhere(connectX.Driver(), "trust_state", "1"), ""},
		{"HOST-TRUST-002", s, checks.Fail, everywhere(connectX.Driver(), "trust_state", "0"), ""},
		{"HOST-DSCP-003", p, checks.Warn, everywhere(connectX.RDMA(), "dscp_force", "-1"), ""},
		{"HOST-DSCP-003", p, checks.Fail, everywhere(connectX.RDMA(), "dscp_force", "46"), ""},
		{"HOST-ECN-004", p, checks.Warn, everywhere(connectX.Driver(), "ecn", ""), ""},
		{"HOST-ECN-004", p, checks.Fail, everywhere(connectX.Driver(), "ecn", "0"), ""},
	}
}

func allNICs(f *checks.Facts, change func(n *backends.NIC)) {
	for i := range f.Inventory.Hosts {
		change(&f.Inventory.Hosts[i].NICs[1])
	}
}

func card(change func(c *backends.Firmware)) func(*checks.Facts) {
	return theFacts(func(h *backends.HostSystem) {
		c := h.Firmware["0000:43:00.0"]
		change(&c)
		h.Firmware["0000:43:00.0"] = c
	})
}

func stats(s backends.PortStats) func(*checks.Facts) {
	return theFacts(func(h *backends.HostSystem) { h.Stats["vmnic4"] = backends.FactOf(s) })
}
