package catalogue_test

import (
	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/perftest"
)

func guestMutations() []mutation {
	verbs := func(change func(d *backends.VerbsDevice)) func(*checks.Facts) {
		return func(f *checks.Facts) { change(&theGuest(f).RDMA[0]) }
	}
	netdev := func(change func(i *backends.Interface)) func(*checks.Facts) {
		return func(f *checks.Facts) { change(&theGuest(f).Interfaces[1]) }
	}
	guest := func(change func(g *backends.Guest)) func(*checks.Facts) {
		return func(f *checks.Facts) { change(theGuest(f)) }
	}
	image := func(change func(e *backends.Engine)) func(*checks.Facts) {
		return func(f *checks.Facts) {
			f.Answers.Container.Image = "rdma:1"
			for i := range f.Inventory.Guests {
				f.Inventory.Guests[i].Engine = &backends.Engine{Name: "docker", Images: map[string]string{"rdma:1": ""},
					Inside: map[string]backends.Libraries{"rdma:1": {PVRDMA: true}}}
			}
			change(theGuest(f).Engine)
		}
	}
	return []mutation{
		{"GST-OS-001", p, checks.Fail, guest(func(g *backends.Guest) {
			g.Available, g.Loaded = []string{}, []string{"ib_umad", "rdma_cm", "rdma_ucm"}
		}),
			"GST-MOD-007"},
		{"VC-TIME-004", p, checks.Warn, guest(func(g *backends.Guest) { g.ClockSkew = ptr(-30) }), ""},
		{"VC-TIME-004", p, checks.Fail, guest(func(g *backends.Guest) { g.ClockSkew = ptr(3600) }), ""},
		{"GST-SUDO-002", p, checks.Fail, guest(func(g *backends.Guest) { g.Sudo = "none" }), ""},
		{"GST-LSPCI-003", p, checks.Fail, guest(func(g *backends.Guest) { g.PCI[1].Address = "0000:14:00.0" }), ""},
		{"GST-LSPCI-VF-004", s, checks.Fail, guest(func(g *backends.Guest) { g.PCI = g.PCI[:3] }), ""},
		{"GST-PKG-005", p, checks.Fail, guest(func(g *backends.Guest) { delete(g.Packages, "rdma-core") }), ""},
		{"GST-PKG-005", p, checks.Unknown, guest(func(g *backends.Guest) { g.Packages = nil }), ""},
		{"GST-PKG-005", p, checks.Warn, guest(func(g *backends.Guest) { delete(g.Packages, "infiniband-diags") }), ""},
		{"GST-MOFED-006", p, checks.Fail, guest(func(g *backends.Guest) { g.MOFED = "MLNX_OFED_LINUX-5.8" }), ""},
		{"GST-MOD-007", p, checks.Warn, guest(func(g *backends.Guest) { g.Loaded = []string{"vmw_pvrdma", "rdma_cm"} }), ""},
		{"GST-MOD-007", p, checks.Fail, guest(func(g *backends.Guest) { g.Loaded = []string{"ib_umad"} }), ""},
		{"GST-MOD-S-008", s, checks.Fail, guest(func(g *backends.Guest) { g.Loaded = []string{"mlx5_core"} }), ""},
		{"GST-PERSIST-009", p, checks.Fail, guest(func(g *backends.Guest) { g.Persist.Reload = "" }), ""},
		{"GST-PORT-010", p, checks.Fail, verbs(func(d *backends.VerbsDevice) { d.State = "PORT_DOWN" }), ""},
		{"GST-PORT-010", s, checks.Fail, guest(func(g *backends.Guest) { g.RDMA = nil }), ""},
		{"GST-LINK-011", s, checks.Fail, verbs(func(d *backends.VerbsDevice) { d.LinkLayer = "InfiniBand" }), ""},
		{"GST-MTU-012", p, checks.Warn, netdev(func(i *backends.Interface) { i.MTU = 1500 }), ""},
		{"GST-MTU-012", s, checks.Warn, netdev(func(i *backends.Interface) { i.MTU = 4200 }), ""},
		{"GST-MTU-012", s, checks.Fail, netdev(func(i *backends.Interface) { i.MTU = 1500 }), ""},
		{"GST-IBMTU-013", p, checks.Warn, verbs(func(d *backends.VerbsDevice) { d.ActiveMTU = 1024 }), ""},
		{"GST-IBMTU-013", g, checks.Fail, verbs(func(d *backends.VerbsDevice) { d.ActiveMTU = 1024 }), ""},
		{"GST-IP-014", p, checks.Fail, netdev(func(i *backends.Interface) { i.Addresses = nil }), ""},
		{"GST-IP-014", p, checks.Warn, netdev(func(i *backends.Interface) { i.DHCP = true }), ""},
		{"GST-SUBNET-015", p, checks.Fail, guest(func(g *backends.Guest) { g.Interfaces[0].Addresses = []string{"10.9.0.77/24"} }), ""},
		{"GST-DUPIP-016", p, checks.Fail, netdev(func(i *backends.Interface) { i.Duplicate = "0e:00:00:00:00:02" }), ""},
		{"GST-DUPIP-016", p, checks.Fail, func(f *checks.Facts) {
			f.Inventory.Hosts[0].VMKs = append(f.Inventory.Hosts[0].VMKs, backends.VMKernelNIC{Device: "vmk9", IP: "10.9.0.3"})
		}, ""},
		{"GST-NAME-017", p, checks.Warn, netdev(func(i *backends.Interface) { i.Name = "ens256" }), ""},
		{"GST-IPPERSIST-018", p, checks.Fail, netdev(func(i *backends.Interface) { i.Persistent = false }), ""},
		{"GST-NETFILES-044", p, checks.Warn, guest(func(g *backends.Guest) { g.NetConfig = "netplan"; g.Interfaces[0].DHCP = false }), ""},
		{"GST-NETFILES-044", p, checks.Fail, guest(func(g *backends.Guest) {
			g.NetInvalid = &backends.FileProblem{File: "/etc/netplan/95-broken.yaml", Line: 5}
		}), ""},
		{"GST-NETFILES-044", p, checks.Fail, guest(func(g *backends.Guest) {
			g.NetRivals, g.Interfaces = map[string]backends.FileProblem{"": {File: "/etc/netplan/00.yaml"}}, g.Interfaces[:1]
		}), "GST-IP-014"},
		{"GST-NETFILES-044", p, checks.Fail, guest(func(g *backends.Guest) {
			g.NetShared = &backends.FileProblem{File: "/etc/netplan/60-rdma-setup-PG.yaml"}
		}), ""},
		{"GST-GID-019", p, checks.Warn, verbs(func(d *backends.VerbsDevice) { d.GIDs[0].IPv4 = "" }), ""},
		{"GST-GID-019", p, checks.Fail, verbs(func(d *backends.VerbsDevice) { d.GIDs[0].Type = "IB/RoCE v1" }), ""},
		{"GST-MEMLOCK-020", p, checks.Warn, guest(func(g *backends.Guest) { g.MemlockKB = 1 << 20 }), ""},
		{"GST-MEMLOCK-020", p, checks.Fail, guest(func(g *backends.Guest) { g.MemlockKB = 64 }), ""},
		{"GST-FIREWALL-022", p, checks.Warn, guest(func(g *backends.Guest) {
			g.Firewall = &backends.GuestFirewall{Kind: "ufw", Active: true, Open: []string{"18515/tcp"}}
		}), ""},
		{"GST-PERFTEST-023", p, checks.Warn, guest(func(g *backends.Guest) { g.Perftest = "5.60" }), ""},
		{"GST-PERFTEST-023", p, checks.Fail, guest(func(g *backends.Guest) { g.Perftest = "" }), ""},
		{"GST-OFED-024", s, checks.Warn, guest(func(g *backends.Guest) { g.MOFED = "MLNX_OFED_LINUX-5.8" }), ""},
		{"GST-TCLASS-025", s, checks.Warn, verbs(func(d *backends.VerbsDevice) { d.Class = ptr(0) }), ""},
		{"GST-TCLASS-025", s, checks.Warn, func(f *checks.Facts) { f.Answers.Guest.Environment = true }, ""},
		{"GST-TCLASS-025", s, checks.Fail, verbs(func(d *backends.VerbsDevice) { d.Class = ptr(104) }), ""},
		{"GST-QOS-035", g, checks.Fail, verbs(func(d *backends.VerbsDevice) { d.QoS.PFC = []int{3, 4} }), ""},
		{"GST-QOS-035", g, checks.Fail, verbs(func(d *backends.VerbsDevice) { d.QoS.DSCP = map[int]int{26: 0} }), ""},
		{"GST-QOS-035", g, checks.Fail, verbs(func(d *backends.VerbsDevice) { d.QoS.ECN = []int{0} }), ""},
		{"GST-QOS-035", g, checks.Warn, verbs(func(d *backends.VerbsDevice) { d.QoS.Kept = nil }), ""},
		{"GST-QOS-035", g, checks.Warn, verbs(func(d *backends.VerbsDevice) { d.QoS.Buffers = make([]int, 8) }), ""},
		{"GST-QOS-035", g, checks.Unknown, verbs(func(d *backends.VerbsDevice) { d.QoS = nil }), ""},
		{"GST-CNT-026", p, checks.Warn, func(f *checks.Facts) { thePair(f).CNPs = ptr(int64(3)) }, "PAIR-LOSS-011"},
		{"GST-CNT-026", p, checks.Fail, func(f *checks.Facts) { thePair(f).Retries = ptr(int64(3)) }, "PAIR-LOSS-011"},
		{"GST-NVSMI-027", g, checks.Fail, guest(func(g *backends.Guest) { g.NVIDIA.GPUs = nil }), ""},
		{"GST-NVSMI-027", g, checks.Fail, guest(func(g *backends.Guest) {
			g.NVIDIA, g.PCI = nil, append(g.PCI, backends.GuestDevice{Address: "0000:0c:00.0", Vendor: "10de", Device: "20b5"})
		}), ""},
		{"GST-VGPULIC-038", g, checks.Fail, guest(func(g *backends.Guest) {
			g.NVIDIA.Devices[0].VGPU, g.NVIDIA.Devices[0].License = true, "Unlicensed (Restricted)"
			g.NVIDIA.LicenseServers = []backends.LicenseServer{{Host: "dls.example", Port: "443", Open: true}, {Host: "dls.example", Port: "80"}}
		}), ""},
		{"GST-VGPULIC-038", g, checks.Warn, guest(func(g *backends.Guest) {
			g.NVIDIA.Devices[0].VGPU, g.NVIDIA.Devices[0].License = true, "Unlicensed (Unrestricted)"
		}), ""},
		{"GST-VGPUDRV-041", g, checks.Fail, vgpuGuest("580.65.06", "570.133.10-1OEM.800.1.0.20613240"), ""},
		{"GST-VGPUDRV-041", g, checks.Warn, vgpuGuest("535.129.03", "570.133.10-1OEM.800.1.0.20613240"), ""},
		{"GST-VGPUDRV-041", g, checks.Unknown, vgpuGuest("570.133.20", ""), ""},
		{"GST-VGPUDRV-041", g, checks.Fail, func(f *checks.Facts) {
			vgpuGuest("570.133.20", "570.133.10-1OEM.800.1.0.20613240")(f)
			theGuest(f).NVIDIA.VGPUDriver = new(bool)
		}, ""},
		{"GST-PERSIST-039", g, checks.Warn, guest(func(g *backends.Guest) { g.NVIDIA.Devices[0].Persistent = new(bool) }), ""},
		{"GST-GPUP2P-040", g, checks.Warn, guest(func(g *backends.Guest) {
			g.NVIDIA.Devices = append(g.NVIDIA.Devices, g.NVIDIA.Devices[0])
			g.NVIDIA.P2P = map[string]string{"GPU0 GPU1": "OK", "GPU1 GPU0": "CNS"}
		}), ""},
		{"GST-PEERMEM-028", g, checks.Warn, guest(func(g *backends.Guest) { g.Loaded = append(g.Loaded, "nvidia_peermem", "nv_peer_mem") }), ""},
		{"GST-PEERMEM-028", g, checks.Fail, guest(func(g *backends.Guest) { g.NVIDIA.Peermem = "" }), ""},
		{"GST-PVLSPCI-050", p, checks.Fail, guest(func(g *backends.Guest) { g.PCI = g.PCI[:2] }), "GST-LSPCI-003"},
		{"GST-DMESG-051", p, checks.Fail, guest(func(g *backends.Guest) { g.KernelLog = []string{"Call Trace:"} }), ""},
		{"GST-TOPO-029", g, checks.Warn, func(f *checks.Facts) { // below one root port of the host PHB is correct
			guest(func(g *backends.Guest) { g.NVIDIA.Topology["mlx5_0 GPU0"] = "PHB" })(f)
			theHost(f).GPUs[0].RootPort, theHost(f).GPUs[0].Switches = "0000:40:03.0", nil
		}, "HOST-GPU-ROOT-016"},
		{"GST-TOPO-029", g, checks.Fail, guest(func(g *backends.Guest) { g.NVIDIA.Topology["mlx5_0 GPU0"] = "SYS" }), ""},
		{"GST-CONTAINER-030", p, checks.Fail, guest(func(g *backends.Guest) {
			g.Containers = []backends.Container{{Name: "ngc", Libraries: backends.Libraries{MOFED: true}, Devices: true, IPCLock: true,
				HostNet: true}}
		}), ""},
		{"GST-CONTAINER-030", p, checks.Fail, image(func(e *backends.Engine) {
			e.Inside["rdma:1"] = backends.Libraries{Version: "51mlnx1-1.51246", MOFED: true}
		}), ""},
		{"GST-CONTAINER-030", p, checks.Unknown, image(func(e *backends.Engine) { e.Inside = nil }), ""},
		{"GST-CTRFLAGS-031", p, checks.Fail, guest(func(g *backends.Guest) { g.Containers = []backends.Container{{Name: "ngc", Devices: true}} }),
			""},
		{"GST-FWD-032", p, checks.Fail, guest(func(g *backends.Guest) {
			g.Forwarding = &backends.Forwarding{Kubernetes: true, IPForward: true, Policy: "DROP"}
		}), ""},
		{"GST-SECBOOT-033", g, checks.Warn, guest(func(g *backends.Guest) {
			g.SecureBoot, g.KernelLog = ptr(true), []string{"Loading of unsigned module is rejected"}
		}), ""},
		{"GST-KHDR-034", s, checks.Fail, guest(func(g *backends.Guest) { g.Headers, g.MOFED = ptr(false), "MLNX_OFED_LINUX-5.8" }),
			"GST-OFED-024"},
	}
}

