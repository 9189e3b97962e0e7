package catalogue_test

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/nic/mlx5"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/perftest"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// connectX knows the names of the drivers of the cards in these tests.
var connectX = mlx5.Family{}

var noon = time.Date(2025, 5, 6, 12, 0, 0, 0, time.UTC)

func ptr[T any](v T) *T { return &v }

// healthy returns a fabric of three hosts with one VM each, in which every fact is known and every check passes. In gpudirect the
// card is passed through.
func healthy(mode answers.Mode) *checks.Facts {
	a := answers.Default(mode)
	a.VCenter.Thumbprint = "AB:CD"
	a.Hosts = answers.Hosts{Datacenter: "Lyon", Cluster: "hpc"}
	a.NIC.Speed = 100000
	a.QoS.Lossless = answers.LosslessPFC
	a.Confirmed = answers.Confirmed{SwitchPFC: true, Above4G: true}
	inv := &backends.Inventory{
		VCenter: backends.VCenter{URL: "https://vc.lyon.example/sdk", Version: "8.0.3", Build: "1", User: "ops", Thumbprint: "AB:CD",
			Clock: noon, ClockAsked: noon, DVSVersions: []string{"7.0.3", "8.0.0", "8.0.3", "9.0.0"}},
		Clusters: []backends.Cluster{{Name: "hpc", Datacenter: "Lyon", EVC: ptr("")}},
	}
	f := &checks.Facts{Answers: a, Inventory: inv, Now: noon, Changed: map[string]time.Time{}}
	sw := backends.Switch{Name: a.Switch.Name, Datacenter: "Lyon", Version: "8.0.3", Uplinks: []string{"Uplink 1"}, MTU: 9000,
		Members: map[string]backends.Member{}, Note: backends.SwitchMark, Health: &backends.SwitchHealth{Enabled: true}}
	for i := range 3 {
		name := fmt.Sprintf("lyon-%d", i)
		a.Hosts.Names = append(a.Hosts.Names, name)
		inv.Hosts = append(inv.Hosts, host(name, i, mode))
		if mode != answers.GPUDirect {
			sw.Members[name] = backends.Member{PNICs: []string{"vmnic4"}, Status: "up"}
		} else {
			sw.Members[name] = backends.Member{PNICs: []string{"vmnic1"}, Status: "up"}
		}
		vm := fmt.Sprintf("node-%d", i)
		a.VMs = append(a.VMs, answers.VM{Name: vm, IP: answers.Address{Prefix: netip.MustParsePrefix(fmt.Sprintf("10.9.0.%d/24", i+1))}})
		inv.VMs = append(inv.VMs, machine(vm, name, i, mode, a))
		inv.Guests = append(inv.Guests, system(vm, i, mode))
	}
	inv.Switches = []backends.Switch{sw}
	inv.PortGroups = []backends.PortGroup{{Name: a.Switch.PortGroup, Switch: sw.Name, VLAN: "0", Active: []string{"Uplink 1"},
		Binding: "earlyBinding", Ports: 8, Free: 5, Security: &backends.PortSecurity{}}}
	f.Baseline = copied(inv)
	for i := range 3 {
		for j := range 3 {
			if i != j {
				f.Pairs = append(f.Pairs, pair(i, j, mode))
			}
		}
	}
	return f
}

// copied returns a copy that is deep enough for tests that change hosts, VMs and guests.
func copied(inv *backends.Inventory) *backends.Inventory {
	out := *inv
	out.Hosts, out.VMs, out.Guests = nil, nil, nil
	for _, h := range inv.Hosts {
		h.System = nil
		h.NICs = append([]backends.NIC(nil), h.NICs...)
		out.Hosts = append(out.Hosts, h)
	}
	out.VMs = append(out.VMs, inv.VMs...)
	for _, g := range inv.Guests {
		g.Interfaces = append([]backends.Interface(nil), g.Interfaces...)
		out.Guests = append(out.Guests, g)
	}
	return &out
}

