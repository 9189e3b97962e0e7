package esxcli

// Commands lists the commands of the lab's esxcli. To add a command, add a row.
func Commands() []Command {
	nic := Param{Name: "nicname", Long: "nic-name", Short: "n", Help: "The name of the NIC", Required: true}
	device := Param{Name: "device", Long: "device", Short: "d", Help: "Name of the RDMA device", Required: true}
	module := Param{Name: "module", Long: "module", Short: "m", Help: "The name of the module", Required: true}
	ruleset := Param{Name: "rulesetid", Long: "ruleset-id", Short: "r", Help: "The id of the ruleset"}
	needed := func(p Param) Param { p.Required = true; return p }
	text := func(name, long, short, help string) Param {
		return Param{Name: name, Long: long, Short: short, Help: help}
	}
	flag := func(name, long, short, help string) Param {
		return Param{Name: name, Long: long, Short: short, Help: help, Flag: true}
	}
	return append(hardware(nic, module), []Command{
		{Path: path("rdma device list"), Help: "List RDMA devices", Run: rdmaDeviceList},
		{Path: path("rdma device protocol list"), Help: "List protocols of RDMA devices", Run: rdmaProtocolList},
		{Path: path("rdma device vmknic list"), Help: "List vmknics of RDMA devices", Run: rdmaVmknicList},
		{Path: path("rdma device stats get"), Help: "Statistics of an RDMA device", Params: []Param{device}, Run: rdmaStats},
		{Path: path("network nic list"), Help: "List physical NICs", Run: nicList},
		{Path: path("network nic get"), Help: "Properties of a physical NIC", Params: []Param{nic}, Run: nicGet},
		{Path: path("network nic stats get"), Help: "Counters of a physical NIC", Params: []Param{nic}, Run: nicStats},
		{Path: path("network nic pauseParams list"), Help: "Pause parameters of the NICs",
			Params: []Param{text("nicname", "nic-name", "n", "The name of the NIC")}, Run: pauseList},
		{Path: path("network nic pauseParams set"), Help: "Set pause parameters of a NIC", Writes: true, Params: []Param{nic,
			text("rx", "rx", "r", "Enable RX pause"), text("tx", "tx", "t", "Enable TX pause"), text("auto", "auto", "a", "Autonegotiation")}, Run: pauseSet},
		{Path: path("network ip interface list"), Help: "List vmkernel NICs", Run: interfaceList},
		{Path: path("network ip interface ipv4 get"), Help: "IPv4 of vmkernel NICs",
			Params: []Param{text("interfacename", "interface-name", "i", "The vmkernel NIC")}, Run: ipv4Get},
		{Path: path("network vswitch dvs vmware list"), Help: "List distributed switches", Run: dvsList},
		{Path: path("network diag ping"), Help: "Ping from a vmkernel NIC", Params: []Param{
			text("host", "host", "H", "The host to ping"), text("interface", "interface", "I", "Outgoing vmkernel NIC"),
			text("count", "count", "c", "Number of packets"), text("size", "size", "s", "Payload in bytes"),
			text("netstack", "netstack", "N", "TCP/IP stack"), text("wait", "wait", "W", "Seconds to wait"),
			flag("df", "df", "d", "Do not fragment")}, Run: ping},
		{Path: path("network firewall get"), Help: "Status of the firewall", Run: firewallGet},
		{Path: path("network firewall ruleset list"), Help: "List rulesets", Params: []Param{ruleset}, Run: rulesetList},
		{Path: path("network firewall ruleset set"), Help: "Change a ruleset", Writes: true, Params: []Param{needed(ruleset),
			text("enabled", "enabled", "e", "Enable the ruleset"), text("allowedall", "allowed-all", "a", "Allow all addresses")}, Run: rulesetSet},
		{Path: path("system settings advanced list"), Help: "List advanced options",
			Params: []Param{text("option", "option", "o", "The option"), text("tree", "tree", "t", "A part of the tree")}, Run: advancedList},
		{Path: path("system settings advanced set"), Help: "Set an advanced option", Writes: true, Params: []Param{
			{Name: "option", Long: "option", Short: "o", Help: "The option", Required: true},
			text("intvalue", "int-value", "i", "A number"), text("stringvalue", "string-value", "s", "A text"),
			flag("default", "default", "d", "Back to the default")}, Run: advancedSet},
		{Path: path("system module list"), Help: "List kernel modules", Run: moduleList},
		{Path: path("system module parameters list"), Help: "List the parameters of a module", Params: []Param{module}, Run: parameterList},
		{Path: path("system module parameters set"), Help: "Set the parameters of a module", Writes: true, Params: []Param{module,
			text("parameterstring", "parameter-string", "p", "NAME=VALUE ..."), flag("append", "append", "a", "Keep the others"),
			flag("force", "force", "f", "Do not check the names")}, Run: parameterSet},
		{Path: path("system version get"), Help: "Version of ESXi", Run: versionGet},
		{Path: path("system hostname get"), Help: "Names of the host", Run: hostnameGet},
		{Path: path("system maintenanceMode get"), Help: "Maintenance mode", Run: maintenanceGet},
		{Path: path("vsan debug resync summary get"), Help: "What vSAN has to copy", Run: resyncSummary},
		{Path: path("vm process list"), Help: "List running VMs", Run: vmList},
	}...)
}

