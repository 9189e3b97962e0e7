package esxi_test

import (
	"testing"

	"github.com/rdma-setup/rdma-setup/backends/transcript/esxi"
	"github.com/rdma-setup/rdma-setup/backends/transcript/scan/scantest"
)

func fuzz(f *testing.F, tool string) {
	scantest.Fuzz(f, "testdata", tool, esxi.Tools()[tool])
}

func FuzzModuleOptionsOf(f *testing.F) { fuzz(f, "esxcfg_module") }
func FuzzPCIList(f *testing.F)         { fuzz(f, "esxcli_hardware_pci_list") }
func FuzzPassthruList(f *testing.F)    { fuzz(f, "esxcli_hardware_pci_pcipassthru_list") }
func FuzzRulesetList(f *testing.F)     { fuzz(f, "esxcli_network_firewall_ruleset_list") }
func FuzzRuleList(f *testing.F)        { fuzz(f, "esxcli_network_firewall_ruleset_rule_list") }
func FuzzVIBChangeOf(f *testing.F)     { fuzz(f, "esxcli_software_vib_install") }
func FuzzVIBList(f *testing.F)         { fuzz(f, "esxcli_software_vib_list") }
func FuzzParameterList(f *testing.F)   { fuzz(f, "esxcli_system_module_parameters_list") }
func FuzzOptionList(f *testing.F)      { fuzz(f, "esxcli_system_settings_advanced_list") }
func FuzzVersionOf(f *testing.F)       { fuzz(f, "esxcli_system_version_get") }
func FuzzVMList(f *testing.F)          { fuzz(f, "esxcli_vm_process_list") }
func FuzzLSPCI(f *testing.F)           { fuzz(f, "esxi_lspci") }
func FuzzReleaseOf(f *testing.F)       { fuzz(f, "vmware_v") }