func host(name string, i int, mode answers.Mode) backends.Host {
	h := backends.Host{
		Name: name, Datacenter: "Lyon", Cluster: "hpc", Version: "8.0.3", Build: "77", State: "connected", BootTime: noon.Add(-time.Hour),
		Options:  map[string]string{"Net.PVRDMAVmknic": "vmk0"},
		Firewall: map[string]backends.Ruleset{"pvrdma": {Enabled: true, AllIP: true}},
		Services: map[string]backends.Service{"TSM-SSH": {}},
		NTP:      []string{"ntp.lyon.example"}, NTPActive: true, PowerPolicy: "static", PowerPolicies: []string{"static", "dynamic"},
		Lockdown: "disabled", GraphicsType: "shared", System: hostFacts(i), CPUModel: "Xeon", Sockets: 2, Cores: 48, CPUMHz: 2500,
		MemoryMB: 1 << 20, MemoryUsedMB: 1 << 17, Hyperthreads: true,
		VMKs: []backends.VMKernelNIC{{Device: "vmk0", IP: fmt.Sprintf("10.1.0.%d", i+1), PrefixLen: 24, MTU: 1500, Switch: "vSwitch0",
			Roles: []string{"management"}}},
		NICs: []backends.NIC{{Device: "vmnic0", MAC: fmt.Sprintf("02:00:00:00:00:%02x", i), SpeedMbps: 25000, MaxSpeedMbps: 25000,
			FullDuplex: true, Driver: connectX.Driver(), DriverVersion: "4.23.0.66-2vmw", Firmware: "14.32.1010",
			PCI: "0000:17:00.0", Vendor: "15b3", PCIDeviceID: "1015", Switch: "vSwitch0", Roles: []string{"management"}}},
		PCI: []backends.PCIDevice{
			{Address: "0000:40:01.0", Class: "0604"}, {Address: "0000:41:00.0", Class: "0604", Parent: "0000:40:01.0"},
			{Address: "0000:42:00.0", Class: "0604", Parent: "0000:41:00.0"}, {Address: "0000:42:01.0", Class: "0604", Parent: "0000:41:00.0"},
			{Address: "0000:43:00.0", Vendor: "15b3", Device: "1017", Class: "0200", Parent: "0000:42:00.0", Capable: true},
			{Address: "0000:44:00.0", Vendor: "10de", Device: "20b5", Class: "0302", Parent: "0000:42:01.0", Capable: true, Enabled: true,
				Active: true},
			{Address: "0000:00:14.0", Vendor: "8086", Device: "a1af", Class: "0c03", Capable: true},
		},
		GPUs: []backends.GPU{{PCI: "0000:44:00.0", Model: "A100 80 GB", Vendor: "10de", Device: "20b5", MemoryMB: 81920, Capable: true,
			Enabled: true, Active: true, RootPort: "0000:40:01.0", Switches: []string{"0000:41:00.0", "0000:42:01.0"}}},
	}
	if mode == answers.GPUDirect {
		h.PCI[4].Enabled, h.PCI[4].Active = true, true
		h.GPUs[0].UsedBy = fmt.Sprintf("node-%d", i)
		return h
	}
	h.NICs = append(h.NICs, backends.NIC{Device: "vmnic4", MAC: fmt.Sprintf("02:00:00:00:01:%02x", i), SpeedMbps: 100000, MaxSpeedMbps: 100000,
		FullDuplex: true, Driver: connectX.Driver(), DriverVersion: "4.23.0.66-2vmw",
		Firmware: "16.35.8008", PCI: "0000:43:00.0", Vendor: "15b3", PCIDeviceID: "1017", RDMADevice: "vmrdma0", RoCEv1: true, RoCEv2: true,
		RDMAState: "active", Switch: "RDMA-DVS", Eligible: true,
		SRIOV: &backends.SRIOV{Capable: true, Enabled: true, Active: true, Max: 16, Requested: 8, VFs: 8}})
	return h
}

