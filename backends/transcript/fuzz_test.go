package transcript_test

import (
	"testing"

	"github.com/rdma-setup/rdma-setup/backends/transcript/scan/scantest"
)

func fuzzTool(f *testing.F, id string) { scantest.Fuzz(f, "testdata", id, own()[id]) }

func FuzzIBSendBW(f *testing.F)     { fuzzTool(f, "ib_send_bw") }
func FuzzIBWriteBW(f *testing.F)    { fuzzTool(f, "ib_write_bw") }
func FuzzIBReadBW(f *testing.F)     { fuzzTool(f, "ib_read_bw") }
func FuzzIBSendLat(f *testing.F)    { fuzzTool(f, "ib_send_lat") }
func FuzzIBWriteLat(f *testing.F)   { fuzzTool(f, "ib_write_lat") }
func FuzzIBReadLat(f *testing.F)    { fuzzTool(f, "ib_read_lat") }
func FuzzPingPong(f *testing.F)     { fuzzTool(f, "ibv_rc_pingpong") }
func FuzzIBVDevices(f *testing.F)   { fuzzTool(f, "ibv_devices") }
func FuzzIBVDevInfo(f *testing.F)   { fuzzTool(f, "ibv_devinfo") }
func FuzzIBStat(f *testing.F)       { fuzzTool(f, "ibstat") }
func FuzzIBStatus(f *testing.F)     { fuzzTool(f, "ibstatus") }
func FuzzIBDev2Netdev(f *testing.F) { fuzzTool(f, "ibdev2netdev") }
func FuzzRDMALink(f *testing.F)     { fuzzTool(f, "rdma_link") }
func FuzzShowGIDs(f *testing.F)     { fuzzTool(f, "show_gids") }
func FuzzOFEDInfo(f *testing.F)     { fuzzTool(f, "ofed_info") }
func FuzzIPAddr(f *testing.F)       { fuzzTool(f, "ip_addr") }
func FuzzEthtoolI(f *testing.F)     { fuzzTool(f, "ethtool_i") }
func FuzzEthtoolS(f *testing.F)     { fuzzTool(f, "ethtool_s") }
func FuzzMlnxQoS(f *testing.F)      { fuzzTool(f, "mlnx_qos") }
func FuzzLsmod(f *testing.F)        { fuzzTool(f, "lsmod") }
func FuzzLspci(f *testing.F)        { fuzzTool(f, "lspci") }
func FuzzNvidiaSMI(f *testing.F)    { fuzzTool(f, "nvidia_smi") }
func FuzzNvidiaQuery(f *testing.F)  { fuzzTool(f, "nvidia_smi_q") }
func FuzzNvidiaTopo(f *testing.F)   { fuzzTool(f, "nvidia_smi_topo") }
