package cmd_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends/lab"
	"github.com/rdma-setup/rdma-setup/checks/perftest"
	"github.com/rdma-setup/rdma-setup/wizard/report"
)

// On one switch GPU memory keeps up with host memory; below the other socket it does not, and the hint says that no setting
// fixes that.
func TestBenchHoldsGPUMemoryAgainstHostMemory(t *testing.T) {
	for scenario, want := range map[string]struct {
		code        int
		verdict     perftest.Verdict
		hint, level string
	}{
		"gpudirect-done": {0, perftest.VerdictPass, "", "PHB"},
		"gpudirect-far":  {1, perftest.VerdictFail, "topology, not settings", "LOC"},
	} {
		t.Run(scenario, func(t *testing.T) {
			t.Parallel()
			l, err := lab.Start(t.Context(), lab.Options{Scenario: scenario, Hosts: 2, VMs: 2, Dir: t.TempDir()})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { l.Close() })
			env := environment(l, t.TempDir())
			env["RDMA_SETUP_GUEST_TIMEOUT"] = "3m" // a busy machine is no dead guest
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
