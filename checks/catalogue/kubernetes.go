package catalogue

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks"
)

// kubernetesScope is the scope of checks of a Kubernetes cluster; it is not part of the chain.
const kubernetesScope = "kubernetes"

// Kubernetes judges a cluster.
func Kubernetes(k *backends.Kubernetes) []checks.Finding {
	var out []checks.Finding
	add := func(id, target string, status checks.Status, evidence, remedy string) {
		out = append(out, checks.Finding{
			ID: id, Scope: kubernetesScope, Target: backends.Ref{Type: backends.TypeKubernetes, Name: target}, Status: status, Evidence: evidence, Remedy: remedy,
			Source: "RDG: RoCE accelerated ML and HPC on Kubernetes with vGPU and PVRDMA (NVIDIA/Mellanox, 2019)", Fix: string(checks.Manual),
		})
	}
	var workers []backends.KubeNode
	for _, n := range k.Nodes {
		if n.Worker() {
			workers = append(workers, n)
		}
		status, evidence := checks.Pass, "ready, "+n.Kubelet
		if !n.Ready {
			status, evidence = checks.Fail, "not ready: "+n.Why
		}
		add("KUBE-NODE-001", n.Name, status, evidence, "Inspect the node with kubectl describe node, and read the kubelet's log.")
	}
	status, evidence := checks.Pass, fmt.Sprintf("%d workers that take pods", len(workers))
	if len(workers) < 2 {
		status = checks.Fail
	}
	add("KUBE-WORKERS-002", k.Context, status, evidence, "A job over RDMA needs two workers: add nodes, or uncordon them.")

	switch {
	case slices.Contains(k.MPIJob, "v2beta1"):
		add("KUBE-OPERATOR-003", k.Context, checks.Pass, "MPIJob "+strings.Join(k.MPIJob, ", "), "")
	case len(k.MPIJob) > 0:
		add("KUBE-OPERATOR-003", k.Context, checks.Warn, "only MPIJob "+strings.Join(k.MPIJob, ", "), "Update the MPI operator, or generate jobs with --api v1alpha2.")
	default:
		add("KUBE-OPERATOR-003", k.Context, checks.Fail, "the cluster has no MPIJob resource", "Install the MPI operator: kubectl apply --server-side -f mpi-operator.yaml of its release.")
	}
	switch c := k.Calico; {
	case c == nil:
		add("KUBE-CNI-007", k.Context, checks.Pass, "no Calico: its port (TCP 179) is not needed", "")
	case c.Ready < c.Wanted:
		add("KUBE-CNI-007", k.Context, checks.Fail, fmt.Sprintf("calico-node is ready on %d of %d nodes", c.Ready, c.Wanted),
			"Open TCP 179 (BGP) between the nodes in both directions, then run: kubectl describe daemonset calico-node.")
	default:
		add("KUBE-CNI-007", k.Context, checks.Pass, fmt.Sprintf("calico-node is ready on %d nodes, so BGP (TCP 179) passes", c.Ready), "")
	}
	for _, n := range workers {
		status, evidence := checks.Pass, fmt.Sprintf("%d nvidia.com/gpu", n.GPUs)
		if n.GPUs == 0 {
			status = checks.Warn
		}
		add("KUBE-GPU-004", n.Name, status, evidence, "Install the NVIDIA driver, the container toolkit and the device plugin on the node (rdma-setup generate docker-setup --nvidia).")
	}
	switch p := k.Network; {
	case p == nil:
		add("KUBE-POLICY-008", k.Context, checks.Pass, "no Network Operator: device plugins and networks are not its own", "")
	case p.State == "":
		add("KUBE-POLICY-008", k.Context, checks.Warn, "the Network Operator has no NicClusterPolicy: it runs no device plugin",
			"Create one: rdma-setup generate network-operator, then kubectl apply.")
	case p.State != "ready":
		add("KUBE-POLICY-008", k.Context, checks.Fail, "NicClusterPolicy is "+p.State+": "+strings.Join(p.Behind, "; "),
			"Look at what is not ready: kubectl describe nicclusterpolicy nic-cluster-policy; kubectl get pods -n nvidia-network-operator.")
	default:
		add("KUBE-POLICY-008", k.Context, checks.Pass, "NicClusterPolicy is ready", "")
	}
	out = append(out, rdmaResources(k, workers)...)
	return append(out, alikeWorkers(k.Context, workers)...)
}

