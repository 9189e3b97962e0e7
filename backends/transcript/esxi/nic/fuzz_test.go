package nic_test

import (
	"testing"

	"github.com/rdma-setup/rdma-setup/backends/transcript/esxi/nic"
	"github.com/rdma-setup/rdma-setup/backends/transcript/scan/scantest"
)

func fuzz(f *testing.F, tool string) {
	scantest.Fuzz(f, "testdata", tool, nic.Tools()[tool])
}

func FuzzCfgList(f *testing.F)      { fuzz(f, "esxcfg_nics") }
func FuzzVMKNICList(f *testing.F)   { fuzz(f, "esxcfg_vmknic") }
func FuzzGet(f *testing.F)          { fuzz(f, "esxcli_network_nic_get") }
func FuzzList(f *testing.F)         { fuzz(f, "esxcli_network_nic_list") }
func FuzzPauseList(f *testing.F)    { fuzz(f, "esxcli_network_nic_pauseparams_list") }
func FuzzStatsOf(f *testing.F)      { fuzz(f, "esxcli_network_nic_stats_get") }
func FuzzSRIOVList(f *testing.F)    { fuzz(f, "esxcli_network_sriovnic_list") }
func FuzzVFList(f *testing.F)       { fuzz(f, "esxcli_network_sriovnic_vf_list") }
func FuzzRDMAList(f *testing.F)     { fuzz(f, "esxcli_rdma_device_list") }
func FuzzProtocolList(f *testing.F) { fuzz(f, "esxcli_rdma_device_protocol_list") }
func FuzzBindingList(f *testing.F)  { fuzz(f, "esxcli_rdma_device_vmknic_list") }