func pairMutations() []mutation {
	pair := func(change func(p *checks.PairFacts)) func(*checks.Facts) {
		return func(f *checks.Facts) { change(thePair(f)) }
	}
	speed := func(gbps float64, v perftest.Verdict) func(*checks.Facts) {
		return pair(func(p *checks.PairFacts) {
			p.Measured[0].AchievedGbps, p.Measured[0].Verdict, p.Measured[0].Hint = gbps, v, "look"
			p.BothWays, p.GPU = ptr(1.9*gbps), ptr(0.95*gbps)
		})
	}
	return []mutation{
		{"PAIR-PING-001", p, checks.Warn, pair(func(p *checks.PairFacts) { p.Loss = ptr(0.5) }), ""},
		{"PAIR-PING-001", p, checks.Fail, pair(func(p *checks.PairFacts) { p.Loss = ptr(1.0) }), ""},
		{"PAIR-MTU-002", p, checks.Warn, pair(func(p *checks.PairFacts) { p.Payload = 4172 }), ""},
		{"PAIR-MTU-002", p, checks.Fail, pair(func(p *checks.PairFacts) { p.Payload = 1472 }), ""},
		{"PAIR-ARP-004", p, checks.Fail, pair(func(p *checks.PairFacts) { p.PeerMAC = "0e:00:00:00:00:03" }), ""},
		{"PAIR-HOSTS-005", p, checks.Warn, func(f *checks.Facts) { theVM(f).Host = f.Inventory.VMs[0].Host }, ""},
		{"PAIR-BW-006", p, checks.Warn, speed(92, perftest.VerdictWarn), ""},
		{"PAIR-BW-006", p, checks.Fail, speed(94, perftest.VerdictFail), ""},
		{"PAIR-BW-BIDIR-007", p, checks.Warn, pair(func(p *checks.PairFacts) { p.BothWays = ptr(150.0) }), ""},
		{"PAIR-BW-BIDIR-007", p, checks.Fail, pair(func(p *checks.PairFacts) { p.BothWays = ptr(100.0) }), ""},
		{"PAIR-LAT-008", p, checks.Warn, pair(func(p *checks.PairFacts) { p.Measured[1].Verdict = perftest.VerdictWarn }), ""},
		{"PAIR-LAT-TAIL-009", p, checks.Warn, pair(func(p *checks.PairFacts) { p.Measured[1].Rows[0].P999Us = 10 }), ""},
		{"PAIR-LAT-TAIL-009", p, checks.Fail, pair(func(p *checks.PairFacts) { p.Measured[1].Rows[0].P999Us = 40 }), ""},
		{"PAIR-FALLBACK-010", p, checks.Fail, pair(func(p *checks.PairFacts) { p.RDMAPackets = ptr(int64(0)) }), ""},
		{"PAIR-FALLBACK-010", p, checks.Warn, pair(func(p *checks.PairFacts) { p.RDMAPackets, p.Measured[1].AchievedUs = nil, 45 }), ""},
		{"PAIR-LOSS-011", p, checks.Fail, pair(func(p *checks.PairFacts) { p.Retries = ptr(int64(9)) }), "GST-CNT-026"},
		{"PAIR-GDR-012", g, checks.Warn, pair(func(p *checks.PairFacts) { p.GPU = ptr(60.0) }), ""},
		{"PAIR-GDR-012", g, checks.Fail, pair(func(p *checks.PairFacts) { p.GPUErr = "Couldn't allocate MR" }), ""},
		{"PAIR-NCCL-013", g, checks.Warn, pair(func(p *checks.PairFacts) { p.NCCL = "NET/IB" }), ""},
		{"PAIR-NCCL-013", g, checks.Fail, pair(func(p *checks.PairFacts) { p.NCCL = "NET/Socket" }), ""},
		{"PAIR-SYM-014", p, checks.Warn, speed(88, perftest.VerdictPass), "PAIR-MATRIX-015"},
		{"PAIR-MATRIX-015", p, checks.Fail, speed(60, perftest.VerdictPass), "PAIR-SYM-014"},
	}
}

// vgpuGuest adds a licensed vGPU and a driver to the guest, and a vGPU Manager to its host.
func vgpuGuest(driver, manager string) func(*checks.Facts) {
	return func(f *checks.Facts) {
		vgpus("NVD-AIE_ESXi_8.0.0_Driver", manager, "grid_a100d-80c")(f)
		n := theGuest(f).NVIDIA
		n.Driver, n.Devices[0].VGPU, n.Devices[0].License = driver, true, "Licensed (Expiry: 2027-1-1)"
	}
}
