package cmd_test

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends/lab"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
	"github.com/rdma-setup/rdma-setup/backends/testclass"
	"github.com/rdma-setup/rdma-setup/checks/perftest"
	"github.com/rdma-setup/rdma-setup/wizard/report"
)

// second adds to vm-01 a GPU on the same switch as its first, and to vm-02 a GPU at the other socket.
func second(s *world.State) {
	for n, name := range []string{"vm-01", "vm-02"} {
		v := s.VM(name)
		h := s.Host(v.Host)
		g := *h.PCIDevice("0000:af:00.0")
		if d := h.PCIDevice("0000:3c:00.0"); n == 0 && d != nil {
			g = *d
			g.Address = "0000:3d:00.0"
			h.PCI = append(h.PCI, &g)
		}
		if !slices.ContainsFunc(v.Devices, func(d *world.Passthrough) bool { return d.PCI == g.Address }) {
			v.Devices = append(v.Devices, &world.Passthrough{Key: int32(13000 + len(v.Devices)), PCI: g.Address, Vendor: g.Vendor, Device: g.Device,
				Slot: v.NextSlot()})
		}
	}
}

// On the same switch, GPU memory is as fast as host memory; at the other socket it is slower, and the hint says that no setting
// fixes that.
func TestBenchComparesGPUMemoryWithHostMemory(t *testing.T) {
	testclass.Full(t)
	t.Parallel()
	for scenario, want := range map[string]struct {
		code        int
		verdict     perftest.Verdict
		hint, level string
		between     []string
	}{
		"gpudirect-done": {0, perftest.VerdictPass, "", "PHB", []string{
			"vm-01: bandwidth between its GPUs at the slowest pair (GPU0 to GPU1): 25.2 GB/s in one direction, 35.3 GB/s in both, 11.0 GB/s " +
				"without P2P",
			"vm-02: bandwidth between its GPUs at the slowest pair (GPU0 to GPU1): 11.0 GB/s in one direction, 15.4 GB/s in both, 11.0 GB/s " +
				"without P2P; " +
				"P2P is not enabled between GPU0 and GPU1: see GST-GPUP2P-040",
		}},
		"gpudirect-far": {1, perftest.VerdictFail, "topology, not settings", "LOC", nil},
	} {
		t.Run(scenario, func(t *testing.T) {
			t.Parallel()
			l := openLab(t, lab.Options{Scenario: scenario, Hosts: 2, VMs: 2, Dir: t.TempDir()})
			l.World().View(second)
			env := environment(l, t.TempDir())
			env["RDMA_SETUP_GUEST_TIMEOUT"] = "3m"
			out, errs, code := inProcess(env, "bench", "-f", filepath.Join(l.Dir(), "answers-gpudirect.yaml"), "-o", "json")
			if code != want.code {
				t.Fatalf("exit %d\n%s", code, errs)
			}
			var r report.Report
			if err := json.Unmarshal([]byte(out), &r); err != nil {
				t.Fatal(err)
			}
			seen := 0
			for _, m := range r.Measurements {
				if m.Test == perftest.WriteBandwidth && m.Verdict != perftest.VerdictPass {
					t.Errorf("host memory: %s, %s", m.Verdict, m.Hint)
				}
				if m.Test != perftest.WriteBandwidthGPU {
					continue
				}
				seen++
				if m.Verdict != want.verdict || !strings.Contains(m.Hint, want.hint) || m.HostGbps < 90 || m.GPU == nil {
					t.Errorf("%s -> %s: %s, %.1f of %.1f Gb/s; %s", m.From, m.To, m.Verdict, m.AchievedGbps, m.HostGbps, m.Hint)
				}
			}
			if seen != 2 {
				t.Errorf("%d pairs with GPU memory", seen)
			}
			between := strings.Join(r.Notes, "\n")
			for _, w := range want.between {
				if !strings.Contains(between, w) {
					t.Errorf("%q is not in the notes:\n%s", w, between)
				}
			}
			text, _, _ := inProcess(env, "check", "-f", filepath.Join(l.Dir(), "answers-gpudirect.yaml"), "--pairs", "ring")
			if want.between != nil && !strings.Contains(text, "\nnote: "+want.between[0]) {
				t.Errorf("check --pairs does not name the bandwidth between GPUs:\n%s", text)
			}
			if r.NCCL == nil {
				t.Fatalf("nothing is said of NCCL: %s", errs)
			}
			level := ""
			for _, v := range r.NCCL.Env {
				if v.Name == "NCCL_NET_GDR_LEVEL" {
					level = v.Value
				}
			}
			if level != want.level {
				t.Errorf("level %q: %+v", level, r.NCCL)
			}
		})
	}
}
