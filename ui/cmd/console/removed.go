package console

// removed names commands, flags and tools of earlier releases, and what to use instead.
var removed = map[string]string{
	"check --for":   "read rdma-setup help releases, and the upgrade paths of the VMware Product Interoperability Matrix",
	"check --watch": "run check from a timer: -o prometheus --out FILE is for node_exporter",
}

// Removed returns the error about a command, flag or tool of an earlier release, such as "check --watch"; nil for any other word.
func Removed(what string) error {
	if instead, ok := removed[what]; ok {
		return Usage(instead, "%s was removed", what)
	}
	return nil
}
