package catalogue_test

import (
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/catalogue"
)

func TestKubernetes(t *testing.T) {
	cluster := func() *backends.Kubernetes {
		w := backends.KubeNode{Ready: true, OS: "Rocky Linux 9", Kernel: "5.14.0", Kubelet: "v1.29.3", Runtime: "containerd://1.7", GPUs: 1, RDMA: map[string]int{"rdma/hca": 63}}
		cp, a, b := w, w, w
		cp.Name, a.Name, b.Name = "cp", "w-1", "w-2"
		cp.ControlPlane, cp.Kernel, cp.GPUs, cp.RDMA = true, "6.1.0", 0, nil
		return &backends.Kubernetes{Context: "lab", Nodes: []backends.KubeNode{cp, a, b}, MPIJob: []string{"v2beta1"}}
	}
	for _, f := range catalogue.Kubernetes(cluster()) {
		if f.Status != checks.Pass || f.Source == "" || f.Evidence == "" {
			t.Errorf("a sound cluster: %+v", f)
		}
	}
	for _, tt := range []struct {
		name, id string
		want     checks.Status
		change   func(*backends.Kubernetes)
	}{
		{"a node is not ready (RDG Kubernetes with vGPU and PVRDMA)", "KUBE-NODE-001", checks.Fail, func(k *backends.Kubernetes) { k.Nodes[1].Ready, k.Nodes[1].Why = false, "gone" }},
		{"one worker is no job", "KUBE-WORKERS-002", checks.Fail, func(k *backends.Kubernetes) { k.Nodes[1].Cordoned = true }},
		{"no cluster at all", "KUBE-WORKERS-002", checks.Fail, func(k *backends.Kubernetes) { k.Nodes = nil }},
		{"an operator of old (RDG Kubernetes with vGPU and PVRDMA, v1alpha2)", "KUBE-OPERATOR-003", checks.Warn, func(k *backends.Kubernetes) { k.MPIJob = []string{"v1alpha2"} }},
		{"no operator", "KUBE-OPERATOR-003", checks.Fail, func(k *backends.Kubernetes) { k.MPIJob = nil }},
		{"a worker without GPUs", "KUBE-GPU-004", checks.Warn, func(k *backends.Kubernetes) { k.Nodes[2].GPUs = 0 }},
		{"the device plugin on some workers only", "KUBE-RDMA-005", checks.Warn, func(k *backends.Kubernetes) { k.Nodes[2].RDMA = nil }},
		{"no device plugin is a choice", "KUBE-RDMA-005", checks.Pass, func(k *backends.Kubernetes) { k.Nodes[1].RDMA, k.Nodes[2].RDMA = nil, nil }},
		{"BGP does not pass (RDG Kubernetes with vGPU and PVRDMA, TCP 179)", "KUBE-CNI-007", checks.Fail, func(k *backends.Kubernetes) { k.Calico = &backends.Calico{Wanted: 3, Ready: 1} }},
		{"Calico is well", "KUBE-CNI-007", checks.Pass, func(k *backends.Kubernetes) { k.Calico = &backends.Calico{Wanted: 3, Ready: 3} }},
		{"the Network Operator has no policy", "KUBE-POLICY-008", checks.Warn, func(k *backends.Kubernetes) { k.Network = &backends.NICPolicy{} }},
		{"a policy is not ready", "KUBE-POLICY-008", checks.Fail, func(k *backends.Kubernetes) {
			k.Network = &backends.NICPolicy{State: "notReady", Behind: []string{"x"}}
		}},
		{"what a policy asks for is on no worker", "KUBE-RDMA-005", checks.Fail, func(k *backends.Kubernetes) {
			k.Network = &backends.NICPolicy{State: "ready", Resources: []string{"nvidia.com/hostdev"}}
		}},
		{"what a policy asks for is there", "KUBE-RDMA-005", checks.Pass, func(k *backends.Kubernetes) {
			k.Network = &backends.NICPolicy{State: "ready", Resources: []string{"rdma/hca"}}
		}},
		{"kernels differ", "KUBE-ALIKE-006", checks.Warn, func(k *backends.Kubernetes) { k.Nodes[2].Kernel = "5.15.0" }},
	} {
		k := cluster()
		tt.change(k)
		worst, seen := checks.Pass, false
		for _, f := range catalogue.Kubernetes(k) {
			if f.ID == tt.id {
				seen = true
				if f.Status != checks.Pass {
					worst = f.Status
				}
			}
		}
		if !seen || worst != tt.want {
			t.Errorf("%s: %s says %s, want %s", tt.name, tt.id, worst, tt.want)
		}
	}
}
