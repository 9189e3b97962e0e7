package recipe_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
)

// Cluster features that no longer work for a VM are noted; dynamic devices keep HA.
func TestGPUDirectPoliciesAreNoted(t *testing.T) {
	const ha, drs = "cannot restart it on another host", "is fully automated but cannot move it"
	for name, c := range map[string]struct {
		cluster backends.Cluster
		backing string
		want    []string
	}{
		"HA":            {backends.Cluster{HA: true}, "fixed", []string{ha}},
		"DRS by itself": {backends.Cluster{DRS: true, DRSMode: "fullyAutomated"}, "fixed", []string{drs}},
		"DRS by hand":   {backends.Cluster{DRS: true, DRSMode: "manual"}, "fixed", nil},
		"the VM is an exception": {backends.Cluster{DRS: true, DRSMode: "fullyAutomated", DRSOverride: map[string]string{"vm-01": "manual"}},
			"fixed", nil},
		"both, dynamic devices move": {backends.Cluster{HA: true, DRS: true, DRSMode: "fullyAutomated"}, "dynamic", nil},
	} {
		inv := newGPUs(3)
		a := gpuAnswers(inv)
		a.VMs = a.VMs[:1]
		a.GPUDirect.Backing, a.GPUDirect.GPUs = c.backing, map[string]answers.VMGPUs{"vm-01": {Whole: []answers.PCI{nearGPU}}}
		c.cluster.Name = inv.VMs[0].Cluster
		inv.Clusters = []backends.Cluster{c.cluster}
		var got []string
		for _, n := range mustBuild(t, a, inv, plan.Options{}).Notes {
			for _, policy := range []string{ha, drs} {
				if strings.Contains(n, policy) {
					got = append(got, policy)
				}
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
