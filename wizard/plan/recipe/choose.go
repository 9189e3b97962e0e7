package recipe

import (
	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
	"github.com/rdma-setup/rdma-setup/wizard/plan/draft"
)

// Choose returns the pNIC that the answers select on each named host (device by host name), by the same rule as Build. Hosts
// without a unique choice are left out.
func Choose(a *answers.Answers, inv *backends.Inventory) map[string]string {
	picks := map[string]string{}
	for _, name := range a.Hosts.Names {
		h := inv.Host(name)
		if h == nil {
			continue
		}
		b := newBuilder(a, inv, plan.Options{})
		if n := b.rail(0).chooseNIC(&draft.Host{Host: h}); n != nil {
			picks[name] = n.Device
		}
	}
	return picks
}
