package perftest_test

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/checks/perftest"
)

// gpuPair is a pair whose ends have GPUs; change fixes or breaks them.
func gpuPair(change func(client, server *perftest.GPU)) []perftest.Pair {
	pairs := pairOf(100_000)
	p := &pairs[0]
	p.Client.GPU, p.Server.GPU = &perftest.GPU{Link: "PIX"}, &perftest.GPU{Link: "PIX", Index: 1, Several: true, DMABuf: true,
		Dir: "/usr/local/bin"}
	if change != nil {
		change(p.Client.GPU, p.Server.GPU)
	}
	return pairs
}

func measureGPUs(t *testing.T, g *guests, pairs []perftest.Pair) map[string]perftest.Measurement {
	t.Helper()
	r := perftest.Runner{Shell: g, Mode: "gpudirect", Bandwidth: true, Latency: true}
	all, err := r.Measure(context.Background(), pairs)
	if err != nil {
		t.Fatal(err)
	}
	out, order := map[string]perftest.Measurement{}, []string{}
	for _, m := range all {
		out[m.Test] = m
		order = append(order, m.Test)
	}
	if want := []string{perftest.WriteBandwidth, perftest.WriteBandwidthGPU, perftest.SendLatency,
		perftest.SendLatencyGPU}; !slices.Equal(order, want) {
		t.Fatalf("measured %q", order)
	}
	return out
}

// PAIR-GDR-012: GPU memory >= 90 % of host memory passes, 50 to 90 % warns, less fails; the hint names the topology if that is the
// cause, otherwise settings.
func TestGPUMemoryIsComparedWithHostMemory(t *testing.T) {
	for _, tt := range []struct {
		name    string
		share   float64
		change  func(client, server *perftest.GPU)
		verdict perftest.Verdict
		hint    string
	}{
		{"as good", 0.99, nil, perftest.VerdictPass, ""},
		{"just good enough", 0.9, nil, perftest.VerdictPass, ""},
		{"behind, with all settings", 0.7, nil, perftest.VerdictWarn, "ACS"},
		{"staged through host memory, a key is missing", 0.3, func(_, s *perftest.GPU) { s.Keys = []string{"pciPassthru.allowP2P"} },
			perftest.VerdictFail, "vm-2 lacks pciPassthru.allowP2P"},
		{"below another root complex", 0.3, func(c, _ *perftest.GPU) { c.Link, c.Keys = "SYS", []string{"pciPassthru.allowP2P"} },
			perftest.VerdictFail, "topology, not settings: GPU0 and mlx5_0 of vm-1 are at SYS"},
		{"the host knows better than the guest", 0.3, func(_, s *perftest.GPU) {
			s.Link, s.Apart, s.Host = "PHB", true,
				"different root complexes"
		}, perftest.VerdictFail, "GPU1 and mlx5_0 of vm-2 are at different root complexes"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			all := measureGPUs(t, &guests{gbps: 96, one: 1, us: 2, gpu: tt.share}, gpuPair(tt.change))
			m := all[perftest.WriteBandwidthGPU]
			if m.Verdict != tt.verdict || math.Abs(m.AchievedGbps-96*tt.share) > 0.01 || m.ExpectedGbps != 96 || m.HostGbps != 96 {
				t.Errorf("%s, %.1f of %.1f", m.Verdict, m.AchievedGbps, m.ExpectedGbps)
			}
			if tt.hint == "" && m.Hint != "" || !strings.Contains(m.Hint, tt.hint) {
				t.Errorf("hint %q, want %q", m.Hint, tt.hint)
			}
			lat := all[perftest.SendLatencyGPU]
			if want := map[bool]perftest.Verdict{true: perftest.VerdictPass, false: perftest.VerdictWarn}[tt.share > 0.5]; lat.Verdict != want ||
				lat.HostUs != 2 {
				t.Errorf("latency %s, %.2f us", lat.Verdict, lat.AchievedUs)
			}
		})
	}
}

