package transcript_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends/transcript"
)

// fuzzTool feeds anything to one parser: it must return, its value must marshal, keep its id and hold no null list of
// messages; a text that is not understood is an error and nothing else is.
func fuzzTool(f *testing.F, id string) {
	paths, err := filepath.Glob(filepath.Join("testdata", id, "*.txt"))
	if err != nil || len(paths) == 0 {
		f.Fatalf("no fixtures of %s (%v)", id, err)
	}
	for _, p := range paths {
		text, err := os.ReadFile(p)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
		f.Add(strings.Join(strings.Fields(string(text)), " "))
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := transcript.Parse(id, strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		data, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		var v struct {
			Tool             string
			Warnings, Errors []struct{ Code string }
		}
		if err := json.Unmarshal(data, &v); err != nil {
			t.Fatal(err)
		}
		if v.Tool != id || v.Warnings == nil || v.Errors == nil || r.Failed() != (len(v.Errors) > 0) {
			t.Errorf("envelope %+v", v)
		}
	})
}

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
