package esxi

import "github.com/rdma-setup/rdma-setup/backends/transcript/esxi/nic"

// Tools returns the parsers of this package and of package nic by tool id.
func Tools() map[string]func(string) any {
	tools := nic.Tools()
	for id, parse := range map[string]func(string) any{
		"esxcfg_module":                             func(s string) any { return ModuleOptionsOf(s) },
		"esxcli_hardware_pci_list":                  func(s string) any { return PCIList(s) },
		"esxcli_hardware_pci_pcipassthru_list":      func(s string) any { return PassthruList(s) },
		"esxcli_network_firewall_ruleset_list":      func(s string) any { return RulesetList(s) },
		"esxcli_network_firewall_ruleset_rule_list": func(s string) any { return RuleList(s) },
		"esxcli_software_vib_install":               func(s string) any { return VIBChangeOf(s) },
		"esxcli_software_vib_list":                  func(s string) any { return VIBList(s) },
		"esxcli_system_module_parameters_list":      func(s string) any { return ParameterList(s) },
		"esxcli_system_settings_advanced_list":      func(s string) any { return OptionList(s) },
		"esxcli_system_version_get":                 func(s string) any { return VersionOf(s) },
		"esxcli_vm_process_list":                    func(s string) any { return VMList(s) },
		"esxi_lspci":                                func(s string) any { return LSPCI(s) },
		"vmware_v":                                  func(s string) any { return ReleaseOf(s) },
	} {
		tools[id] = parse
	}
	return tools
}