// rdmaResources: a device plugin may be missing, but not only on some workers, and not if a policy requests it.
func rdmaResources(k *backends.Kubernetes, workers []backends.KubeNode) []checks.Finding {
	f := checks.Finding{
		ID: "KUBE-RDMA-005", Scope: kubernetesScope, Target: backends.Ref{Type: backends.TypeKubernetes, Name: k.Context},
		Source: "RDG: RoCE accelerated ML and HPC on Kubernetes with vGPU and PVRDMA (NVIDIA/Mellanox, 2019)", Fix: string(checks.Manual),
		Status: checks.Pass, Evidence: "no RDMA device plugin: jobs reach /dev/infiniband of the node with privileged pods",
		Remedy: "Run the RDMA device plugin on every worker (rdma-setup generate network-operator), and name its resource with generate mpijob --rdma-resource.",
	}
	lacking := map[string][]string{}
	if k.Network != nil {
		for _, name := range k.Network.Resources {
			lacking[name] = nil
		}
	}
	for _, n := range workers {
		for name, count := range n.RDMA {
			if count > 0 {
				lacking[name] = nil
			}
		}
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(lacking)) {
		var without []string
		for _, n := range workers {
			if n.RDMA[name] == 0 {
				without = append(without, n.Name)
			}
		}
		part := fmt.Sprintf("%s on %d of %d workers", name, len(workers)-len(without), len(workers))
		switch {
		case len(without) == 0:
		case len(without) == len(workers):
			f.Status = checks.Fail
		default:
			part += ", not on " + strings.Join(without[:min(len(without), 5)], ", ")
			if more := len(without) - 5; more > 0 {
				part += fmt.Sprintf(" and %d more", more)
			}
			if f.Status == checks.Pass {
				f.Status = checks.Warn
			}
		}
		parts = append(parts, part)
	}
	if len(parts) > 0 {
		f.Evidence = strings.Join(parts, "; ")
	}
	return []checks.Finding{f}
}

// alikeWorkers compares what must be equal on all workers of one job.
func alikeWorkers(context string, workers []backends.KubeNode) []checks.Finding {
	f := checks.Finding{
		ID: "KUBE-ALIKE-006", Scope: kubernetesScope, Target: backends.Ref{Type: backends.TypeKubernetes, Name: context},
		Source: "RDG: RoCE accelerated ML and HPC on Kubernetes with vGPU and PVRDMA (NVIDIA/Mellanox, 2019), host configuration", Fix: string(checks.Manual),
		Status: checks.Pass, Evidence: "the workers are alike", Remedy: "Give all workers the same system, kernel and GPUs.",
	}
	var differ []string
	for what, of := range map[string]func(backends.KubeNode) string{
		"systems":  func(n backends.KubeNode) string { return n.OS },
		"kernels":  func(n backends.KubeNode) string { return n.Kernel },
		"kubelets": func(n backends.KubeNode) string { return n.Kubelet },
		"runtimes": func(n backends.KubeNode) string { return n.Runtime },
		"GPUs":     func(n backends.KubeNode) string { return fmt.Sprint(n.GPUs) },
	} {
		seen := map[string]bool{}
		for _, n := range workers {
			seen[of(n)] = true
		}
		if len(seen) > 1 {
			differ = append(differ, what+" differ: "+strings.Join(slices.Sorted(maps.Keys(seen)), ", "))
		}
	}
	if len(differ) > 0 {
		slices.Sort(differ)
		f.Status, f.Evidence = checks.Warn, strings.Join(differ, "; ")
	}
	return []checks.Finding{f}
}
