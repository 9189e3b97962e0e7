package entry

import (
	"fmt"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/ui/plain"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// GPULines list the GPUs of the chosen hosts: model, whether VMs can use it, and its path to the nearest RDMA card.
func GPULines(a *answers.Answers, inv *backends.Inventory) []string {
	var out []string
	member := Members(a)
	for _, h := range inv.Hosts {
		if !member[h.Name] {
			continue
		}
		if len(h.GPUs) == 0 {
			out = append(out, backends.Clean(h.Name)+": no GPU")
		}
		for _, g := range h.GPUs {
			near, p2p := plain.Nearest(g)
			use := plain.Passthrough(g)
			if g.UsedBy != "" {
				use = "of " + backends.Clean(g.UsedBy)
			}
			out = append(out, fmt.Sprintf("%s %s %s, %s; P2P %s: %s", backends.Clean(h.Name), strings.TrimPrefix(g.PCI, "0000:"), soldAs(backends.Clean(g.Model)), use, p2p, near))
		}
	}
	return out
}

// soldAs returns the product name of a card from that of its chip: A100 PCIe 80GB from GA100 [A100 PCIe 80GB].
func soldAs(model string) string {
	if _, in, ok := strings.Cut(model, "["); ok {
		return strings.TrimSuffix(in, "]")
	}
	return model
}
