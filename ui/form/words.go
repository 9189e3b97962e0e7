package form

import (
	"fmt"
	"strings"

	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// costOf says in a few words what a mode costs.
func costOf(mode string) string {
	switch answers.Mode(mode) {
	case answers.PVRDMA:
		return "VM power cycle"
	case answers.SRIOV:
		return "host reboots, no vMotion"
	case answers.GPUDirect:
		return "VM power cycle, no vMotion"
	}
	return ""
}

func hostsInWords(w *wizard) string {
	h := w.answers.Hosts
	switch {
	case len(h.Names) > 0:
		return fmt.Sprintf("%d: %s", len(h.Names), strings.Join(h.Names, ", "))
	case h.Cluster != "":
		return "all of " + h.Cluster
	}
	return "every connected host"
}

func nicInWords(a *answers.Answers) string {
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
	return strings.Join(parts, ", ")
}
