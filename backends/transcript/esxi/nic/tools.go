package nic

// Tools returns the parsers of this package by tool id.
func Tools() map[string]func(string) any {
	return map[string]func(string) any{
		"esxcfg_nics":                         func(s string) any { return CfgList(s) },
		"esxcfg_vmknic":                       func(s string) any { return VMKNICList(s) },
		"esxcli_network_nic_get":              func(s string) any { return Get(s) },
		"esxcli_network_nic_list":             func(s string) any { return List(s) },
		"esxcli_network_nic_pauseparams_list": func(s string) any { return PauseList(s) },
		"esxcli_network_nic_stats_get":        func(s string) any { return StatsOf(s) },
		"esxcli_network_sriovnic_list":        func(s string) any { return SRIOVList(s) },
		"esxcli_network_sriovnic_vf_list":     func(s string) any { return VFList(s) },
		"esxcli_rdma_device_list":             func(s string) any { return RDMAList(s) },
		"esxcli_rdma_device_protocol_list":    func(s string) any { return ProtocolList(s) },
		"esxcli_rdma_device_vmknic_list":      func(s string) any { return BindingList(s) },
	}
}
