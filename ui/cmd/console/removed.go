package console

// removed names commands, flags and tools of earlier releases, and what to use instead.
var removed = map[string]string{
	"check --for":               "read rdma-setup help releases, and the upgrade paths of the VMware Product Interoperability Matrix",
	"check --kube":              "ask the cluster: kubectl get nodes,mpijobs; kubectl apply --dry-run=server -f FILE checks a job",
	"check --watch":             "run check from a timer: -o prometheus --out FILE is for node_exporter",
	"generate gpu-operator":     "follow NVIDIA's documentation of the GPU Operator; guests that were set up have their driver",
	"generate mpijob --kube":    "use --api v1alpha2 or --no-wait for old MPI operators, and check the job: kubectl apply --dry-run=server -f FILE",
	"generate network-operator": "follow NVIDIA's documentation of the Network Operator",
	"support":                   "attach the files that are named in: rdma-setup help troubleshooting",
}

// Removed returns the error about a command, flag or tool of an earlier release, such as "check --watch"; nil for any other word.
func Removed(what string) error {
	if instead, ok := removed[what]; ok {
		return Usage(instead, "%s was removed", what)
	}
	return nil
}
