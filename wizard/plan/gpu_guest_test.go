package plan_test

import (
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/wizard/plan"
)

// A share of a GPU and PVRDMA work side by side, without GPUDirect RDMA (guide 003).
func TestVGPUIsSaid(t *testing.T) {
	inv := newInventory(2)
	inv.VMs[1].Passthrough = []string{"vgpu grid_a100-40c"}
	p, err := plan.Build(newAnswers(inv), inv, plan.Options{})
	if err != nil {
		t.Fatal(err)
	}
	notes := strings.Join(p.Notes, "\n")
	for _, want := range []string{"vm-02: vGPU grid_a100-40c", "NCCL_IB_GDR_LEVEL=0"} {
		if !strings.Contains(notes, want) {
			t.Errorf("no %q in %q", want, notes)
		}
	}
	if strings.Contains(notes, "vm-01: vGPU") {
		t.Errorf("vm-01 has none: %q", notes)
	}
}