// The client runs the plain tool; the server counts GPUs by PCI address and uses the perftest with DMA-BUF support.
func TestGPUCommandLines(t *testing.T) {
	g := &guests{gbps: 96, one: 1, us: 2, gpu: 1}
	pairs := gpuPair(func(c, s *perftest.GPU) { *c, *s = *s, *c })
	all := measureGPUs(t, g, pairs)
	line := all[perftest.WriteBandwidthGPU].Command
	if !strings.HasPrefix(line, "CUDA_DEVICE_ORDER=PCI_BUS_ID stdbuf ") ||
		!strings.Contains(line, " /usr/local/bin/ib_write_bw --use_cuda=1 --use_cuda_dmabuf -d 'mlx5_0' ") ||
		!strings.Contains(line, "--report_gbits") {
		t.Error(line)
	}
	if line = all[perftest.SendLatencyGPU].Command; !strings.Contains(line, "ib_send_lat --use_cuda=1") ||
		strings.Contains(line, "--report_gbits") {
		t.Error(line)
	}
	if line = all[perftest.WriteBandwidth].Command; strings.Contains(line, "cuda") {
		t.Error(line)
	}
	plain := measureGPUs(t, g, gpuPair(nil))[perftest.WriteBandwidthGPU].Command
	if !strings.Contains(plain, " ib_write_bw --use_cuda=0 -d ") || strings.Contains(plain, "CUDA_DEVICE_ORDER") {
		t.Error(plain)
	}
}

func TestGPUMemoryThatCannotBeMeasured(t *testing.T) {
	all := measureGPUs(t, &guests{gbps: 96, one: 1, us: 2, gpu: 1},
		gpuPair(func(_, s *perftest.GPU) { s.Without, s.Remedy = "no perftest built with CUDA was found", "build it" }))
	if m := all[perftest.WriteBandwidthGPU]; m.Verdict != perftest.VerdictUnknown ||
		m.Error != "vm-2: no perftest built with CUDA was found" || m.Hint != "build it" {
		t.Errorf("%+v", m)
	}
	if m := all[perftest.WriteBandwidth]; m.Verdict != perftest.VerdictPass {
		t.Errorf("host memory is measured all the same: %+v", m)
	}
	all = measureGPUs(t, &guests{gbps: 96, one: 1, us: 2, gpu: 1, fail: "--use_cuda"}, gpuPair(nil))
	if m := all[perftest.WriteBandwidthGPU]; m.Verdict != perftest.VerdictFail || !strings.Contains(m.Error, "allocate MR") ||
		!strings.Contains(m.Hint, "nvidia-peermem") {
		t.Errorf("%s: %s; %s", m.Verdict, m.Error, m.Hint)
	}
	all = measureGPUs(t, &guests{gbps: 96, one: 1, us: 2, gpu: 1, fail: "ib_"}, gpuPair(nil))
	if m := all[perftest.WriteBandwidthGPU]; m.Verdict != perftest.VerdictUnknown || !strings.Contains(m.Error, "host memory failed") {
		t.Errorf("%s: %s", m.Verdict, m.Error)
	}
}

func TestNearest(t *testing.T) {
	topology := map[string]string{"mlx5_0 GPU0": "SYS", "mlx5_0 GPU1": "PXB", "mlx5_0 GPU2": "PIX", "mlx5_0 GPU3": "PIX", "mlx5_1 GPU0": "PIX"}
	for _, tt := range []struct {
		device string
		gpus   int
		index  int
		link   string
	}{{"mlx5_0", 4, 2, "PIX"}, {"mlx5_0", 2, 1, "PXB"}, {"mlx5_0", 1, 0, "SYS"}, {"mlx5_1", 4, 0, "PIX"}, {"mlx5_9", 4, 0, ""}} {
		if i, l := perftest.Nearest(topology, tt.device, tt.gpus); i != tt.index || l != tt.link {
			t.Errorf("%s of %d: GPU%d %q", tt.device, tt.gpus, i, l)
		}
	}
}
