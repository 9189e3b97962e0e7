package transcript_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/rdma-setup/rdma-setup/backends/transcript"
	"github.com/rdma-setup/rdma-setup/backends/transcript/esxi"
	"github.com/rdma-setup/rdma-setup/backends/transcript/firmware"
	"github.com/rdma-setup/rdma-setup/backends/transcript/klog"
	"github.com/rdma-setup/rdma-setup/backends/transcript/scan/scantest"
)

// own returns the tools whose fixtures are in this directory; the families esxi, firmware and klog have their own fixtures and
// tests.
func own() scantest.Tools {
	tools := scantest.Tools{}
	for _, tool := range transcript.Tools() {
		tools[tool.ID] = func(text string) any { return tool.Parse(text) }
	}
	for _, family := range []scantest.Tools{esxi.Tools(), firmware.Tools(), klog.Tools()} {
		for id := range family {
			delete(tools, id)
		}
	}
	return tools
}

func TestGolden(t *testing.T) { scantest.Golden(t, "testdata", own()) }

func TestForeign(t *testing.T) { scantest.Score(t, own()) }

func TestMutations(t *testing.T) {
	scantest.Hold(t, "testdata", own(), map[string][]string{
		"": {"ethtool_s/flat", "ibdev2netdev/flat", "lspci/flat", "mlnx_qos/flat", "nvidia_smi/flat"},
		// The line of dashes shows that the test finished.
		"no dash line": {"ib_read_bw", "ib_read_lat", "ib_send_bw", "ib_send_lat", "ib_write_bw", "ib_write_lat"},
		"one long line": {"ethtool_s/after-login", "ib_read_lat/fault-version", "ib_write_bw/cm-disconnect", "ib_write_bw/no-heading",
			"ib_write_bw/fault-versions-conflict", "ibv_devinfo/list", "ibv_devinfo/provider-missing", "lsmod/proc", "lspci/v-flags", "nvidia_smi_q"},
	})
}

// contractTools are the ids that scripts rely on.
const contractTools = `dmesg esxcfg_module esxcfg_nics esxcfg_vmknic esxcli_hardware_pci_list esxcli_hardware_pci_pcipassthru_list
esxcli_network_firewall_ruleset_list esxcli_network_firewall_ruleset_rule_list esxcli_network_nic_get esxcli_network_nic_list
esxcli_network_nic_pauseparams_list esxcli_network_nic_stats_get esxcli_network_sriovnic_list esxcli_network_sriovnic_vf_list
esxcli_rdma_device_list esxcli_rdma_device_protocol_list esxcli_rdma_device_vmknic_list esxcli_software_vib_install esxcli_software_vib_list
esxcli_system_module_parameters_list esxcli_system_settings_advanced_list esxcli_system_version_get esxcli_vm_process_list esxi_lspci
ethtool_i ethtool_s flint ib_read_bw ib_read_lat ib_send_bw ib_send_lat ib_write_bw ib_write_lat ibdev2netdev ibstat ibstatus
ibv_devices ibv_devinfo ibv_rc_pingpong ip_addr lsmod lspci mlnx_qos mlxconfig mlxfwmanager mlxfwreset mst nvidia_smi
nvidia_smi_q nvidia_smi_topo ofed_info rdma_link show_gids vmware_v vsphere_error`

func TestTools(t *testing.T) {
	var ids []string
	for _, tool := range transcript.Tools() {
		ids = append(ids, tool.ID)
	}
	if want := strings.Fields(contractTools); !slices.Equal(ids, want) {
		t.Errorf("got %v, want %v", ids, want)
	}
}

// TestNothingOfTheTool parses an empty text, a shell's error message and words from long noise with every tool: all fail except the
// kernel log.
func TestNothingOfTheTool(t *testing.T) {
	for _, tool := range transcript.Tools() {
		for _, text := range []string{"", "\n \r\n", "-bash: " + tool.ID + ": command not found\n", "root@vm-07:~# " + tool.ID + "\n",
			"E_ D{?yRc?Ql\nae95 x\n"} {
			if r := tool.Parse(text); r.Failed() != (tool.ID != "dmesg") {
				t.Errorf("%s: %q: failed %v", tool.ID, text, r.Failed())
			}
		}
	}
}

func TestParseFails(t *testing.T) {
	if _, err := transcript.Parse("no_such_tool", strings.NewReader("")); err == nil || !strings.Contains(err.Error(), "no_such_tool") {
		t.Errorf("unknown tool: %v", err)
	}
	broken := errors.New("the disk is gone")
	if _, err := transcript.Parse("lsmod", iotest.ErrReader(broken)); !errors.Is(err, broken) {
		t.Errorf("broken reader: %v", err)
	}
}
