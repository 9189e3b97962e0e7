package frame

import (
	"fmt"

	"github.com/rdma-setup/rdma-setup/ui/form/entry"
	"github.com/rdma-setup/rdma-setup/ui/plain"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// costOf describes the cost of a mode in a few words.
func costOf(m answers.Mode) string {
	switch m {
	case answers.PVRDMA:
		return "VM power cycle, memory reserved"
	case answers.SRIOV:
		return "host reboots, no vMotion"
	case answers.GPUDirect:
		return "VM power cycle, no vMotion"
	}
	return ""
}

func hostsInWords(a *answers.Answers) string {
	switch h := a.Hosts; {
	case len(h.Names) > 0:
		return fmt.Sprintf("%d: %s", len(h.Names), plain.Names(h.Names))
	case h.Cluster != "":
		return "all of " + h.Cluster
	}
	return "every connected host"
}

func nicInWords(a *answers.Answers) string {
	if a.Several() {
		names := make([]string, len(a.Rails))
		for i, r := range a.Rails {
			names[i] = r.Name
		}
		return fmt.Sprintf("%d rails: %s", len(names), plain.Names(names))
	}
	var parts []string
	if len(a.NIC.MACs) > 0 {
		parts = append(parts, fmt.Sprintf("%d by MAC", len(a.NIC.MACs)))
	}
	if s := a.NIC.Speed.String(); s != "" {
		parts = append(parts, s)
	}
	if a.NIC.Driver != "" {
		parts = append(parts, a.NIC.Driver)
	}
	if a.NIC.Device != "" {
		parts = append(parts, a.NIC.Device)
	}
	return entry.OrNone(parts)
}