func hostFacts(i int) *backends.HostSystem {
	peers := map[string]backends.Fact[backends.Peer]{}
	for j := range 3 {
		if j != i {
			peers[fmt.Sprintf("lyon-%d", j)] = backends.FactOf(backends.Peer{Payload: 1472})
		}
	}
	params := func(p map[string]string) backends.Fact[backends.Module] {
		return backends.FactOf(backends.Module{Params: p})
	}
	return &backends.HostSystem{
		Modules: map[string]backends.Fact[backends.Module]{
			connectX.Driver(): params(map[string]string{"pfctx": "0x08", "pfcrx": "0x08", "trust_state": "2", "ecn": "1", "max_vfs": "0,8"}),
			connectX.RDMA():   params(map[string]string{"dscp_force": "26"}),
		},
		Pause:      backends.FactOf(map[string]backends.PauseSpec{"vmnic4": {}}),
		DCB:        map[string]backends.Fact[backends.DCB]{"vmnic4": backends.FactOf(backends.DCB{Supported: true, PFC: [8]bool{3: true}})},
		Stats:      map[string]backends.Fact[backends.PortStats]{"vmnic4": backends.FactOf(backends.PortStats{Over: time.Second})},
		Neighbours: backends.FactOf(map[string]backends.Neighbour{"vmnic4": {Switch: "leaf-1", Port: "Eth1/1"}}),
		VFs:        map[string]backends.Fact[[]backends.VF]{"vmnic4": backends.FactOf([]backends.VF{{ID: 0, Active: true}, {ID: 1}})},
		Peers:      peers,
		VIBs: backends.FactOf(map[string]backends.VIB{connectX.VIBs()[0]: {Version: "4.23", Acceptance: "VMwareCertified"},
			"nmst": {Version: "4.22", Acceptance: "PartnerSupported"}}),
		Acceptance: backends.FactOf("PartnerSupported"), Resync: backends.FactOf(int64(0)), BootDevice: backends.FactOf("disk"),
		SecureBoot: ptr(true), Log: []string{},
		Firmware: map[string]backends.Firmware{"0000:43:00.0": {PSID: "MT_0000000008", Slot: backends.Slot{Gen: 3, Lanes: 16},
			Current: map[string]string{"NUM_OF_VFS": "16", "SRIOV_EN": "True(1)", "LINK_TYPE_P1": "ETH(2)", "ATS_ENABLED": "True(1)"},
			Next:    map[string]string{"SRIOV_EN": "True(1)"}}},
	}
}

func machine(name, on string, i int, mode answers.Mode, a *answers.Answers) backends.VM {
	v := backends.VM{
		Name: name, Path: "/Lyon/vm/" + name, Datacenter: "Lyon", Cluster: "hpc", Host: on, Power: "poweredOn", State: "connected", Hardware: 19,
		Firmware: "efi",
		CPUs:     16, MemoryMB: 1 << 18, Reservation: 1 << 18, MemoryLocked: true, Latency: "high", CPUReserved: ptr(int64(40000)),
		NodeAffinity: ptr(""), Tools: "guestToolsRunning",
		IPs: []string{fmt.Sprintf("10.1.1.%d", i+1)}, Extra: map[string]string{},
		Adapters: []backends.Adapter{{Label: "Network adapter 1", Type: "vmxnet3", MAC: fmt.Sprintf("00:50:56:00:00:%02x", i),
			PortGroup: "VM Network", Connected: true, Start: true}},
	}
	rdma := backends.Adapter{Label: "Network adapter 2", MAC: rdmaMAC(i), PortGroup: a.Switch.PortGroup, Switch: a.Switch.Name,
		Connected: true, Start: true}
	switch mode {
	case answers.PVRDMA:
		rdma.Type, rdma.Protocol = "pvrdma", a.PVRDMA.Protocol
		v.Adapters = append(v.Adapters, rdma)
	case answers.SRIOV:
		rdma.Type, rdma.PF, rdma.GuestMTU = "sriov", "0000:43:00.0", true
		v.Adapters = append(v.Adapters, rdma)
		v.Extra["pciPassthru0.pfId"] = "00000:067:00.0"
	case answers.GPUDirect:
		v.Passthrough = []string{"0000:44:00.0", "0000:43:00.0"}
		v.Extra = map[string]string{
			"pciPassthru0.id": "00000:068:00.0", "pciPassthru1.id": "00000:067:00.0", "pciPassthru.use64bitMMIO": "TRUE",
			"pciPassthru.64bitMMIOSizeGB": "256", "pciPassthru.allowP2P": "TRUE", "pciPassthru.RelaxACSforP2P": "TRUE",
		}
	}
	return v
}

func rdmaMAC(i int) string { return fmt.Sprintf("00:50:56:00:01:%02x", i) }

