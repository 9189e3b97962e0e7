package entry

import (
	"fmt"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/ui/plain"
	"github.com/rdma-setup/rdma-setup/ui/render"
	"github.com/rdma-setup/rdma-setup/ui/theme"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/report"
)

// Inspected is the report of a check: the findings, then the inventory.
func Inspected(t theme.Theme, inv *backends.Inventory, rep *report.Report) string {
	var b strings.Builder
	_ = render.Terminal(&b, rep, t)
	return b.String() + Found(t, inv)
}

// Found returns the inventory of a check, for display below its report.
func Found(t theme.Theme, inv *backends.Inventory) string {
	var b strings.Builder
	inv = backends.Shown(inv)
	fmt.Fprintf(&b, "\n%s  vCenter %s, %s, %s\n", t.Title.Render("Found"), inv.VCenter.Version,
		plain.Counted(len(inv.Hosts), "host"), plain.Counted(len(inv.VMs), "VM"))
	for _, l := range foundLines(inv) {
		b.WriteString("  " + l + "\n")
	}
	return b.String()
}

// foundLines lists for each host which pNICs are suitable for RDMA, or why none is, and its GPUs.
func foundLines(inv *backends.Inventory) []string {
	var out []string
	for _, h := range inv.Hosts {
		r := HostRow(h)
		out = append(out, r.Detail)
		for _, g := range h.GPUs {
			near, p2p := plain.Nearest(g)
			out = append(out, fmt.Sprintf("  GPU %s %s; P2P %s: %s", strings.TrimPrefix(g.PCI, "0000:"), soldAs(g.Model), p2p, near))
		}
	}
	return out
}

// GPULines list the GPUs of the chosen hosts: model, whether VMs can use it, and its path to the nearest RDMA card.
func GPULines(a *answers.Answers, inv *backends.Inventory) []string {
	var out []string
	member := Members(a)
	for _, h := range inv.Hosts {
		if !member[h.Name] {
			continue
		}
		if len(h.GPUs) == 0 {
			out = append(out, h.Name+": no GPU")
		}
		for _, g := range h.GPUs {
			near, p2p := plain.Nearest(g)
			use := plain.Passthrough(g)
			if g.UsedBy != "" {
				use = "of " + g.UsedBy
			}
			out = append(out, fmt.Sprintf("%s %s %s, %s; P2P %s: %s", h.Name, strings.TrimPrefix(g.PCI, "0000:"),
				soldAs(g.Model), use, p2p, near))
		}
	}
	return backends.Shown(out)
}

// soldAs returns the product name of a card from that of its chip: A100 PCIe 80GB from GA100 [A100 PCIe 80GB].
func soldAs(model string) string {
	if _, in, ok := strings.Cut(model, "["); ok {
		return strings.TrimSuffix(in, "]")
	}
	return model
}
