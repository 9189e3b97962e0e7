package form

import (
	"errors"
	"fmt"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/ui/plain"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// costOf says in a few words what a mode costs.
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
	return orNone(parts)
}

// members are the hosts that take part.
func members(a *answers.Answers) map[string]bool {
	m := make(map[string]bool, len(a.Hosts.Names))
	for _, n := range a.Hosts.Names {
		m[n] = true
	}
	return m
}

// problem is the first thing that is wrong with the answers at a path or below it.
func problem(a *answers.Answers, path string) error {
	var all answers.Problems
	if !errors.As(a.Validate(), &all) {
		return nil
	}
	for _, p := range all {
		if rest, ok := strings.CutPrefix(p.Path, path); !ok || rest != "" && rest[0] != '.' && rest[0] != '[' {
			continue
		}
		target, i := "", 0
		if n, _ := fmt.Sscanf(p.Path, "vms[%d]", &i); n == 1 && i < len(a.VMs) {
			target = a.VMs[i].Name
		}
		return backends.Errorf(backends.KindUsage, target, p.Hint, "%s", p.What)
	}
	return nil
}

func orNone(list []string) string {
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(list, ", ")
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func lines(s string) int { return strings.Count(s, "\n") + 1 }