func system(name string, i int, mode answers.Mode) backends.Guest {
	persistent := true
	g := backends.Guest{
		VM: name, User: "ops", OS: "ubuntu", Version: "22.04", Pretty: "Ubuntu 22.04", Kernel: "5.15.0", Sudo: "nopasswd",
		Packages: map[string]string{"rdma-core": "39", "ibverbs-providers": "39", "ibverbs-utils": "39", "rdmacm-utils": "39",
			"infiniband-diags": "39", "perftest": "4.4"},
		Loaded:    []string{"ib_umad", "rdma_cm", "rdma_ucm", "vmw_pvrdma", "mlx5_core", "mlx5_ib", "ib_uverbs"},
		Available: []string{"vmw_pvrdma", "mlx5_core"},
		Interfaces: []backends.Interface{
			{Name: "ens160", MAC: fmt.Sprintf("00:50:56:00:00:%02x", i), MTU: 1500, Up: true, Addresses: []string{fmt.Sprintf("10.1.1.%d/24", i+1)},
				DHCP: true, Persistent: true},
			{Name: "ens224", MAC: rdmaMAC(i), MTU: 9000, Up: true, Addresses: []string{fmt.Sprintf("10.9.0.%d/24", i+1)}, Persistent: true,
				Config: "90-rdma.yaml"},
		},
		RDMA: []backends.VerbsDevice{{Name: "rdma0", Driver: "vmw_pvrdma", Interface: "ens224", MAC: rdmaMAC(i), State: "PORT_ACTIVE",
			LinkLayer: "Ethernet", ActiveMTU: 4096, Class: ptr(106),
			GIDs: []backends.GID{{Index: 1, Type: "RoCE v2", IPv4: fmt.Sprintf("10.9.0.%d", i+1)}}}},
		MemlockKB: -1, Perftest: "6.06", Persist: backends.Persist{Modules: []string{"vmw_pvrdma"}, Reload: "vmw_pvrdma"},
		PCI: []backends.GuestDevice{{Address: "0000:0b:00.0", Vendor: "15ad", Device: "07b0"},
			{Address: "0000:13:00.0", Vendor: "15ad", Device: "07b0"},
			{Address: "0000:13:00.1", Vendor: "15ad", Device: "0820", Name: "VMware Paravirtual RDMA controller"},
			{Address: "0000:1b:00.0", Vendor: "15b3", Device: "1018", Name: "ConnectX-5 Virtual Function"}},
		KernelLog: []string{}, Headers: ptr(true), SecureBoot: ptr(false), HugePages: ptr(0), ClockSkew: ptr(0),
		Firewall: &backends.GuestFirewall{}, Containers: []backends.Container{},
		Forwarding: &backends.Forwarding{},
		NVIDIA: &backends.NVIDIA{GPUs: []string{"A100"}, Devices: []backends.GuestGPU{{Name: "A100", Persistent: &persistent}},
			Peermem: "nvidia_peermem", Topology: map[string]string{"mlx5_0 GPU0": "PIX"}},
	}
	if mode != answers.PVRDMA {
		g.RDMA[0].Name, g.RDMA[0].Driver = "mlx5_0", "mlx5_core"
	}
	if mode == answers.GPUDirect {
		kept := &backends.QoSSpec{Priority: 3, DSCP: 26, ECN: true}
		g.RDMA[0].QoS = &backends.PortQoS{Trust: "dscp", PFC: []int{3}, DSCP: map[int]int{26: 3}, Buffers: []int{0, 0, 0, 1, 0, 0, 0, 0},
			ECN: []int{3}, Kept: kept}
	}
	return g
}

func pair(i, j int, mode answers.Mode) checks.PairFacts {
	return checks.PairFacts{
		From: fmt.Sprintf("node-%d", i), To: fmt.Sprintf("node-%d", j), Loss: ptr(0.0), Payload: 8972, PeerMAC: rdmaMAC(j), BothWays: ptr(180.0),
		GPU: ptr(93.0), NCCL: "NET/IB/GDRDMA",
		Retries: ptr(int64(0)), CNPs: ptr(int64(0)), RDMAPackets: ptr(int64(1000)),
		Measured: []perftest.Measurement{
			{Test: perftest.SendBandwidth, AchievedGbps: 96, ExpectedGbps: 98, Verdict: perftest.VerdictPass},
			{Test: perftest.SendLatency, AchievedUs: 2, ExpectedUs: 3, Verdict: perftest.VerdictPass,
				Rows: []perftest.Row{{Bytes: 2, Iterations: 100000, TypicalUs: 2, P999Us: 5}}},
		},
	}
}
