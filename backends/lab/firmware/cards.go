package firmware

import "strings"

// ConnectX5 returns a dual-port 100G VPI card: each port can be InfiniBand or Ethernet.
func ConnectX5(pci, mac string) *Card {
	return &Card{
		PCI: pci, Ports: 2, Type: "ConnectX5", ID: 4119, Part: "MCX556A-ECU_Ax",
		Description: "ConnectX-5 VPI adapter card; EDR IB (100Gb/s) and 100GbE; dual-port QSFP28; PCIe3.0 x16; tall bracket; ROHS R6",
		PSID:        "MT_0000000009", Version: "16.35.4030", PXE: "3.6.0902", UEFI: "14.29.0015", MAC: bare(mac), Gen: 3, Lanes: 16,
		Settings: settings(2, true, 14),
	}
}

// ConnectX6Dx returns a dual-port 100G card that supports only Ethernet, and ATS.
func ConnectX6Dx(pci, mac string) *Card {
	c := &Card{
		PCI: pci, Ports: 2, Type: "ConnectX6DX", ID: 4125, Part: "MCX623106AN-CDA_Ax",
		Description: "ConnectX-6 Dx EN adapter card; 100GbE; Dual-port QSFP56; PCIe 4.0 x16; No Crypto",
		PSID:        "MT_0000000359", Version: "22.38.1002", PXE: "3.7.0201", UEFI: "14.31.0020", MAC: bare(mac), Gen: 4, Lanes: 16,
		Settings: settings(2, false, 16),
	}
	c.Settings = append(c.Settings, &Setting{Name: "ATS_ENABLED", Kind: Bool})
	return c
}

// ConnectX7 returns a card with one port of 400 Gb/s, InfiniBand or Ethernet, that supports ATS.
func ConnectX7(pci, mac string) *Card {
	c := &Card{
		PCI: pci, Ports: 1, Type: "ConnectX7", ID: 4129, Part: "MCX75310AAS-NEA_Ax",
		Description: "NVIDIA ConnectX-7 HHHL Adapter card; 400GbE / NDR IB (default mode); Single-port OSFP; PCIe 5.0 x16; Crypto Disabled; " +
			"Secure Boot Enabled;",
		PSID: "MT_0000000838", Version: "28.39.1002", PXE: "3.7.0201", UEFI: "14.32.0012", MAC: bare(mac), Gen: 5, Lanes: 16,
		Settings: settings(1, true, 16),
	}
	c.Settings = append(c.Settings, &Setting{Name: "ATS_ENABLED", Kind: Bool})
	return c
}

// BlueField2 returns a dual-port 100G DPU, which is shipped in DPU mode. In NIC mode it works like a ConnectX-6 Dx.
func BlueField2(pci, mac string, nicMode bool) *Card {
	c := ConnectX6Dx(pci, mac)
	c.Type, c.ID, c.Part, c.PSID, c.Version = "BlueField2", 41686, "MBF2M516A-CECO_Ax_Bx", "MT_0000000702", "24.35.3502"
	c.Description = "BlueField-2 E-Series DPU 100GbE Dual-Port QSFP56; PCIe Gen4 x16; Crypto and Secure Boot Enabled; 16GB on-board DDR"
	c.Settings = append(c.Settings, &Setting{Name: "INTERNAL_CPU_MODEL", Kind: Engine, Default: 1, Current: 1, Next: 1},
		&Setting{Name: "INTERNAL_CPU_OFFLOAD_ENGINE", Kind: Engine})
	if nicMode {
		c.Set("INTERNAL_CPU_OFFLOAD_ENGINE", 1)
	}
	return c
}

// ConnectX4Lx returns a dual-port 25G card that supports only Ethernet. It has no LINK_TYPE.
func ConnectX4Lx(pci, mac string) *Card {
	return &Card{
		PCI: pci, Ports: 2, Type: "ConnectX4LX", ID: 4117, Part: "MCX4121A-ACA_Ax",
		Description: "ConnectX-4 Lx EN network interface card; 25GbE dual-port SFP28; PCIe3.0 x8; ROHS R6",
		PSID:        "MT_2420110034", Version: "14.32.1010", PXE: "3.6.0502", UEFI: "14.25.0017", MAC: bare(mac), Gen: 3, Lanes: 8,
		Settings: settings(2, false, 12),
	}
}

// ConnectX6Lx returns a dual-port 25G card, which scenarios add later.
func ConnectX6Lx(pci, mac string) *Card {
	c := &Card{
		PCI: pci, Ports: 2, Type: "ConnectX6LX", ID: 4127, Part: "MCX631102AN-ADA_Ax",
		Description: "ConnectX-6 Lx EN adapter card; 25GbE; Dual-port SFP28; PCIe 4.0 x8; No Crypto",
		PSID:        "MT_0000000531", Version: "26.38.1900", PXE: "3.7.0201", UEFI: "14.31.0020", MAC: bare(mac), Gen: 4, Lanes: 8,
		Settings: settings(2, false, 16),
	}
	c.Settings = append(c.Settings, &Setting{Name: "ATS_ENABLED", Kind: Bool})
	return c
}

func bare(mac string) string { return strings.ReplaceAll(mac, ":", "") }

// settings returns the parameters in the order of mlxconfig. By factory default, SR-IOV is disabled and the ports of a VPI card
// are InfiniBand.
func settings(ports int, vpi bool, logBar int) []*Setting {
	port := func(name string, p int) string { return name + "_P" + string(rune('1'+p)) }
	list := []*Setting{
		{Name: "MEMIC_BAR_SIZE", Max: 31},
		{Name: "ROCE_NEXT_PROTOCOL", Max: 255, Default: 254},
		{Name: "PF_BAR2_EN", Kind: Bool},
		{Name: "NUM_OF_VFS", Max: MaxVFs, Default: 8},
		{Name: "NUM_OF_PF", Max: ports, Default: ports},
		{Name: "SRIOV_EN", Kind: Bool},
		{Name: "PF_LOG_BAR_SIZE", Max: logBar, Default: 5},
		{Name: "VF_LOG_BAR_SIZE", Max: logBar, Default: 1},
		{Name: "NUM_PF_MSIX", Max: 255, Default: 63},
		{Name: "NUM_VF_MSIX", Max: 255, Default: 11},
	}
	for p := range ports {
		list = append(list, &Setting{Name: port("ROCE_CC_PRIO_MASK", p), Max: 255, Default: 255})
	}
	list = append(list, &Setting{Name: "ROCE_CONTROL", Kind: Control, Default: 2})
	if vpi {
		for p := range ports {
			list = append(list, &Setting{Name: port("LINK_TYPE", p), Kind: Link, Default: 1})
		}
	}
	list = append(list,
		&Setting{Name: "EXP_ROM_UEFI_x86_ENABLE", Kind: Bool},
		&Setting{Name: "EXP_ROM_PXE_ENABLE", Kind: Bool, Default: 1},
		&Setting{Name: "ADVANCED_PCI_SETTINGS", Kind: Bool},
		&Setting{Name: "SAFE_MODE_THRESHOLD", Max: 255, Default: 10},
	)
	for _, s := range list {
		s.Current, s.Next = s.Default, s.Default
	}
	return list
}
