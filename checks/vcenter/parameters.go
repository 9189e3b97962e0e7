package vcenter

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/nmlx5"
	"github.com/rdma-setup/rdma-setup/checks/row"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// sameParameters compares what the nmlx5 modules were given, max_vfs apart from the rest.
func sameParameters(f *checks.Facts) []checks.Answer {
	told := func(h *backends.Host, vfs bool) string {
		if h.System == nil || !h.System.Modules[nmlx5.Core].Known() {
			return ""
		}
		var out []string
		for module, m := range h.System.Modules {
			for name, v := range m.Value.Params {
				if v = strings.ReplaceAll(strings.Trim(v, `" `), " ", ""); v != "" && (name == "max_vfs") == vfs {
					out = append(out, fmt.Sprintf("%s:%s=%s", module, name, v))
				}
			}
		}
		slices.Sort(out)
		return cmp.Or(strings.Join(out, " "), "none")
	}
	rest := same(f, "parameters", func(h *backends.Host) string { return told(h, false) })
	vfs := same(f, "list of VFs", func(h *backends.Host) string { return told(h, true) })
	if !alikePorts(f) {
		vfs = same(f, "VFs of the RDMA pNIC", func(h *backends.Host) string { return ownVFs(f, h, told(h, true)) })
	}
	if len(rest) == 0 {
		return []checks.Answer{row.Waiting(f.ClusterRef(), "the module parameters of no host were read")}
	}
	for i := range rest {
		switch {
		case rest[i].Status == checks.Warn && f.Answers.QoS.Lossless == answers.LosslessPFC:
			rest[i].Status = checks.Fail
		case rest[i].Status == checks.Pass && vfs[i].Status == checks.Warn:
			rest[i] = vfs[i]
		}
	}
	return rest
}

// alikePorts tells whether the RDMA pNIC has the same place among as many ports of nmlx5_core on every host. Where it has
// not, lists of VFs that mean the same look different.
func alikePorts(f *checks.Facts) bool {
	layouts := map[[2]int]bool{}
	for _, h := range f.Connected() {
		if n := f.NIC(h); n != nil && n.Driver == nmlx5.Core {
			ports := nmlx5.Ports(h)
			layouts[[2]int{slices.Index(ports, n.PCI), len(ports)}] = true
		}
	}
	return len(layouts) < 2
}

// ownVFs is what max_vfs has for the RDMA pNIC; list is how the whole list is told, "" when it was not read.
func ownVFs(f *checks.Facts, h *backends.Host, list string) string {
	n := f.NIC(h)
	if list == "" || n == nil {
		return list
	}
	entries := strings.Split(nmlx5.Param(h.System, nmlx5.Core, "max_vfs"), ",")
	if at := slices.Index(nmlx5.Ports(h), n.PCI); at >= 0 && at < len(entries) && entries[at] != "" {
		return strings.TrimSpace(entries[at])
	}
	return "0"
}
