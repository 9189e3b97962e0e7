package entry

import (
	"fmt"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/ui/plain"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
)

// Refusals lists the reasons; targets with the same reason are grouped.
func Refusals(b *strings.Builder, refused *plan.Refused) {
	type cause struct{ why, remedy string }
	var order []cause
	who := map[cause][]string{}
	for _, r := range refused.Refusals {
		c := cause{r.Why, r.Remedy}
		if who[c] == nil {
			order = append(order, c)
		}
		who[c] = append(who[c], r.Target.Name)
	}
	for _, c := range order {
		fmt.Fprintf(b, "\n%s: %s\n  remedy: %s\n", plain.Names(who[c]), backends.Clean(c.why), backends.Clean(c.remedy))
	}
}
