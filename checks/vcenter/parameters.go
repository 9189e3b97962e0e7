package vcenter

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/nic"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/row"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// sameParameters compares the parameters of the drivers' modules, except lists of VFs.
func sameParameters(f *checks.Facts) []checks.Answer {
	told := func(h *backends.Host, vfs bool) string {
		if !nic.Read(h.System) {
			return ""
		}
		var out []string
		for module, m := range h.System.Modules {
			for name, v := range m.Value.Params {
				if v = strings.ReplaceAll(strings.Trim(v, `" `), " ", ""); v != "" && nic.IsVFParam(module, name) == vfs {
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

// alikePorts reports whether the RDMA pNIC has the same position among equally many ports of its driver on every host. If not,
// equivalent lists of VFs look different.
func alikePorts(f *checks.Facts) bool {
	layouts := map[[2]int]bool{}
	for _, h := range f.Connected() {
		if n := f.NIC(h); n != nil && nic.Of(n.Driver) != nil {
			ports := nic.Addresses(h, nic.Of(n.Driver))
			layouts[[2]int{slices.Index(ports, n.PCI), len(ports)}] = true
		}
	}
	return len(layouts) < 2
}

// ownVFs returns the list's entry for the RDMA pNIC; list is the whole list for display, "" if it was not read.
func ownVFs(f *checks.Facts, h *backends.Host, list string) string {
	n := f.NIC(h)
	if list == "" || n == nil {
		return list
	}
	family := nic.Of(n.Driver)
	if family == nil {
		return "0"
	}
	entries := strings.Split(nic.VFParam(h.System, family), ",")
	if at := slices.Index(nic.Addresses(h, family), n.PCI); at >= 0 && at < len(entries) && entries[at] != "" {
		return strings.TrimSpace(entries[at])
	}
	return "0"
}
