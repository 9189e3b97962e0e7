package perftest_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/checks/perftest"
)

// altered returns the text of a test in which figure has changed the measured values of each size; column is the first of these
// values.
func altered(text string, column int, figure func(bytes int, v float64) float64) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		f := strings.Fields(line)
		bytes, err := strconv.Atoi(append(f, "")[0])
		if err != nil || len(f) < 5 {
			continue
		}
		for k := column; k < len(f); k++ {
			v, err := strconv.ParseFloat(f[k], 64)
			if err == nil {
				f[k] = fmt.Sprintf("%.2f", figure(bytes, v))
			}
		}
		lines[i] = " " + strings.Join(f, "   ")
	}
	return strings.Join(lines, "\n")
}

// largestFirst moves the last row before the first.
func largestFirst(text string) string {
	first, last := strings.Index(text, " 2 "), strings.LastIndex(text, " 8388608 ")
	end := last + strings.Index(text[last:], "\n") + 1
	return text[:first] + text[last:end] + text[first:last] + text[end:]
}

func recorded(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The base curves are a model of a ConnectX-4 Lx with 25G; each case breaks one thing that the report must notice.
func TestRecordedCurves(t *testing.T) {
	bw, lat := recorded(t, "send_bw_25g.txt"), recorded(t, "send_lat_25g.txt")
	times := func(from, to int, by float64) func(int, float64) float64 {
		return func(bytes int, v float64) float64 {
			if bytes >= from && bytes <= to {
				return v * by
			}
			return v
		}
	}
	most := func(from int, limit float64) func(int, float64) float64 {
		return func(bytes int, v float64) float64 {
			if bytes >= from {
				return min(v, limit)
			}
			return v
		}
	}
	type row struct {
		name, tool, text string
		want             perftest.Verdict
		hint, not        string // text that the hint must contain, and must not
	}
	cases := []row{
		{"sound", "ib_send_bw", bw, "pass", "", ""},
		{"sound latency", "ib_send_lat", lat, "pass", "", ""},
		{"3 Gb/s above 64 KiB", "ib_send_bw", altered(bw, 2, times(131072, 1<<30, 0.125)), "fail", "drops from 128 KiB on", ""},
		{"7 % less beyond the plateau", "ib_send_bw", altered(bw, 2, times(2<<20, 1<<30, 0.93)), "warn", "drops from 2 MiB on", ""},
		{"message rate collapsed", "ib_send_bw", altered(bw, 2, times(64, 32768, 0.02)), "fail", "message rate collapses from 64 B to 32 KiB",
			""},
		{"hole at 128 KiB", "ib_send_bw", altered(bw, 2, times(131072, 131072, 0.3)), "fail", "hole at 128 KiB", ""},
		{"hole at 1 KiB", "ib_send_bw", altered(bw, 2, times(1024, 1024, 0.3)), "fail", "hole at 1 KiB", ""},
		{"hole at 64 B", "ib_send_bw", altered(bw, 2, times(64, 64, 0.3)), "fail", "hole at 64 B", ""},
		{"hole at 8 KiB", "ib_send_bw", altered(bw, 2, times(8192, 8192, 0.3)), "fail", "hole at 8 KiB", ""},
		{"91.6 % with RDMA MTU 4096", "ib_send_bw", altered(bw, 2, most(0, 22.9)), "warn", "PCIe", "MTU"},
		{"what RDMA MTU 1024 gives", "ib_send_bw", strings.Replace(altered(bw, 2, most(0, 22.95)), "4096[B]", "1024[B]", 1), "warn",
			"IB MTU of 1024", ""},
		{"more than RDMA MTU 1024 leaves", "ib_send_bw", strings.Replace(altered(bw, 2, most(0, 23.4)), "4096[B]", "1024[B]", 1), "warn",
			"contradicts", ""},
		{"latency times 5 from 4 B", "ib_send_lat", altered(lat, 2, times(4, 1<<30, 5)), "fail", "latency is too high from 4 B on", ""},
		{"latency times 5 from 64 KiB", "ib_send_lat", altered(lat, 2, times(65536, 1<<30, 5)), "fail", "from 64 KiB on", ""},
		{"latency spike at 256 B", "ib_send_lat", altered(lat, 2, times(256, 256, 4)), "fail", "at 256 B", ""},
		{"long tail", "ib_send_lat", strings.Replace(lat, "2.63                   3.76", "12.6                   31.0", 1), "warn",
			"p99 of 2 B is 12.60 us", ""},
		{"a drop that fails behind a deeper dip that warns", "ib_send_bw", altered(altered(bw, 2, times(8192, 8192, 0.7)), 2,
			times(2<<20, 1<<30, 0.78)), "fail", "drops from 2 MiB on", ""},
		{"latency, largest message first", "ib_send_lat", largestFirst(lat), "pass", "", ""},
		{"latency of 64 KiB alone", "ib_send_lat",
			lat[:strings.Index(lat, " 2 ")] + lat[strings.Index(lat, " 65536 "):strings.Index(lat, " 131072 ")] + "---\n", "unknown",
			"measure every size with -a", "TCP"},
		{"cut short", "ib_send_bw", bw[:strings.LastIndex(bw, " 65536")], "unknown", "ends before its last line", ""},
		{"small messages alone", "ib_send_bw", bw[:strings.Index(bw, " 512 ")], "unknown", "measure every size with -a", ""},
	}
	for _, c := range cases {
		m := perftest.Recorded(c.tool, c.text, "sriov", 25_000)
		if m.Verdict != c.want || !strings.Contains(m.Hint, c.hint) || c.not != "" && strings.Contains(m.Hint, c.not) {
			t.Errorf("%s: %s, want %s; hint %q", c.name, m.Verdict, c.want, m.Hint)
		}
	}
}

// gids returns the header and the addresses of a test with these GIDs, as perftest prints them.
func gids(index int, local, remote string) string {
	return fmt.Sprintf(" Link type       : Ethernet\n GID index       : %d\n local address: LID 0000 QPN 0x0042 PSN 0x000001\n GID: %s\n"+
		" remote address: LID 0000 QPN 0x0043 PSN 0x000002\n GID: %s\n", index, local, remote)
}

// A failed test is blamed on what its output shows, not on the usual suspect of its last message.
func TestRecordedCauses(t *testing.T) {
	const (
		zero    = "00:00:00:00:00:00:00:00:00:00:00:00:00:00:00:00"
		linked  = "254:128:00:00:00:00:00:00:02:17:00:255:254:00:00:09"
		mapped  = "00:00:00:00:00:00:00:00:00:00:255:255:10:01:00:09"
		mapped2 = "00:00:00:00:00:00:00:00:00:00:255:255:10:01:00:10"
		head    = " #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]\n"
		rule    = "---------------------------------------------------------------------------------------\n"
		status  = " Completion with error at client\n Failed status 12: wr_id 0 syndrom 0x81\nscnt=128, ccnt=0\n"
		cuda    = "creating CUDA Ctx\nmaking it the current CUDA Ctx\n"
	)
	peermem, not := "load nvidia-peermem", "memlock"
	for name, c := range map[string]struct {
		mode, text string
		want       perftest.Verdict
		hint, not  string
	}{
		"GPU memory, EFAULT": {"gpudirect",
			cuda + "Couldn't allocate MR with error=14\nfailed to create mr\n Couldn't create IB resources\n", "fail", peermem, not},
		"GPU memory, no errno": {"gpudirect",
			"initializing CUDA\nallocated GPU buffer address at 01\nCouldn't allocate MR\nfailed to create mr\n", "fail", peermem, not},
		"GPU memory, vGPU and RDMA CM": {"gpudirect",
			cuda + "Couldn't allocate MR\nFailed to create MR\nFailed to initialize RDMA contexts.\nERRNO: Bad address.\n", "fail", peermem, not},
		"GPU memory by DMA-BUF, EPROTONOSUPPORT": {"gpudirect",
			"initializing CUDA\nusing DMA-BUF for GPU buffer address\nCalling ibv_reg_dmabuf_mr(offset=0) for QP #0\n" +
				"Couldn't allocate MR with error=93\n", "fail", "lacks DMA-BUF", not},
		"GPU memory by DMA-BUF, EFAULT": {"gpudirect", cuda + "using DMA-BUF for GPU buffer address\nCouldn't allocate MR with error=14\n",
			"fail", "open kernel modules", not},
		"host memory, ENOMEM": {"sriov", "Couldn't allocate MR with error=12\n", "fail", "memlock", "GPU"},
		"host memory, EINVAL": {"sriov", "Couldn't allocate MR with error=22\n", "fail", "errno 22", not},
		"link-local to IPv4": {"sriov", gids(1, linked, mapped) + rule + head + status, "fail",
			"local GID index 1 is link-local, the peer uses an IPv4 GID", "UDP 4791"},
		"lost packets": {"sriov", gids(3, mapped, mapped2) + rule + head + status, "fail", "UDP 4791", "pvrdma"},
		"lost packets of PVRDMA": {"pvrdma", gids(3, mapped, mapped2) + rule + head + status, "fail",
			"ruleset pvrdma (TCP 28250 to 28761) and the vmknic", ""},
		"no GID at both ends": {"sriov",
			gids(0, zero, zero) + "Failed to modify QP 59 to RTR\n Unable to Connect the HCA's through the link\n", "fail",
			"GID index 0 is all zero on both ends", "MTU"},
		"no GID at this end": {"sriov", gids(0, zero, mapped) + "Failed to modify QP 59 to RTR\n", "fail", "all zero on this end", ""},
		"RTR of PVRDMA":      {"pvrdma", gids(1, mapped, mapped2) + "Failed to modify QP 59 to RTR\n", "fail", "ruleset pvrdma", ""},
		"counters overflowed": {"sriov", head + " 65536      -2000000001      0.00               -41.50  \t\t   -0.079155\n" + rule,
			"unknown", "shorter -D", "PCIe"},
		"NaN": {"sriov", head + " 65536      1000      0.00      -nan     -nan\n" + rule, "fail", "printed no result",
			"PCIe"},
		"more than the link carries": {"sriov", head + " 65536      1000      0.00      412.70     0.787\n" + rule, "unknown",
			"more than a link of 100 Gb/s carries", ""},
		"a further column": {"sriov", " Mtu : 4096[B]\n" + strings.Replace(head, "MsgRate", "BW min[Gb/sec]   MsgRate", 1) +
			" 65536      5000     97.10     96.60    60.30    0.184250\n" + rule, "pass", "", ""},
		"an InfiniBand port": {"sriov",
			" Link type       : IB\n" + head + " 65536      11261706         0.00               97.00 \t\t   0.185\n" + rule, "fail",
			"set LINK_TYPE to ETH", ""},
		"the provider is missing": {"pvrdma",
			"libibverbs: Warning: couldn't load driver 'libvmw_pvrdma-rdmav34.so': libvmw_pvrdma-rdmav34.so: cannot open shared object file\n" +
				"No IB devices found\n", "fail", "its library for vmw_pvrdma: install the distribution's ibverbs-providers", ""},
	} {
		m := perftest.Recorded("ib_write_bw", c.text, c.mode, 100_000)
		said := m.Hint
		if said == "" {
			said = m.Error
		}
		if m.Verdict != c.want || !strings.Contains(said, c.hint) || c.not != "" && strings.Contains(said, c.not) {
			t.Errorf("%s: %s, want %s; %q", name, m.Verdict, c.want, said)
		}
	}
}

// RoCE SR-IOV Setup and Performance Study on vSphere 7.x (VMware, 2022), figures 21 and 22: 100G, RDMA MTU 4096.
func TestPublishedFiguresPass(t *testing.T) {
	gbps := []float64{0.0828, 0.17, 0.35, 0.70, 1.27, 2.78, 5.57, 10.25, 22.16, 43.69, 64.76, 88.17, 93.84, 95.30, 96.56, 96.63, 96.73, 96.39,
		94.98, 95.20, 95.51, 95.85, 96.15}
	us := []float64{2.04, 2.03, 2.03, 2.04, 2.07, 2.14, 2.18, 2.62, 2.68, 2.83, 3.11, 3.67, 4.41, 5.86, 7.98, 10.66, 16.04, 27.89, 49.92,
		95.21, 182.59, 356.99, 706.95}
	bw, lat := perftest.Measurement{Test: perftest.SendBandwidth, MTU: 4096}, perftest.Measurement{Test: perftest.SendLatency, MTU: 4096}
	for i := range gbps {
		bw.Rows = append(bw.Rows, perftest.Row{Bytes: 2 << i, Iterations: 1000, AvgGbps: gbps[i]})
		lat.Rows = append(lat.Rows, perftest.Row{Bytes: 2 << i, Iterations: 1000, TypicalUs: us[i], P99Us: us[i] * 1.12, P999Us: us[i] * 2.5})
	}
	for _, m := range []*perftest.Measurement{&bw, &lat} {
		perftest.Judge(m, "sriov", perftest.Fabric{LinkMbps: 100_000, LatencyUs: 2.04})
		if m.Verdict != perftest.VerdictPass || m.Hint != "" {
			t.Errorf("%s: %s %s", m.Test, m.Verdict, m.Hint)
		}
	}
	if bw.AchievedGbps != 96.73 || lat.AchievedUs != 2.04 {
		t.Errorf("%.2f Gb/s, %.2f us", bw.AchievedGbps, lat.AchievedUs)
	}
}

// A narrow slot, a VLAN tag and further switches lower the expectation, and the report says so.
func TestFactsOfThePathLowerTheExpectation(t *testing.T) {
	bw, lat := recorded(t, "send_bw_25g.txt"), recorded(t, "send_lat_25g.txt")
	judge := func(tool, text string, f perftest.Fabric) perftest.Measurement {
		m := perftest.Recorded(tool, text, "sriov", f.LinkMbps)
		perftest.Judge(&m, "sriov", f)
		return m
	}
	m := judge("ib_send_bw", bw, perftest.Fabric{LinkMbps: 100_000, Slot: perftest.Slot{Host: "esx-01", Device: "vmnic2", Gen: 3, Lanes: 4}})
	if m.Verdict != perftest.VerdictWarn || !strings.Contains(m.Hint, "vmnic2 of esx-01 runs as Gen3 x4") || m.ExpectedGbps > 28 ||
		!strings.Contains(m.Why, "slot") {
		t.Errorf("slot: %s, %.1f expected, %q, %q", m.Verdict, m.ExpectedGbps, m.Hint, m.Why)
	}
	m = judge("ib_send_bw", bw, perftest.Fabric{LinkMbps: 100_000, Slot: perftest.Slot{Gen: 3, Lanes: 16}})
	if m.Verdict != perftest.VerdictFail || strings.Contains(m.Hint, "runs as") {
		t.Errorf("a slot that does not explain it: %s %q", m.Verdict, m.Hint)
	}
	if m = judge("ib_send_bw", bw, perftest.Fabric{LinkMbps: 25_000, VLAN: true}); !strings.Contains(m.Why, "VLAN tag") {
		t.Errorf("VLAN: %q", m.Why)
	}
	late := altered(lat, 2, func(_ int, v float64) float64 { return v + 1.5 })
	if m = judge("ib_send_lat", late, perftest.Fabric{LinkMbps: 25_000}); m.Verdict != perftest.VerdictWarn {
		t.Errorf("without hops: %s", m.Verdict)
	}
	if m = judge("ib_send_lat", late, perftest.Fabric{LinkMbps: 25_000, Hops: 2}); m.Verdict != perftest.VerdictPass || m.ExpectedUs != 5 ||
		!strings.Contains(m.Why, "2 further switches") {
		t.Errorf("with hops: %s, %.1f us, %q", m.Verdict, m.ExpectedUs, m.Why)
	}
}

// Curves stored beside the checkout are compared with the verdicts stored with them.
func TestCurvesBesideTheCheckout(t *testing.T) {
	names, err := filepath.Glob("../../../shared/curves/*.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		var want struct {
			Tool     string   `json:"tool"`
			Mode     string   `json:"mode"`
			LinkGbps float64  `json:"link_gbps"`
			Verdict  []string `json:"verdict"`
			Why      string   `json:"why"`
		}
		b, err := os.ReadFile(name)
		if err == nil {
			err = json.Unmarshal(b, &want)
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(strings.TrimSuffix(name, ".json") + ".txt")
		if err != nil {
			t.Fatal(err)
		}
		m := perftest.Recorded(want.Tool, string(text), want.Mode, int(1000*want.LinkGbps))
		if !slices.Contains(want.Verdict, string(m.Verdict)) {
			t.Errorf("%s: %s, want one of %v (%s): %s", filepath.Base(name), m.Verdict, want.Verdict, want.Why, m.Hint)
		}
		if m.MTU == 4096 && strings.Contains(m.Hint, "1024") {
			t.Errorf("%s: the hint blames an MTU of 1024: %s", filepath.Base(name), m.Hint)
		}
	}
}
