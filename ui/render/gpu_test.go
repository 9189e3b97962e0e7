package render_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/checks/perftest"
	"github.com/rdma-setup/rdma-setup/ui/render"
	"github.com/rdma-setup/rdma-setup/ui/theme"
	"github.com/rdma-setup/rdma-setup/wizard/report"
)

// Results with GPU memory are next to those with host memory, with the GPUs, their path to the NIC and the share.
func TestGPUMemoryInTheTerminal(t *testing.T) {
	r := base()
	r.Mode = "gpudirect"
	r.Measurements = []perftest.Measurement{gpuMemory(30.4, perftest.VerdictFail,
		"topology, not settings: GPU0 and mlx5_0 of vm-01 are at SYS")}
	r.NCCL = &report.NCCL{Env: []report.Variable{{Name: "NCCL_NET_GDR_LEVEL", Value: "LOC"}, {Name: "NCCL_IB_GID_INDEX", Value: "3"}},
		Why: []string{"the path through host memory is faster"}}
	var b bytes.Buffer
	if err := render.Terminal(&b, r, theme.Theme{}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"GPU0 (PIX) -> GPU1 (PHB): 32 % of host memory's 95.8 Gb/s", "hint: topology, not settings",
		"NCCL_NET_GDR_LEVEL=LOC\n", "NCCL_IB_GID_INDEX=3\n", "the path through host memory is faster"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}