// hardware returns the commands for images, drivers, VFs and PCI devices.
func hardware(nic, module Param) []Command {
	text := func(name, long, short, help string) Param {
		return Param{Name: name, Long: long, Short: short, Help: help}
	}
	flag := func(name, long, short, help string) Param {
		return Param{Name: name, Long: long, Short: short, Help: help, Flag: true}
	}
	needed := func(p Param) Param { p.Required = true; return p }
	many := func(p Param) Param { p.Many = true; return p }
	source := []Param{many(text("viburl", "viburl", "v", "Paths of VIBs")), text("depot", "depot", "d", "Path of an offline bundle"),
		flag("force", "force", "f", "Overlook acceptance and dependencies"), flag("nosigcheck", "no-sig-check", "", "Overlook signatures"),
		flag("maintenancemode", "maintenance-mode", "", "Pretend maintenance mode"), flag("noliveinstall", "no-live-install", "", "Install for the next boot")}
	return []Command{
		{Path: path("software vib list"), Help: "List VIBs", Params: []Param{flag("rebootingimage", "rebooting-image", "", "Of the next boot")}, Run: vibList},
		{Path: path("software vib install"), Help: "Install VIBs", Writes: true, Params: source, Run: vibInstall},
		{Path: path("software vib update"), Help: "Update VIBs", Writes: true, Params: source, Run: vibUpdate},
		{Path: path("software vib remove"), Help: "Remove VIBs", Writes: true, Params: []Param{needed(many(text("vibname", "vibname", "n", "Names of VIBs"))),
			flag("force", "force", "f", "Overlook dependencies"), flag("maintenancemode", "maintenance-mode", "", "Pretend maintenance mode"),
			flag("noliveinstall", "no-live-install", "", "Remove for the next boot")}, Run: vibRemove},
		{Path: path("software sources vib list"), Help: "List the VIBs of a depot", Params: []Param{needed(text("depot", "depot", "d", "Path of an offline bundle"))},
			Run: sourceList},
		{Path: path("software sources vib get"), Help: "Details of VIBs in a depot", Params: []Param{text("depot", "depot", "d", "Path of an offline bundle"),
			text("viburl", "viburl", "v", "Path of a VIB")}, Run: sourceGet},
		{Path: path("software acceptance get"), Help: "Acceptance level of the host", Run: acceptanceGet},
		{Path: path("software acceptance set"), Help: "Set the acceptance level", Writes: true,
			Params: []Param{needed(text("level", "level", "l", "The level"))}, Run: acceptanceSet},
		{Path: path("system module get"), Help: "A kernel module", Params: []Param{module}, Run: moduleGet},
		{Path: path("network sriovnic list"), Help: "List NICs with VFs", Run: sriovList},
		{Path: path("network sriovnic vf list"), Help: "List the VFs of a NIC", Params: []Param{nic}, Run: vfList},
		{Path: path("storage core device list"), Help: "List storage devices", Run: deviceList},
		{Path: path("network nic dcb status get"), Help: "DCB of a NIC", Params: []Param{nic}, Run: dcbGet},
		{Path: path("hardware pci list"), Help: "List PCI devices", Params: []Param{text("class", "class", "c", "Of a class, 0x0200"),
			text("mask", "mask", "m", "Mask of the class")}, Run: pciList},
		{Path: path("hardware pci pcipassthru list"), Help: "List passthrough", Run: pciPassthruList},
		{Path: path("hardware pci pcipassthru set"), Help: "Set passthrough", Writes: true, Params: []Param{
			needed(text("deviceid", "device-id", "d", "PCI address")), needed(text("enable", "enable", "e", "Pass it through")),
			flag("applynow", "apply-now", "a", "Without a reboot")}, Run: pciPassthruSet},
	}
}
