package console

import (
	"slices"
	"strings"
)

// removed names commands, flags and checks of earlier releases, and what to use instead.
var removed = map[string]string{
	"check --for":               "read rdma-setup help releases, and the upgrade paths of the VMware Product Interoperability Matrix",
	"check --kube":              "ask the cluster: kubectl get nodes,mpijobs; kubectl apply --dry-run=server -f FILE checks a job",
	"check HOST-PORT-28250-009": "nothing on a host can test the port for another host; read PAIR-FALLBACK-010, which a closed port fails",
	"check GST-LICPORT-042":     "read GST-VGPULIC-038: its evidence says whether the guest reaches the license servers",
	"check --watch":             "run check from a timer: -o prometheus --out FILE is for node_exporter",
	"generate gpu-operator":     "follow NVIDIA's documentation of the GPU Operator; guests that were set up have their driver",
	"generate mpijob --kube": "use --api v1alpha2 or --no-wait for old MPI operators, and check the job: kubectl apply " +
		"--dry-run=server -f FILE",
	"generate network-operator": "follow NVIDIA's documentation of the Network Operator",
	"support":                   "attach the files that are named in: rdma-setup help troubleshooting",
}

// removedTools are tools whose output parse no longer reads, because this program does not read it itself.
const removedTools = `dmesg esxcfg_module esxcfg_nics esxcfg_vmknic esxcli_hardware_pci_list esxcli_hardware_pci_pcipassthru_list
esxcli_network_firewall_ruleset_list esxcli_network_firewall_ruleset_rule_list esxcli_network_nic_get esxcli_network_nic_list
esxcli_network_nic_pauseparams_list esxcli_network_nic_stats_get esxcli_network_sriovnic_list esxcli_network_sriovnic_vf_list
esxcli_rdma_device_list esxcli_rdma_device_protocol_list esxcli_rdma_device_vmknic_list esxcli_software_vib_list
esxcli_system_module_parameters_list esxcli_system_settings_advanced_list esxcli_system_version_get esxcli_vm_process_list esxi_lspci
ethtool_i ethtool_s ibdev2netdev ibstat ibstatus ibv_devices ibv_rc_pingpong lsmod mlxfwreset nvidia_smi rdma_link show_gids vmware_v`

// Removed returns the error about a command, flag, check or tool of an earlier release, such as "check --watch"; nil for any other word.
func Removed(what string) error {
	if instead, ok := removed[what]; ok {
		return Usage(instead, "%s was removed", what)
	}
	if tool, ok := strings.CutPrefix(what, "parse "); ok && slices.Contains(strings.Fields(removedTools), tool) {
		return Usage("esxcli --formatter=json, ip -j and rdma -j print JSON themselves; the other tools: rdma-setup parse --list",
			"%s was removed", what)
	}
	return nil
}
