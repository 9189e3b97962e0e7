package nic_test

import (
	"testing"

	"github.com/rdma-setup/rdma-setup/backends/transcript/esxi/nic"
	"github.com/rdma-setup/rdma-setup/backends/transcript/scan/scantest"
)

func TestGolden(t *testing.T) { scantest.Golden(t, "testdata", nic.Tools()) }

func TestForeign(t *testing.T) { scantest.Score(t, nic.Tools()) }

func TestMutations(t *testing.T) {
	oneLine := []string{"esxcli_network_nic_get/one-line", "esxcli_network_nic_list/one-line", "esxcli_network_nic_stats_get/one-line",
		"esxcli_network_nic_list/rows-only"} // rows alone do not show whether they are wrapped
	scantest.Hold(t, "testdata", nic.Tools(), map[string][]string{
		"terminal of 72 columns": oneLine, "terminal of 80 columns": oneLine, "terminal of 100 columns": oneLine,
		"one long line": {"esxcfg_nics/glued", "esxcfg_nics/wrapped-80"},
		"blank lines between": {"esxcfg_nics/wrapped", "esxcfg_nics/wrapped-80", "esxcfg_vmknic", "esxcli_network_nic_get/cx5",
			"esxcli_network_nic_list/wrapped-100", "esxcli_network_nic_pauseparams_list/wrapped", "esxcli_rdma_device_list/wrapped"},
	})
}

func TestNoise(t *testing.T) { scantest.Noise(t, "testdata", nic.Tools()) }
